"""Another model, chosen from a list or by its path."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import Input

from tui_transformer.explorer.shell.actions.dialogs import OPEN
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.tools.open.choices import SIZES, Choice, Kind, at_once, matching, with_models
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.files import expanded, is_folder, meant
from tui_transformer.guide.texts import tour_question
from tui_transformer.model.local_models import LocalModel, local_models
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.tour_stop import ANY_MODEL, own_tour, tour_of
from tui_transformer.text.display import cells, fit, visible

MOST_LINES = 14
WIDEST = 28
"""Columns of a name."""


def open_from(port: Port) -> None:
    """The list; a model is opened with a sentence of its own, a tour begins, a sentence is read."""
    screen = OpenScreen(
        "Open", at_once(recent("models"), recent("sentences"), port.hint(SIZES)), "a name, a folder or a tour"
    )
    port.open(screen, lambda choice: choose(port, choice) if choice is not None else None)
    port.ask("models", AT_ONCE + 1, lambda _: local_models(), screen.while_there(screen.take))


def choose(port: Port, choice: Choice) -> None:
    """Open what was chosen; undo goes back to what was open before."""
    if choice.kind == "sentence":
        port.change(port.session.with_text(choice.name))
        remember("sentences", choice.name)
    elif choice.kind == "tour":
        _begin(port, choice.name)
    else:
        load(port, choice.name)


def _begin(port: Port, tour: str) -> None:
    """Begin a tour, on the model that it leads through."""
    if tour in ANY_MODEL or tour == own_tour(port.session.model):
        port.begin_tour(tour)
    else:
        load(port, tour, lambda: port.begin_tour(tour))


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
        told = tour_of(session)
        for remark in session.model.remarks:
            port.say(remark, severity="warning")
        port.say(f"{session.model.name} is open" + (f" · {port.hint('{tour}')}: {tour_question(told)}" if told else ""))

    port.ask("open", AT_ONCE + 1, lambda _: open_session(options, None, None), show)


class OpenScreen(Dialog[Choice]):
    """A line to type in, and what has that in its name; gives what is chosen, or what is typed as a path."""

    ACTIONS = OPEN
    DEFAULT_CSS = """
    OpenScreen LineList { height: auto; min-height: 1; }
    OpenScreen #box { width: 104; }
    """

    def __init__(self, title: str, choices: tuple[Choice, ...], placeholder: str, kind: Kind = "model") -> None:
        """Offer things; what is in no list is of a kind."""
        super().__init__(title)
        self._choices, self._placeholder, self._kind = choices, placeholder, kind

    def body(self) -> ComposeResult:
        """The line, and the list."""
        yield LineInput(placeholder=self._placeholder)
        yield LineList()

    def on_mount(self) -> None:
        """Show all."""
        self._draw()

    def take(self, models: tuple[LocalModel, ...]) -> None:
        """Offer what was found on this computer as well."""
        self._choices = with_models(self._choices, models)
        self._draw()

    def on_key(self, event: Key) -> None:
        """The arrows move in the list while a name is typed."""
        lines = self.query_one(LineList)
        if event.key in ("up", "down", "pageup", "pagedown") and not lines.has_focus:
            event.stop()
            self._move({"up": -1, "down": 1, "pageup": -MOST_LINES, "pagedown": MOST_LINES}[event.key])

    def on_input_changed(self) -> None:
        """List what fits."""
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open what is chosen in the list; what is in no list is a path."""
        chosen = self.query_one(LineList).cursor
        typed = event.value.strip()
        path = Choice(typed, "path", kind=self._kind) if typed else None
        self.dismiss(path if chosen is None else self._choices[chosen])

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        self.dismiss(self._choices[event.index])

    def _move(self, by: int) -> None:
        lines, shown = self.query_one(LineList), self._shown()
        if shown and lines.cursor is not None:
            place = shown.index(lines.cursor) + by
            lines.cursor = shown[max(0, min(place, len(shown) - 1))]

    def _shown(self) -> list[int]:
        return matching(self._choices, self.query_one(LineInput).value)

    def _draw(self) -> None:
        lines, shown = self.query_one(LineList), self._shown()
        lines.styles.height = max(1, min(len(shown), MOST_LINES, self.size.height - 5))
        lines.show(len(self._choices), self._line)
        lines.filter(shown)

    def _line(self, index: int) -> Text:
        each = self._choices[index]
        width = min(WIDEST, max(cells(visible(one.name)) for one in self._choices))
        if each.kind == "sentence":
            return Text(f" {fit(each.source, width)}  {visible(each.name)}", no_wrap=True)
        return Text(f" {fit(each.name, width)}  {fit(each.source, 14)}  {visible(each.says)}", no_wrap=True)
