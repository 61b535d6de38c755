"""The main screen: it composes the panes, and passes keys and messages on to the parts that it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.events import DescendantFocus, Key, Resize
from textual.message import Message

from tui_transformer.explorer.main.layout import compose_panes, pane_of
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.main.parts import REPLIES, Parts
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.tools.opening import TOOLS, palette_commands
from tui_transformer.guide.texts import help_text, step_text
from tui_transformer.session.pane_fit import arrange
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.view_state import Size, ViewState


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
        self.parts = Parts(self, session, worker, background, view, at)

    @property
    def settled(self) -> bool:
        """Whether the screen shows the state."""
        return super().settled and self.parts.presenter.settled and self.parts.requests.settled

    def compose(self) -> ComposeResult:
        """The panes that there is room for are shown from the start."""
        explored = self.parts.explored
        size = Size(*self.app.size)
        self.parts.panes.lay_out(arrange(size, explored.session, explored.position, explored.view, (), None))
        yield from compose_panes()

    def on_mount(self) -> None:
        """Name the panes and show the first stop."""
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

    def on_resize(self, event: Resize) -> None:
        """Show all panes, some, or one at a time, as the size allows."""
        del event  # the size is that of the screen
        shown = self.parts.explored.scene
        if shown is None or shown.size != Size(*self.app.size):
            self.parts.presenter.show_now()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click goes to a pane as its digit does."""
        presenter, active = self.parts.presenter, self.parts.panes.arrangement.active
        pane = pane_of(event.widget)
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
    action_head = property(lambda self: self.parts.navigation.turn_head)
    action_pane = property(lambda self: self.parts.navigation.go_to_pane)
    action_next_pane = property(lambda self: self.parts.navigation.turn_pane)
    action_weights = property(lambda self: self.parts.navigation.follow_weights)
    action_first_difference = property(lambda self: self.parts.navigation.follow_first_difference)
    action_back = property(lambda self: self.parts.navigation.back)
    action_vocabulary = property(lambda self: self.parts.navigation.follow_vocabulary)
    action_go = property(lambda self: self.parts.navigation.ask_where)

    action_shown = property(lambda self: self.parts.navigation.next_shown)
    action_next_chart = property(lambda self: self.parts.navigation.next_chart)
    action_scale = property(lambda self: self.parts.navigation.share_scale)
    action_hide = property(lambda self: self.parts.navigation.hide)
    action_zoom = property(lambda self: self.parts.navigation.zoom)
    action_whole = property(lambda self: self.parts.navigation.turn_whole)
    action_tour = property(lambda self: self.parts.tour.begin_or_leave)
    action_predict = property(lambda self: self.parts.predicting.ask)

    action_history = property(lambda self: self.parts.editing.turn_back)
    action_edit = property(lambda self: self.parts.editing.ask)
    action_backward = property(lambda self: self.parts.editing.turn_around)

    action_export = property(lambda self: self.parts.export.to_file)
    action_copy = property(lambda self: self.parts.export.copy)
    action_bookmark = property(lambda self: self.parts.export.bookmark)

    def action_open(self, name: str) -> None:
        """The tool of this name."""
        TOOLS[name](self.parts.port)

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
        about = texts.about(session, stop, first_key(self.app, "tour")).replace("\n", "\n\n")
        active = self.parts.panes.arrangement.active
        topic = VOCABULARY if active == "matrix" and stop == VOCABULARY else active
        title = texts.stop_title(session, stop)
        return f"# {title}\n\n{about}\n\n{help_text(topic)}\n\n{help_text('general')}"
