"""The main screen: its panes, the parts that it is made of, and which of them a key or a message of a pane goes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Key
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from tui_transformer.explorer.guard.compositor import read_style_sheets
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.main.editing import Editing
from tui_transformer.explorer.main.enabled_actions import entries
from tui_transformer.explorer.main.export import Export, LiveRecording
from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.lines import ARROWS, about, stop_title
from tui_transformer.explorer.main.panes.matrix import ChartPane, HeadsPane, MatrixPair, TextPane, VocabularyPane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.main.predict import predict
from tui_transformer.explorer.main.presenter import Panes, Presenter, place_of
from tui_transformer.explorer.main.tour import Tour
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import first_key, keys_of
from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.explorer.shell.menu import MenuScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.tools.opening import open_tool, palette_commands
from tui_transformer.explorer.widgets.cursor import GridWidget
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.labels import TextLine
from tui_transformer.guide.texts import help_text, step_text
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.pane_fit import INSIDE, arrange
from tui_transformer.session.position import Position, row_of_word
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.view_state import Size, ViewState

MOMENT = 1.0
"""Seconds between a digit and what it belongs to."""

COUNTED = ("step.next", "step.back", "head.", "layer.", "sublayer.", *(f"cursor.{way}" for way in ARROWS))


class Parts:
    """What explores a session on a screen, each part made of those before."""

    def __init__(
        self, screen: ExplorerScreen[None], explored: Exploration, worker: Worker, background: Background
    ) -> None:
        self.explored = explored
        self.requests = requests = Requests(
            screen, worker, lambda: presenter.lines.show_again(), lambda: explored.session.model.backend.device == "cpu"
        )
        self.panes = panes = Panes(screen, explored)
        self.presenter = presenter = Presenter(explored, panes, requests)
        self.navigation = self.port = port = Navigation(explored, presenter, requests, worker, background)
        self.editing = Editing(explored, presenter, port)
        self.predict = partial(predict, explored, port, Counter())
        self.tour = Tour(explored, presenter, port)
        self.recording = LiveRecording(port, screen)
        self.export = Export(explored, port, self.tour, screen)
        self.counting = Counting(explored, presenter)


class Counting:
    """Counts before movements, as in vi: 5 j is five lines down, 1 0 space ten steps on.

    A digit goes to its pane, at once. Where a step or a movement by letters follows within a moment, the digits were
    its count: the pane that had the keys has them again, and the movement is made as often. Arrows take no count: a
    digit and an arrow are a pane and a movement in it. As long as the moment lasts, the line of keys says what would be
    counted; the key for back, escape, ends it.

    Attributes:
        moment: Seconds between a digit and what it belongs to.
    """

    def __init__(self, explored: Exploration, presenter: Presenter) -> None:
        self.moment = MOMENT
        self._explored, self._presenter, self._screen = explored, presenter, presenter.panes.screen
        self._digits, self._since = "", 0.0
        self._view: ViewState | None = None
        self._timer: Timer | None = None

    def takes(self, event: Key) -> bool:
        """Whether a key ends a count, or was made as often as one said."""
        if self._digits and event.time - self._since > self.moment:
            self.end()
        if event.character is not None and event.character.isascii() and event.character.isdecimal():
            self._digit(event.character, event.time)
            return False
        digits = self._digits
        if digits:
            self.end()
        app = self._screen.app
        if digits and event.key in keys_of(app, ("back",)):
            return True
        if not digits or event.key in ARROWS or event.key not in keys_of(app, COUNTED):
            return False
        before, now = self._view, self._explored.view
        if before is not None and (before.active, before.whole, before.zoom) != (now.active, now.whole, now.zoom):
            self._explored.change_view(whole=before.whole, zoom=before.zoom)
            self._presenter.focus(before.active)  # as before the first digit

        def type_it() -> None:
            """Type the key so often; called by the app, since what a screen sends goes no further than the screen."""
            for _ in range(int(digits)):
                app.post_message(Key(event.key, event.character))

        app.call_later(type_it)
        return True

    def _digit(self, digit: str, now: float) -> None:
        """Say the count, until the moment is over."""
        if not self._digits:
            self._view = self._explored.view
            if digit == "0":
                return
        self._digits, self._since = (self._digits + digit)[-3:], now
        self._presenter.lines.count(self._digits)
        if self._timer is not None:
            self._timer.stop()
        self._timer = later(self._screen, self.moment, self.end)

    def end(self) -> None:
        """Count no key that is typed next."""
        if self._digits:
            self._digits = ""
            self._presenter.lines.count("")


REPLIES: Mapping[type[Message], Callable[[Parts, Any], None]] = {
    HeatMap.Moved: lambda parts, event: parts.presenter.move_cell(*event.control.at),  # it may show another step now
    HeatMap.Chosen: lambda parts, _: parts.navigation.look_inside(),
    HeatMap.Sized: lambda parts, event: parts.navigation.look(cell_width=event.width),
    HeatMap.TileNeeded: lambda parts, event: parts.presenter.supply_tile(event.rows, event.columns, event.heat_map),
    HeadsPane.Chosen: lambda parts, _: parts.navigation.look_inside(),
    HeadsPane.Moved: lambda parts, event: parts.navigation.go_to_cell(head=event.index),
    StepsPane.Entered: lambda parts, _: parts.presenter.focus("matrix"),
    StepsPane.Visited: lambda parts, event: parts.navigation.go_to_stop(event.to),
    WholePane.Visited: lambda parts, event: parts.navigation.go_into(event.step, event.head, event.row),
    WholePane.Chosen: lambda parts, _: parts.navigation.look_inside(),
    CellPane.Followed: lambda parts, event: parts.navigation.follow_operand(event.operand),
    VocabularyPane.EntryChosen: lambda parts, event: parts.navigation.follow(row_of_word(event.token_id)),
    SentencePane.Chosen: lambda parts, event: parts.navigation.go_to_token(event.which, event.place),
    SentencePane.Opened: lambda parts, event: parts.editing.ask("target" if event.which else "sentence"),
    TourPanel.Next: lambda parts, _: parts.tour.go(1),
    TourPanel.Back: lambda parts, _: parts.tour.go(-1),
    TourPanel.Left: lambda parts, _: parts.tour.leave(),
    TourPanel.Answered: lambda parts, _: parts.tour.answer(),
}
"""Every message that the main screen hears."""


class MainScreen(ExplorerScreen[None]):
    """Panes around one position in one session.

    Attributes:
        parts: What it is made of, and what it explores.
    """

    ACTIONS = SCREENS["main"]
    AUTO_FOCUS = ""
    CSS_PATH = "screen.tcss"

    def __init__(
        self, session: Session, worker: Worker, background: Background, view: ViewState, at: Position | None = None
    ) -> None:
        super().__init__()
        self.parts = Parts(self, Exploration.begun(session, at, view), worker, background)

    @property
    def settled(self) -> bool:
        return super().settled and self.parts.presenter.settled and self.parts.requests.settled

    def compose(self) -> ComposeResult:
        """All panes, of which those that there is room for are shown from the start."""
        explored, size = self.parts.explored, Size(*self.app.size)
        arranged = partial(arrange, size, explored.session, explored.position)
        explored.change_view(active="whole" if arranged(explored.view, (), None).whole else "matrix")
        self.parts.panes.lay_out(arranged(explored.view, (), None))
        text, vocabulary, cell = TextPane(id="text"), VocabularyPane(id="vocabulary"), CellPane(id="cell")
        read_style_sheets(self.app, (text, vocabulary, cell))  # which say something of widgets of other kinds
        yield TextLine(id="title")
        yield SentencePane(id="sentence")
        yield WholePane(id="whole")
        yield TextLine(id="crumbs")
        with Horizontal(id="body"):
            yield StepsPane(id="steps")
            with Vertical(id="middle"):
                yield HeadsPane(id="heads")
                yield MatrixPair(id="pair")
                yield vocabulary
                yield text
                yield ChartPane(id="chart")
            with Vertical(id="side"):
                yield cell
                yield Static(id="about", markup=False)
        for name in ("summary", "tabs", "keys"):
            yield Static(id=name, markup=False)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.parts.presenter.lines.restyle())
        self.parts.panes.begin()
        self.parts.explored.stay()
        self.parts.presenter.focus("whole" if self.parts.panes.whole else "matrix")

    def on_key(self, event: Key) -> None:
        """The line that opened gives way to the keys; digits before a movement are its count."""
        lines = self.parts.presenter.lines
        if lines.opening:
            lines.opening = False
            lines.show_again()
        if self.parts.counting.takes(event):
            event.stop()

    def on_resize(self) -> None:
        shown = self.parts.explored.scene
        if shown is None or shown.size != Size(*self.app.size):
            self.parts.presenter.show_now()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click goes to a pane as its digit does."""
        presenter, active = self.parts.presenter, self.parts.panes.arrangement.active
        pane = INSIDE.get(place_of(event.widget) or "")
        if event.widget is self.focused and pane not in (None, active):
            presenter.activate(pane)
        else:
            presenter.lines.show_again()

    def _reply(self, event: Message) -> None:
        REPLIES[type(event)](self.parts, event)

    for _kind in REPLIES:
        on(_kind)(_reply)

    # Actions, which shell/actions/main.py gives keys and titles, by the part that does them

    action_step = property(lambda self: self.parts.navigation.step)
    action_pane = property(lambda self: self.parts.navigation.go_to_pane)
    action_next_pane = property(lambda self: self.parts.navigation.turn_pane)
    action_back = property(lambda self: self.parts.navigation.back)
    action_go = property(lambda self: self.parts.navigation.ask_where)
    action_find = property(lambda self: self.parts.navigation.ask_what)
    action_match = property(lambda self: self.parts.navigation.go_to_match)

    action_tour = property(lambda self: self.parts.tour.begin_or_leave)
    action_predict = property(lambda self: self.parts.predict)

    action_history = property(lambda self: self.parts.editing.turn_back)
    action_edit = property(lambda self: self.parts.editing.ask)
    action_backward = property(lambda self: self.parts.editing.turn_around)

    action_export = property(lambda self: self.parts.export.to_file)
    action_copy = property(lambda self: self.parts.export.copy)
    action_record = property(lambda self: self.parts.recording.begin_or_end)
    action_bookmark = property(lambda self: self.parts.export.bookmark)

    def action_navigate(self, way: str, first: int | str | None = None, second: int | None = None) -> None:
        """Move, or look, in a way that is called so in `Navigation`; Textual counts the parameters that there are."""
        getattr(self.parts.navigation, way)(*(each for each in (first, second) if each is not None))

    def action_menu(self, name: str) -> None:
        explored, actions = self.parts.explored, {action.id: action.action for action in self.ACTIONS}

        def do(meaning: str | None) -> None:
            if meaning is not None:
                self.call_next(self.run_action, actions[meaning])

        lines = entries(name, explored.session, explored.position.stop, explored.step, self.ACTIONS)
        self.open(MenuScreen(MENUS[name].title.capitalize(), lines), do)

    async def action_first_row(self) -> None:
        if isinstance(self.focused, GridWidget):
            await self.focused.run_action("edge(-1, 0)")

    def action_open(self, name: str) -> None:
        open_tool(name, self.parts.port)

    def commands(self) -> Iterable[SystemCommand]:
        """Commands of the palette that are no actions: every step, the models and tours of the program, settings."""
        for number, stop in enumerate(self.parts.explored.session.stops, 1):
            words = step_text(stop)
            name = "" if stop in (VOCABULARY, TEXT, LOSS) else f" · {stop}"
            go = partial(self.parts.navigation.go_to_stop, stop)
            yield SystemCommand(f"Step {number}: {words.label}{name}", words.what or "go to the step", go)
        yield from (SystemCommand(*command) for command in palette_commands(self.parts.port))

    @property
    def help_page(self) -> str:
        """The step that is shown, the keys of the focused pane, and those of every pane, as Markdown."""
        session, stop = self.parts.explored.session, self.parts.explored.position.stop
        meaning = about(session, stop, first_key(self.app, "tour")).replace("\n", "\n\n")
        active = self.parts.panes.arrangement.active
        topic = VOCABULARY if active == "matrix" and stop == VOCABULARY else active
        return f"# {stop_title(session, stop)}\n\n{meaning}\n\n{help_text(topic)}\n\n{help_text('general')}"
