"""Opening another model or vocabulary: those of the program, of this computer, recent ones, and any path."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from rich.text import Text
from textual import on
from textual.events import Key
from textual.widgets import Input

from tui_transformer.explorer.shell.actions.dialogs import OPEN
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.files import expanded, home_of, is_file, is_folder, meant
from tui_transformer.guide.texts import tour_model, tour_question, tours
from tui_transformer.model.loading import BUILT_IN
from tui_transformer.model.local_models import LocalModel, local_models, trained_models
from tui_transformer.model.options import ModelOptions
from tui_transformer.records import dataclass
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import ANY_MODEL, OF_A_PACKAGE, own_tours, tour_of
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.vocabulary import built_in_vocabularies
from tui_transformer.trained import about

Kind = Literal["model", "tour", "sentence", "vocabulary"]

DOES = {
    "question": "tells a question from a statement",
    "dates": "writes dates as numbers",
    "copy": "repeats letters",
    "story": "writes very short stories",
}
"""Purpose of each trained model."""

SIZES = "sizes of your own with {settings}"
"""Said of models of random weights."""

MOST_LINES = 14


@dataclass(frozen=True)
class Choice:
    """Something that can be opened: a model as `--model` takes it, a tour, a sentence, a vocabulary.

    Attributes:
        source: Where it is from, or what it is.
        says: What is known of it; of a tour the question that it answers.
    """

    name: str
    source: str
    says: str = ""
    kind: Kind = "model"


# Models, tours and sentences


def open_from(port: Port) -> None:
    """The list; a model is opened with a sentence of its own, a tour begins, a sentence is read."""
    choices = at_once(recent("models"), recent("sentences"), port.hint(SIZES))
    screen = OpenScreen("Open", choices, "a name, a folder or a tour")
    port.open(screen, lambda choice: choose(port, choice) if choice is not None else None)
    port.ask("models", lambda _: local_models(), screen.while_there(screen.take))


def choose(port: Port, choice: Choice) -> None:
    """Open what was chosen; undo goes back to what was open before."""
    if choice.kind == "sentence":
        port.change(port.session.with_text(choice.name))
        remember("sentences", choice.name)
    elif choice.kind != "tour":
        load(port, choice.name)
    elif choice.name in (*ANY_MODEL, *own_tours(port.session.model)):
        port.begin_tour(choice.name)
    else:
        load(port, tour_model(choice.name), lambda: port.begin_tour(choice.name))


def load(port: Port, name: str, then: Callable[[], None] | None = None) -> None:
    """Open a model; undo goes back to the one before."""
    where = str(expanded(name)) if name.startswith("~") else name
    options = ModelOptions(model=where, budget=port.session.budget)

    def show(session: Session) -> None:
        port.change(session)
        remember("models", str(meant(where).resolve()) if is_folder(meant(where)) else where)
        if then is not None:
            then()
            return
        tour = tour_of(session)
        for remark in session.model.remarks:
            port.say(remark, severity="warning")
        port.say(f"{session.model.name} is open" + (f" · {port.hint('{tour}')}: {tour_question(tour)}" if tour else ""))

    port.ask("open", lambda _: open_session(options, None, None), show)


def at_once(recent: Sequence[str], sentences: Sequence[str] = (), sizes: str = "") -> tuple[Choice, ...]:
    """Choices known without a search: trained models, what was used lately, tours, models of random weights."""

    def known() -> Iterator[Choice]:
        trained = trained_models()
        for name in trained:
            facts = about(name)
            weights = f" · {facts['weights']:,} weights" if "weights" in facts else ""
            yield Choice(name, "trained", f"{DOES.get(name, '')}{weights}")
        yield from (Choice(name, "recent") for name in recent)
        there = (name for name in tours() if name not in OF_A_PACKAGE or importlib.util.find_spec(name) is not None)
        for name in sorted(there, key=lambda name: (tour_model(name) not in trained, name)):
            yield Choice(name, "tour", tour_question(name) or "a guided tour", "tour")
        yield from (Choice(name, "random weights", sizes) for name in BUILT_IN)
        yield from (Choice(text, "sentence", kind="sentence") for text in sentences)

    return _each_once(known())


def with_models(choices: Iterable[Choice], models: Iterable[LocalModel]) -> tuple[Choice, ...]:
    """The same, and the checkpoints that are on this computer."""
    return _each_once((*choices, *(Choice(each.name, each.source, str(each.folder)) for each in models)))


def _each_once(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    kept: dict[tuple[Kind, str], Choice] = {}
    for each in choices:
        kept.setdefault((each.kind, each.name), each)
    return tuple(kept.values())


def matching(choices: Sequence[Choice], typed: str) -> list[int]:
    """The places of those whose name or description has what is typed in it, where `-` and `_` are the same.

    Those that are called so come first, of these tours last.
    """
    wanted = _plain(typed.strip())
    found = (at for at, each in enumerate(choices) if wanted in _plain(f"{each.name} {each.source} {each.says}"))
    return sorted(found, key=lambda at: choices[at].kind == "tour" if _plain(choices[at].name) == wanted else 2)


def _plain(text: str) -> str:
    return text.casefold().replace("_", "-")


# Vocabularies


def open_vocabulary(port: Port) -> None:
    """Those of the program, files; a sentence that the new one knows takes the place of one that it does not."""
    words, built_in = port.session.model.vocabulary, built_in_vocabularies()
    own = words is not None and words.path is not None and words.path.parent.name == "vocabularies"
    in_use = "" if words is None else words.name if own and words.name in built_in else str(words.path)
    choices = (
        *([Choice(in_use, "in use", f"{Path(in_use).name}, read again", "vocabulary")] if in_use else []),
        *(Choice(name, "built in", kind="vocabulary") for name in built_in),
        *(Choice(path, "recent", Path(path).name, "vocabulary") for path in recent("vocabularies")),
    )
    screen = OpenScreen("Vocabulary", _each_once(choices), "a name or a file", "vocabulary")
    port.open(screen, lambda choice: _use(port, choice) if choice is not None else None)


def _use(port: Port, choice: Choice) -> None:
    before = port.session
    changed = before.with_vocabulary(choice.name)
    port.change(changed)
    path = meant(home_of(choice.name))
    if is_file(path):
        remember("vocabularies", str(path.resolve()))
    if changed.text != before.text and before.text:
        unknown = "the sentence has words that this vocabulary does not know"
        port.say(port.hint(f"{unknown}: another takes its place, {{undo}} takes it back"))


class OpenScreen(Dialog[Choice]):
    """A line to type in, and what has that in its name; gives what is chosen, or what is typed as a path."""

    ACTIONS = OPEN
    DEFAULT_CSS = """
    OpenScreen LineList { height: auto; min-height: 1; }
    OpenScreen #box { width: 104; }
    """

    def __init__(self, title: str, choices: tuple[Choice, ...], placeholder: str, kind: Kind = "model") -> None:
        super().__init__(title, LineInput(placeholder=placeholder), LineList())
        self._choices, self._kind = choices, kind

    def on_mount(self) -> None:
        self._draw()

    def take(self, models: tuple[LocalModel, ...]) -> None:
        self._choices = with_models(self._choices, models)
        self._draw()

    def on_key(self, event: Key) -> None:
        """The arrows move in the list while a name is typed."""
        lines = self.query_one(LineList)
        steps = {"up": -1, "down": 1, "pageup": -MOST_LINES, "pagedown": MOST_LINES}
        if event.key in steps and not lines.has_focus:
            event.stop()
            lines.action_step(steps[event.key], 0)

    def on_input_changed(self, event: Input.Changed) -> None:
        """List what has it in its name; the cursor goes to what is called so."""
        self._draw()
        shown = self._shown()
        if shown and _plain(self._choices[shown[0]].name) == _plain(event.value.strip()):
            self.query_one(LineList).cursor = shown[0]

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open what is chosen in the list; what is in no list is a path."""
        chosen = self.query_one(LineList).cursor
        typed = event.value.strip()
        path = Choice(typed, "path", kind=self._kind) if typed else None
        self.dismiss(path if chosen is None else self._choices[chosen])

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        self.dismiss(self._choices[event.index])

    def _shown(self) -> list[int]:
        return matching(self._choices, self.query_one(LineInput).value)

    def _draw(self) -> None:
        lines, shown = self.query_one(LineList), self._shown()
        lines.styles.height = max(1, min(len(shown), MOST_LINES, self.size.height - 5))
        lines.show(len(self._choices), self._line)
        lines.filter(shown)

    def _line(self, index: int) -> Text:
        each = self._choices[index]
        width = min(28, max(cells(visible(one.name)) for one in self._choices))
        if each.kind == "sentence":
            return Text(f" {fit(each.source, width)}  {visible(each.name)}", no_wrap=True)
        return Text(f" {fit(each.name, width)}  {fit(each.source, 14)}  {visible(each.says)}", no_wrap=True)
