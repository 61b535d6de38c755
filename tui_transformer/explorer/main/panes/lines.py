"""The one-line texts of the main screen: title, crumbs, what a step is, summary of the cell, panes, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.content import Content

from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.engine.ops import Parameter
from tui_transformer.explorer.main.enabled_actions import refused
from tui_transformer.explorer.shell.actions.main import (
    ACTIONS,
    ALWAYS,
    CELL_COUNTED,
    COUNTED,
    FOCUSED,
    KEY_LINE,
    MENU_KEYS,
    ON_CARD,
)
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import CLICKED, first_key, in_use, key_line, keymap_of, keys_of, press
from tui_transformer.explorer.shell.keys import MENUS, Action, spelled
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.widgets.labels import Inks, Line, Written, inks_of, spread
from tui_transformer.guide.texts import StepText, step_text, tour_question
from tui_transformer.records import replace
from tui_transformer.session.edit_format import active, broken
from tui_transformer.session.open_session import model_name
from tui_transformer.session.pane_fit import PANES, Arrangement
from tui_transformer.session.scene import Scene
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.tour_stop import offer, tour_of
from tui_transformer.session.words import WORDS
from tui_transformer.text.display import visible
from tui_transformer.views.inside.cell import short_name

INSTEAD = {VOCABULARY: "vocabulary", **dict.fromkeys(WORDS, "text")}
"""Names of the panes that stops show in the place of the matrix."""

ARROWS = ("left", "down", "up", "right")

CARD = "card"
"""The name of the card of a tour."""

ASKS, ENDS = "-asks", "-ends"
"""Its classes while a question is open, and at the last stop."""

DIGITS = 6
"""Significant digits of the cell."""

RANDOM = (
    "random weights: nothing is learned, every number is computed",
    "random weights: nothing is learned",
    "random weights",
)
"""The answer of a model that was not trained, in ever fewer words."""

WRITE = "sentence.edit"
CHOICES: Mapping[str, tuple[str, str, str]] = {
    "step.next": ("step through", "step through", "step"),
    "tour": ("guided tour", "the story", "story"),
    WRITE: ("your own sentence", "your own", "write"),
    "open": ("another model", "model", "open"),
}
TO_TRAINED = ("a trained model", "a trained model", "trained")
"""The choices, in ever fewer words; and the last of a model that was not trained."""


MOST_KEY_LINES = 64
"""Lines of keys that are kept, each for what can be done at some steps."""


class Lines:
    """The lines of a screen, written again where they change.

    Attributes:
        opening: Whether the line of keys is the one that a person meets first; it ends with the first key.
    """

    def __init__(self, screen: ExplorerScreen[None], requests: Requests) -> None:
        self._screen, self._requests = screen, requests
        self.opening = True
        self._written = Written(screen)
        self._scene: Scene | None = None
        self._count = ""
        self._key_lines: dict[object, Content] = {}
        self._inks: Inks | None = None

    def count(self, digits: str) -> None:
        """Say what is made so often if it is typed now; "" for no count."""
        self._count = digits
        self.show_again()

    def restyle(self) -> None:
        """Write the lines again in the colours of another theme."""
        self._inks = None
        self.show_again()

    def show_again(self) -> None:
        """Write the lines again: something is computed, or typed, that is not of the scene."""
        if self._scene is not None:
            self.show(self._scene)

    def show(self, scene: Scene) -> None:
        """Write the lines that have room, and are not what they were."""
        self._scene = scene
        session, stop, step, width = scene.session, scene.position.stop, scene.step, self._screen.size.width
        self._inks = self._inks or inks_of(self._screen)  # costly to ask for
        inks, tour = self._inks, tour_key(scene, self._screen.app)
        stops = session.stops
        where = f"step {stops.index(stop) + 1} of {len(stops)}" if stop in stops else "beside the steps"
        where = "" if "-tour" in scene.arrangement.classes else where  # a tour counts its own stops
        seconds = 0.0 if step is None else step.seconds
        took = f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
        spent = f" · {took}" if seconds >= 0.00005 else ""  # less would be 0.0 ms
        lines: dict[str, Callable[[], Line]] = {
            "title": lambda: _title(session, self._requests.doing, where, spent, width, inks),
            "crumbs": lambda: _crumbs(session, stop, step, where, width, inks),
            "about": lambda: about(session, stop, tour),
            "summary": lambda: _summary(session, stop, step, inks, tour),
            "tabs": lambda: _tabs(scene.arrangement, width, inks),
            "keys": lambda: self._keys(scene, width, inks),
        }
        for name, line in lines.items():
            if name in scene.arrangement.drawn:
                self._written.write(name, line())

    def _keys(self, scene: Scene, width: int, inks: Inks) -> Line:
        """The choices of the opening; then the keys, behind a count or what is computed where no title says that."""
        session, app, focused = scene.session, self._screen.app, self._screen.focused
        card = focused is not None and focused.name == CARD
        if self._requests.doing and "-narrow" in scene.arrangement.classes:
            said = Content.styled(f" {self._requests.doing} ", "bold $accent")
            return Content("").join([said, self._named(scene, width - said.cell_length, card=card)])
        if self.opening and not card:
            shown = {action.id: action.shown for action in in_use(ACTIONS, app)}
            lines = _openings(session, scene.answer or "", shown, inks, app)
            if (line := next((line for line in lines if line.cell_len <= width), None)) is not None:
                return line
        if self._count:
            said = Content.styled(f" {self._count} times ", "bold $accent")
            return Content("").join([said, key_line(_counted(app), app, width - said.cell_length, 1)])
        return self._named(scene, width, card=card)

    def _named(self, scene: Scene, width: int, *, card: bool) -> Content:
        """The keys of the focused pane, or of a card, and the most useful others.

        What would be refused is left out, and a key that the pane has is not named again.
        """
        session, stop, active = scene.session, scene.position.stop, scene.arrangement.active
        app, focused = self._screen.app, self._screen.focused
        pane = INSTEAD.get(stop, active) if active == "matrix" else active
        if focused is not None and card:
            pane = "question" if focused.has_class(ASKS) else "last stop" if focused.has_class(ENDS) else "tour"
        first = FOCUSED.get(pane, ())
        hidden = set(refused(session, stop, scene.step)) | (ON_CARD if card else set[str]())
        taken = {action.shown for action in first}
        named = {action.id: action for action in ACTIONS if action.id not in hidden}
        others = [named[name] for name in KEY_LINE if name in named and named[name].shown not in taken]
        always = [named[name] for name in ALWAYS if name in named]
        if width < 120:  # there is no room to name each: their keys stand together
            others = [each for each in others if each.id not in MENUS]
            first = (*first[:2], MENU_KEYS, *first[2:])
        actions = *first, *others, *always
        asked = *actions, len(always), width, *keymap_of(app).items()
        if asked not in self._key_lines:
            if len(self._key_lines) >= MOST_KEY_LINES:
                self._key_lines.clear()
            self._key_lines[asked] = key_line(actions, app, width, len(always))
        return self._key_lines[asked]


def _counted(app: App[Any]) -> list[Action]:
    """What is made as often as a count says; no arrow is."""
    ways = ((key for key in keys_of(app, (f"cursor.{way}",)) if key not in ARROWS) for way in ARROWS)
    cell = " ".join(filter(None, (next(keys, "") for keys in ways)))
    return [
        replace(each, of=cell, shown=" ".join(map(spelled, cell.split()))) if each is CELL_COUNTED else each
        for each in COUNTED
    ]


# What a stop is


def tour_key(scene: Scene, app: App[Any]) -> str:
    """The key of the tour, where it is offered: at the first stop, while none leads on."""
    is_offered = scene.position.stop == VOCABULARY and "-tour" not in scene.arrangement.classes
    return first_key(app, "tour") if is_offered else ""


def about(session: Session, stop: str, tour: str) -> str:
    """The tour with its key, where it is offered; meaning of a step, its purpose and what to look at, line by line."""
    words, offered = step_words(session, stop), offer(session, stop, tour) if tour else ""
    ways = _ways_back(session, stop) if session.backward else ()
    return "\n".join(filter(None, (offered, *ways, words.what, words.why, words.look)))


def step_words(session: Session, stop: str) -> StepText:
    """The texts of a stop; a matrix that is given, and a weight, have their own."""
    program = session.trace.program
    if stop in program.by_name and isinstance(program.step(stop).op, Parameter):
        return step_text("given")
    return step_text("weight") if stop in program.weights else step_text(stop)


def stop_title(session: Session, stop: str) -> str:
    """The title of a stop: a step by its text, a weight by its name."""
    if stop in (VOCABULARY, TEXT, LOSS) or stop in session.trace.program.by_name:
        return step_text(stop).label
    return stop


def group_title(group: str) -> str:
    """A layer or sublayer by its text, a layer with its number."""
    number_of = group.rpartition(".")[2]
    return step_text(group).label + (f" {number_of}" if number_of.isdigit() else "")


def _ways_back(session: Session, stop: str) -> Iterator[str]:
    """In the backward pass, what the gradient is and how it comes back through every step that reads the value."""
    program = session.trace.program
    if stop == LOSS or not session.went_back:
        return
    yield step_text("gradient").what
    gradients = session.gradients.values
    for step in program.readers(program.aliases.get(stop, stop)):
        if step.name in gradients and stop in gradients:
            yield f"From {short_name(step.name)}: {step.op.gradient_formula(step.inputs.index(stop))}"


# Line by line


def _title(session: Session, doing: str, where: str, spent: str, width: int, inks: Inks) -> Text:
    """What is computed; or how far one is, and before it the edits, which way one goes, or what is compared."""
    changes = [broken(session)] if session.breaks else []
    changes += [active(session.edits, session.base.program)] if session.edits else []
    way = []
    if session.backward:
        way = ["← backward", *filter(None, [_loss(session)])]
    elif session.overlay.kind == "trace":
        way = [f"beside {visible(session.overlay.label)}" if session.comparison is not None else "comparing"]
    state = doing or " · ".join(filter(None, (*map(visible, changes), *way, where)))
    backend, name = session.trace.backend, session.cache.tokens.made("name", lambda: model_name(session))
    left = Text(" tui-transformer", inks.accent).append(f"   {name}", inks.quiet)
    right = Text(f"{state}   ", inks.plain).append(f"{backend.name} {backend.dtype}{spent} ", inks.quiet)
    return spread(left, right, width)


def _loss(session: Session) -> str:
    if not session.went_back:
        return ""
    start = session.gradients.start
    return f"{'loss' if start is None else visible(start.description)} {spoken(session.gradients.loss, 4)}"


def _crumbs(session: Session, stop: str, scene: StepScene | None, where: str, width: int, inks: Inks) -> Text:
    """Layer ▸ sublayer ▸ step, as far as there is room, its formula; at the right the head and how far one is."""
    program, groups = session.trace.program, list[str]()
    head = "" if scene is None or scene.view.heads < 2 else f"head {scene.place.head} of {scene.view.heads}  "
    loss = _loss(session)
    way = f"← {loss}{' · ' * bool(loss and (head or where))}" if session.backward else ""
    broke = f"{broken(session)}  " if session.breaks else ""
    count = len(session.edits)
    edits = f"{count} edit{'s' * (count > 1)}  " if count else ""
    where = where.removeprefix("step ").replace(" of ", "/")
    right = Text(f"{broke}{edits}{way}{head}{where} ", inks.plain)
    name = f" {step_text(stop).title if stop in program.by_name else stop_title(session, stop)} "
    if stop in program.by_name:
        step = program.step(stop)
        groups = [f"{group_title(group)} ▸ " for group in dict.fromkeys((step.layer, step.sublayer)) if group != stop]
    while groups and cell_len(f" {''.join(groups)}{name}") >= width - right.cell_len:
        groups.pop(0)
    line = Text(" ", inks.plain).append("".join(groups), inks.quiet).append(name, inks.marked)
    if scene is not None:
        of_gradient = scene.working is not None and scene.working.name.startswith(GRADIENT)
        formula = scene.working.formula if of_gradient and scene.working is not None else scene.view.formula
        line.append(f"  {formula}" if formula else "", inks.quiet)
    return spread(line, right, width)


def _summary(session: Session, stop: str, scene: StepScene | None, inks: Inks, tour: str) -> Text:
    """The cell in one line, or the tour with its key; below what the step is, or how its gradient comes back."""
    offered = offer(session, stop, tour) if tour else ""
    line = Text(offered, inks.accent) if scene is None else _cell_line(scene, inks)
    said = tuple(_ways_back(session, stop)) if session.backward else ()
    meaning, *ways = said or (step_words(session, stop).what,)
    return line.append(f"\n{' · '.join((*ways, meaning))}", inks.quiet)


def _cell_line(scene: StepScene, inks: Inks) -> Text:
    view, place, working = scene.view, scene.place, scene.working
    sides = ((view.rows, place.row), (view.columns, place.column))
    names = " → ".join(filter(None, (axis.label(index) if axis.name else "" for axis, index in sides)))
    line = Text("", inks.plain).append(names, inks.plain + Style(bold=True))
    if working is not None:
        of = "∂loss " if working.name.startswith(GRADIENT) else ""
        line.append(f"  {of}{spoken(working.stored, DIGITS)}", inks.accent)
        for value in scene.values:
            line.append(f"  {value.symbol} {spoken(value.value, DIGITS)}", inks.plain)
        if not scene.values:
            line.append(f"  = {working.formula}", inks.quiet)
            line.append(f"   difference {spoken(working.difference, 2)}", inks.quiet)
        if scene.edited:
            line.append(f"  {visible(scene.edited)}", inks.accent)
        for i, near in enumerate(scene.near or ()):
            line.append(f"  {visible(near.of)} ≈ " if i else "  nearest ", inks.quiet)
            line.append(near_words(near.words[:2], 32), inks.plain)
    return line


def _tabs(arrangement: Arrangement, width: int, inks: Inks) -> Text:
    """The panes that the stop has with the digits that go to them, the active one in brackets.

    Where there is no room for all, the others are digits alone.
    """
    there = [(str(digit), name) for digit, name in enumerate(PANES) if name in arrangement.names]
    for words in (True, False):
        line = Text(" ", inks.quiet)
        for digit, name in there:
            active = name == arrangement.active
            label = f"{digit} {name}" if words or active else digit
            line.append(f"[{label}]" if active else f" {label} ", inks.accent if active else inks.quiet)
            line.append(" ", inks.quiet)
        if line.cell_len - 1 <= width:
            break
    return line


# The line that a person meets first


def is_random(session: Session) -> bool:
    """Whether a model's answer is not worth asking for: nothing was learned."""
    return session.model.folder is None and bool(session.model.config.vocab_size)


def _openings(session: Session, answer: str, keys: Mapping[str, str], inks: Inks, app: App[Any]) -> Iterator[Text]:
    """The answer, "" where it is not there, and each choice with its key, given by name; in ever fewer words.

    A click on a key or its words does what the key does.
    """
    tour, random = tour_of(session), is_random(session)
    there = [name for name in CHOICES if name in keys and (session.model.config.vocab_size or name != WRITE)]
    there = [name for name in there if tour or name != "tour"]
    pressed = {name: Style(meta={CLICKED: press(next(keys_of(app, (name,)), ""))}) for name in (*there, "help", "quit")}

    def begun(fewer: int) -> Text:
        said, line = RANDOM[fewer] if random else answer, Text(" ", inks.plain, no_wrap=True)
        return line.append(said, inks.accent).append("   ", inks.plain) if said else line

    for fewer in range(len(RANDOM)):
        line = begun(fewer)
        for name in there:
            words = TO_TRAINED[fewer] if random and name == "open" else CHOICES[name][fewer]
            if name == "tour" and not fewer:
                words = tour_question(tour or "") or words
            line.append(keys[name], inks.accent + pressed[name]).append(f" {words}   ", inks.quiet + pressed[name])
        for always in (each for each in ("help", "quit") if each in keys):
            line.append(keys[always], inks.accent + pressed[always])
            line.append(f" {always}  ", inks.quiet + pressed[always])
        line.rstrip()
        yield line
    line = begun(-1)
    for name in there:
        line.append(keys[name], inks.accent + pressed[name]).append(" " * (name != there[-1]), inks.plain)
    line.append(f"   {keys.get('help', '')}", inks.accent + pressed["help"])
    yield line.append(" help", inks.quiet + pressed["help"])


def near_words(words: tuple[tuple[str, float], ...] | None, width: int) -> str:
    """Words and their cosines, as many as there is room for; … until they are there."""
    if not words:
        return "…" if words is None else "none: its row is 0"
    shown = [f"{visible(word)} {minus(f'{cosine:.2f}')}" for word, cosine in words]
    lengths = accumulate(cell_len(each) + (3 if i else 0) for i, each in enumerate(shown))
    return " · ".join(shown[: max(sum(length <= width for length in lengths), 1)])
