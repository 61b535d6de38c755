"""The one-line texts of the main screen, written again where they change; which keys are named in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text
from textual.content import Content

from tui_transformer.analysis.attentions import attentions
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.shell.actions.main import ACTIONS, ALWAYS, COUNTED, FOCUSED, KEY_LINE, ON_CARD
from tui_transformer.explorer.shell.keymap import first_key, in_use, key_line
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.widgets.labels import Inks, Line, Written, inks_of
from tui_transformer.generation.cache import writes
from tui_transformer.guide.texts import tour_question
from tui_transformer.session.scene import Scene
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.tour_stop import tour_of
from tui_transformer.session.words import WORDS

INSTEAD = {VOCABULARY: "vocabulary", **dict.fromkeys(WORDS, "text")}
"""Names of the panes that stops show in the place of the matrix."""

LEAST_SHOWN = 0.00005
"""Seconds of computing a step that are worth saying."""

RANDOM = (
    "random weights: nothing is learned, every number is computed",
    "random weights: nothing is learned",
    "random weights",
)
"""The answer of a model that was not trained, in ever fewer words."""

WRITE = "sentence.edit"
CHOICES = "step.next", WRITE, "open"
ORDER = "step.next", "tour", WRITE, "open"
CHOICE_WORDS = (
    ("step through", "step through", "step"),
    ("your own sentence", "your own", "write"),
    ("another model", "model", "open"),
)
TO_TRAINED = ("a trained model", "a trained model", "trained")
"""The choices, in ever fewer words; and the last of a model that was not trained."""


class Lines:
    """Title, crumbs, what a step is, summary of the cell, panes, keys.

    Attributes:
        opening: Whether the line of keys is the one that a person meets first; it ends with the first key.
    """

    def __init__(self, panes: Panes, requests: Requests) -> None:
        self._panes, self._requests = panes, requests
        self.opening = True
        self._written = Written(panes.screen)
        self._scene: Scene | None = None
        self._count = ""

    def count(self, digits: str) -> None:
        """Say what is made so often if it is typed now; "" for no count."""
        self._count = digits
        self.show_again()

    def show_again(self) -> None:
        """Write the lines again: something is computed, or typed, that is not of the scene."""
        if self._scene is not None:
            self.show(self._scene)

    def show(self, scene: Scene) -> None:
        """Write the lines that are not what they were."""
        self._scene = scene
        for name, content in self._contents(scene).items():
            self._written.write(name, content)

    def _contents(self, scene: Scene) -> dict[str, Line]:
        session, stop, step, screen = scene.session, scene.position.stop, scene.step, self._panes.screen
        width, inks = screen.size.width, inks_of(screen)
        tour = "" if scene.is_told else first_key(screen.app, "tour")
        state = f"{self._requests.doing or texts.state(session, stop)}   "
        seconds = 0.0 if step is None else step.seconds
        time = f" · {seconds * 1000:.1f} ms" if seconds >= LEAST_SHOWN else ""
        return {
            "title": texts.title(session, state, time, width, inks),
            "crumbs": texts.crumbs(session, stop, step, width, inks),
            "about": texts.about(session, stop, tour),
            "summary": texts.summary(session, stop, step, inks, tour),
            "tabs": texts.tabs(scene.arrangement.digits, scene.arrangement.active, inks),
            "keys": self._keys(scene, width, inks),
        }

    def _keys(self, scene: Scene, width: int, inks: Inks) -> Line:
        """The choices of the opening; then the keys of the focused pane, and the most useful others.

        What would be refused is left out, and a key that the pane has is not named again.
        """
        session, stop, active = scene.session, scene.position.stop, scene.arrangement.active
        app, card = self._panes.screen.app, self._panes.on_card
        if self.opening and not card:
            shown = {action.id: action.shown for action in in_use(ACTIONS, app)}
            lines = _openings(session, scene.answer or "", shown, inks)
            if (line := next((line for line in lines if line.cell_len <= width), None)) is not None:
                return line
        if self._count:
            said = Content.styled(f" {self._count} times ", "bold $accent")
            return Content("").join([said, key_line(COUNTED, app, width - said.cell_length, 1)])
        first = FOCUSED.get("tour" if card else INSTEAD.get(stop, active) if active == "matrix" else active, ())
        hidden = refused(session, stop, scene.step) | (ON_CARD if card else set[str]())
        taken = {action.shown for action in first}
        named = {action.id: action for action in ACTIONS if action.id not in hidden}
        others = [named[name] for name in KEY_LINE if name in named and named[name].shown not in taken]
        always = [named[name] for name in ALWAYS if name in named]
        return key_line([*first, *others, *always], app, width, len(always))


# Which keys are named


def refused(session: Session, stop: str, scene: StepScene | None) -> frozenset[str]:
    """The actions, by name, that would only say why they cannot be done: not named in the line of keys."""
    program = session.trace.program
    step = program.by_name.get(stop)
    layers = {each.layer for each in program.steps if each.layer.rpartition(".")[2].isdigit()}
    useless = {
        "head.next": scene is None or scene.view.heads < 2,
        "layer.next": len(layers) < 2,
        "cell.edit": scene is None or scene.view.integer,
        "predict": scene is None,
        "export": scene is None and session.model.vocabulary is None,
        "chart.next": scene is None,
        "weights": step is None or not any(name in program.weights for name in step.inputs),
        "patch": scene is None or session.model.vocabulary is None,
        "overlay": session.overlay.kind == "nothing",
    }
    return frozenset(name for name, holds in useless.items() if holds) | refused_anywhere(session)


def refused_anywhere(session: Session) -> frozenset[str]:
    """Those that would be refused at every step of what is explored: neither palette nor help names them."""
    program, model = session.trace.program, session.model
    reads = bool(model.config.vocab_size)
    useless = {
        "sentence.edit": not reads,
        "target.edit": session.decoder_encoding is None,
        "vocabulary.open": model.vocabulary is None,
        "tour": tour_of(session) is None,
        "backward": not session.has_loss,
        "targets": not session.has_loss,
        "generate": not reads or not writes(model.program(1, 1)),
        "lens": not program.logits,
        "heads.all": not attentions(program),
        "item.next": not session.batch,
        "item.back": not session.batch,
    }
    return frozenset(name for name, holds in useless.items() if holds)


# The line that a person meets first


def is_random(session: Session) -> bool:
    """Whether a model's answer is not worth asking for: nothing was learned."""
    return session.model.folder is None and bool(session.model.config.vocab_size)


def _openings(session: Session, answer: str, keys: Mapping[str, str], inks: Inks) -> Iterator[Text]:
    """The answer, "" where it is not there, and each choice with its key, given by name; in ever fewer words."""
    name, random = tour_of(session), is_random(session)
    told = [tour_question(name) or "guided tour", "the story", "story"] if name else []
    choices = (*CHOICE_WORDS[:-1], TO_TRAINED) if random else CHOICE_WORDS
    there = [choice for choice in ORDER if choice in keys and (session.model.config.vocab_size or choice != WRITE)]
    answers = RANDOM if random else (answer,) * len(RANDOM)
    for said, *words_of in zip(answers, *choices, strict=True):
        line = _begun(said, inks)
        words = dict(zip(CHOICES, words_of, strict=True)) | ({"tour": told.pop(0)} if told else {})
        for choice in there:
            if choice in words:
                line.append(keys[choice], inks.accent).append(f" {words[choice]}   ", inks.quiet)
        for always in ("help", "quit"):
            line.append(keys[always], inks.accent).append(f" {always}  ", inks.quiet)
        line.rstrip()
        yield line
    alone = " ".join(keys[choice] for choice in there if name or choice != "tour")
    line = _begun(answers[-1], inks).append(alone, inks.accent)
    yield line.append(f"   {keys['help']}", inks.accent).append(" help", inks.quiet)


def _begun(answer: str, inks: Inks) -> Text:
    line = Text(" ", inks.plain, no_wrap=True)
    return line.append(answer, inks.accent).append("   ", inks.plain) if answer else line
