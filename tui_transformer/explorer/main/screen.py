"""The main screen: it composes the panes, and passes keys and messages on to the parts that it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.events import DescendantFocus, Key, Resize
from textual.message import Message

from tui_transformer.engine.program import Grain
from tui_transformer.explorer.main.layout import compose_panes
from tui_transformer.explorer.main.parts import assemble
from tui_transformer.explorer.main.replies import REPLIES
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.explorer.state.view_state import ViewState
from tui_transformer.explorer.tools.opening import TOOLS


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
        """Show a session from a position, by default its first stop."""
        super().__init__()
        self.parts = assemble(self, session, worker, background, view, at)

    @property
    def settled(self) -> bool:
        """Whether charts and heads follow what is shown."""
        return super().settled and not self.parts.presenter.details.due

    def compose(self) -> ComposeResult:
        """The panes that there is room for are shown from the start."""
        self.parts.panes.fit(self.app.size)
        yield from compose_panes()

    def on_mount(self) -> None:
        """Name the panes and show the first stop."""
        self.parts.panes.begin()
        self.parts.explored.change_view(active="whole" if self.parts.panes.whole else "matrix")
        self.parts.presenter.show_session()
        self.parts.panes.focus(self.parts.explored.view.active)
        self.parts.presenter.lines.opening.begin(self.parts.explored.session)

    def on_key(self, event: Key) -> None:
        """The line that opened gives way to the keys; digits before a movement are its count."""
        self.parts.presenter.lines.opening.end()
        if self.parts.counting.takes(event):
            event.stop()

    def on_resize(self, event: Resize) -> None:
        """Show all panes, some, or one at a time, as the size allows."""
        panes, presenter = self.parts.panes, self.parts.presenter
        was = panes.shown
        panes.fit(event.size)
        presenter.lines.show()
        presenter.whole.show()
        if panes.shown != was:
            presenter.show_position()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click goes to a pane as its digit does."""
        self.parts.panes.focused(event.widget)
        self.parts.presenter.lines.show()

    def _reply(self, event: Message) -> None:
        """Do what a pane asks for."""
        REPLIES[type(event)](self.parts, event)

    for _kind in REPLIES:
        on(_kind)(_reply)

    def commands(self) -> Iterable[SystemCommand]:
        """Commands of the palette that are no actions."""
        from tui_transformer.explorer.main.commands import commands

        return commands(self.parts)

    # Moving

    def action_step(self, grain: Grain, direction: int) -> None:
        """The next or previous operation, sublayer or layer."""
        self.parts.navigation.step(grain, direction)

    def action_head(self, direction: int) -> None:
        """The next or previous head."""
        self.parts.navigation.turn_head(direction)

    def action_pane(self, name: str) -> None:
        """Go to a pane; the whole gives way to one that has no room beside it."""
        if self.parts.panes.whole and name not in self.parts.panes.names():
            self.parts.view_changes.turn_whole()
        self.parts.panes.focus(name)

    def action_next_pane(self, direction: int) -> None:
        """The next or previous pane."""
        self.parts.panes.focus_next(direction)

    def action_weights(self) -> None:
        """The first weight that the step reads, and back."""
        self.parts.navigation.follow_weights()

    def action_first_difference(self) -> None:
        """The first step that differs in what is compared."""
        self.parts.navigation.follow_first_difference()

    def action_back(self) -> None:
        """End a computation; else go back where a term was followed from; else to the matrix."""
        if self.parts.requests.cancel_all():
            self.parts.navigation.return_to_shown()
        elif self.parts.explored.view.zoom is not None:
            self.parts.view_changes.zoom()
        else:
            self.parts.navigation.back()

    def action_vocabulary(self) -> None:
        """The vocabulary; from there, another one."""
        if self.parts.port.position.stop == VOCABULARY:
            self.action_open("vocabulary")
        else:
            self.parts.navigation.follow_vocabulary()

    def action_go(self) -> None:
        """Another step, by name or number."""
        self.parts.navigation.ask_where()

    # Looking

    def action_shown(self) -> None:
        """Values and what is beside them; then one of them alone, or the difference."""
        self.parts.view_changes.next_shown()

    def action_next_chart(self) -> None:
        """The next chart of those that fit the step."""
        self.parts.view_changes.next_chart()

    def action_scale(self) -> None:
        """One scale for all layers, or one a step."""
        self.parts.view_changes.share_scale()

    def action_hide(self, which: str) -> None:
        """Special tokens, or the first, left out of attention weights."""
        self.parts.view_changes.hide(which)

    def action_tour(self) -> None:
        """The tour of what is explored, and its end."""
        self.parts.tour.begin_or_leave()

    def action_predict(self) -> None:
        """A question on the step that is shown."""
        self.parts.predicting.ask()

    def action_zoom(self) -> None:
        """The pane that has the keys in the whole terminal, and back."""
        self.parts.view_changes.zoom()

    def action_whole(self) -> None:
        """The whole above the step, and the lists of steps and heads instead."""
        self.parts.view_changes.turn_whole()

    # Changing

    def action_history(self, way: Literal["undo", "redo"]) -> None:
        """The last change taken back, or made again."""
        editing = self.parts.editing
        {"undo": editing.undo, "redo": editing.redo}[way]()

    def action_edit(self, what: Literal["sentence", "target", "cell"]) -> None:
        """Another sentence, another target for a decoder, or the cell under the cursor set by hand."""
        editing = self.parts.editing
        {"sentence": editing.sentence, "target": editing.target, "cell": editing.cell}[what]()

    def action_backward(self) -> None:
        """Backwards from the loss, or forwards again; targets are asked for where none were set."""
        if not self.parts.editing.turn_around():
            self.action_open("targets")

    # Taking values out

    def action_export(self) -> None:
        """Export the view that is shown to a file."""
        self.parts.export.to_file()

    def action_copy(self, what: Literal["cell", "row"]) -> None:
        """The value of the cell or its row, to the clipboard."""
        export = self.parts.export
        {"cell": export.copy_cell, "row": export.copy_row}[what]()

    def action_bookmark(self) -> None:
        """The place, as a stop of a lecture."""
        self.parts.bookmark.keep()

    # Screens of their own

    def action_open(self, name: str) -> None:
        """The tool of this name."""
        TOOLS[name](self.parts.port)

    @property
    def help_page(self) -> str:
        """The step that is shown, the keys of the focused pane, and those of every pane."""
        from tui_transformer.guide.texts import help_text

        active = self.parts.explored.view.active
        topic = VOCABULARY if active == "matrix" and self.parts.port.position.stop == VOCABULARY else active
        return f"{self.parts.presenter.about}\n\n{help_text(topic)}\n\n{help_text('general')}"
