"""The base of the screens about a whole model: title, content, two lines on what is selected, keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.tools import OVERVIEW
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.keymap import key_line
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.text.display import cells, visible
from tui_transformer.text.known_words import unknown_named
from tui_transformer.views.step_view import Place


class Overview(ExplorerScreen[None]):
    """A screen beside the main one, about every layer of what is explored there.

    Attributes:
        session: What was explored when this was opened: a change that was under way then comes later.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(OVERVIEW)

    DEFAULT_CSS = """
    Overview {
        layout: vertical;
        background: $background;
        #overview-title, #overview-keys { height: 1; width: 1fr; background: $surface; }
        #overview-content { height: 1fr; width: 1fr; border: round $accent; border-title-color: $accent; }
        #overview-content { border-title-style: bold; border-subtitle-color: $foreground 70%; }
        #overview-detail { height: 2; width: 1fr; padding: 0 1; }
        &.-narrow #overview-detail { height: 4; }
        &.-short #overview-detail { height: 1; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - the base class has them so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall")]  # noqa: RUF012 - the base class has them so
    KIND = ""
    pieces: Pieces[Any, Any] | None = None
    """The work that is done bit by bit."""

    def __init__(self, port: Port) -> None:
        super().__init__()
        self.port, self.worker, self.session = port, port.worker, port.session
        self.requests = Requests(self, port.worker, self.show_lines, lambda: self.session.model.backend.device == "cpu")

    @property
    def settled(self) -> bool:
        """Whether no piece of work is about to be done, and the screen says so."""
        return self.requests.settled and (self.pieces is None or self.pieces.idle)

    def change(self, changed: Callable[[Session], Session]) -> None:
        """Change what is explored, here and on the main screen, where it may be another sentence by now."""
        same = self.port.session is self.session
        self.session = changed(self.session)
        self.port.change(self.session if same else changed(self.port.session))

    def left_out(self) -> Collection[str]:
        """The actions that are of no use now, and not in the line of keys."""
        return ()

    def compose(self) -> ComposeResult:
        """Title, content, detail, keys."""
        yield Static(id="overview-title", markup=False)
        with Vertical(id="overview-content"):
            yield from self.content()
        yield Static(id="overview-detail", markup=False)
        yield Static(id="overview-keys", markup=False)

    def content(self) -> ComposeResult:
        """The widgets that are shown."""
        yield from ()

    def about(self) -> str:
        """Subject of the screen; in the title."""
        unknown = ", ".join(filter(None, map(unknown_named, self.session.sequences.values())))
        told = f" · not in the vocabulary: {unknown}" if unknown else ""
        return f"tui-transformer   {self.session.model.name} · {self.session.model.config.summary}{told}"

    def heading(self) -> str:
        """Text of the border."""
        return ""

    def note(self) -> str:
        """Remark on all that is shown; in the lower border."""
        return ""

    def detail(self) -> tuple[str, str]:
        """Two lines on what is selected."""
        return "", ""

    def told(self) -> Content:
        """The two lines as they are drawn; more of them where a screen has room."""
        first, second = self.detail()
        return Content.assemble((visible(first), "bold"), "\n", (visible(second), "$foreground 75%"))

    def progress(self) -> str:
        """How much is there already."""
        return ""

    def show_lines(self) -> None:
        """Title, borders, detail and keys."""
        if not self.is_mounted:
            return
        content = self.query_one("#overview-content")
        content.border_title = Content(visible(self.heading()))
        content.border_subtitle = Content(visible(self.note()))
        self.query_one("#overview-title", Static).update(self._title_line(), layout=False)
        self.query_one("#overview-detail", Static).update(self.told(), layout=False)
        left_out = self.left_out()
        named = [action for action in (*self.ACTIONS, *OVERVIEW) if action.id not in left_out]
        self.query_one("#overview-keys", Static).update(key_line(named, self.app, self.size.width), layout=False)

    def _title_line(self) -> Content:
        left = f" {visible(self.about())}"
        right = f"{self.requests.doing or self.progress()} "
        room = max(self.size.width - cells(right) - 1, 0)
        line = Text(left)
        line.truncate(room, overflow="ellipsis", pad=True)
        return Content.assemble((line.plain, "$foreground 70%"), " ", (visible(right), "bold"))

    def on_resize(self) -> None:
        """Say as much as there is room for."""
        self.show_lines()

    def action_leave(self) -> None:
        """Back to the main screen."""
        self.worker.cancel(self.KIND)
        self.dismiss(None)


def leave_to(screen: Overview, stop: str, head: int = 0, row: int | None = None, column: int | None = None) -> None:
    """Back to the main screen, at a cell of a step; where no cell is named it stays where it was."""
    place = screen.port.position.place
    cell = Place(head, place.row if row is None else row, place.column if column is None else column)
    screen.action_leave()
    screen.port.visit(Position(stop, cell))


def joined(values: Mapping[str, str]) -> str:
    """Names and values in one line."""
    return "   ".join(f"{name} {value}" for name, value in values.items())


def part_shown(what: str, shown: range, count: int) -> str:
    """The part of so many things that is on screen, in words."""
    if len(shown) >= count:
        return f"all {count:,} {what}s" if count > 1 else f"1 {what}"
    return f"{what}s {shown.start:,} to {shown.stop - 1:,} of {count:,}"
