"""A list of any number of lines, each made when it comes on screen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_transformer.explorer.widgets.content_size import set_content_size
from tui_transformer.text.display import visible


class LineList(ScrollView, can_focus=True):
    """Lines with a cursor, of which a filter may show some only."""

    HELP = """\
## List

| key | does |
|---|---|
| ↑ ↓ or k j | one line |
| page up, page down | one screen |
| home, end or g, G | first and last line |
| enter | choose the line |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False, id="list.up", tooltip="One line up"),
        Binding("down,j", "step(1)", "Down", show=False, id="list.down", tooltip="One line down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="list.page-up", tooltip="One screen up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="list.page-down", tooltip="One screen down"),
        Binding("home,g", "edge('first')", "First", show=False, id="list.first", tooltip="The first line"),
        Binding("end,G", "edge('last')", "Last", show=False, id="list.last", tooltip="The last line"),
        Binding("enter", "choose", "Choose", show=False, id="list.choose", tooltip="Choose the line"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor", "line-list--highlighted"}

    DEFAULT_CSS = """
    LineList {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size: 1 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        & > .line-list--cursor { background: $accent 25%; color: $foreground; text-style: bold; }
        & > .line-list--highlighted { color: $accent; text-style: bold; }
        &:focus > .line-list--cursor { background: $accent; color: $background; }
        &:ansi > .line-list--cursor { text-style: bold reverse; }
        &:nocolor > .line-list--cursor { text-style: bold reverse; background: $background; color: $foreground; }
    }
    """

    class _LineMessage(Message):
        def __init__(self, line_list: LineList, index: int) -> None:
            super().__init__()
            self.line_list = line_list
            self.index = index

        @property
        def control(self) -> LineList:
            """The list that sent the message."""
            return self.line_list

    class Moved(_LineMessage):
        """The user moved the cursor to a line."""

    class Chosen(_LineMessage):
        """The user chose a line."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make an empty list."""
        super().__init__(name=name, id=id, classes=classes)
        self._line: Callable[[int], Text] = lambda _: Text()
        self._lines: Sequence[int] = range(0)
        self._count = 0
        self._highlighted: Collection[int] = frozenset()
        self._at = 0
        self._plain = Style()

    def show(self, count: int, line: Callable[[int], Text], *, highlighted: Collection[int] = frozenset()) -> None:
        """Show lines.

        Args:
            count: How many there are.
            line: Makes a line from its index; never read as markup.
            highlighted: The lines to stand out.
        """
        self._count, self._line, self._highlighted = count, line, highlighted
        self.filter(None)

    def filter(self, indices: Sequence[int] | None) -> None:
        """Show only these lines, in this order; None for all. The cursor stays on its line where that is shown."""
        current = self.cursor
        self._lines = range(self._count) if indices is None else indices
        at = self._lines.index(current) if current is not None and current in self._lines else self._at
        self._at = max(min(at, len(self._lines) - 1), 0)
        set_content_size(self, Size(0, len(self._lines)))
        self.refresh()
        self._scroll_to_cursor()

    def highlight(self, indices: Collection[int]) -> None:
        """Make these lines stand out, and no others."""
        self._highlighted = indices
        self.refresh()

    @property
    def cursor(self) -> int | None:
        """The index of the line under the cursor, None in an empty list; setting it scrolls the line into view.

        A line that the filter leaves out cannot be under the cursor: setting it changes nothing.
        """
        return self._lines[self._at] if self._at < len(self._lines) else None

    @cursor.setter
    def cursor(self, index: int | None) -> None:
        if index is not None and index in self._lines:
            self._go(self._lines.index(index))

    def action_step(self, lines: int) -> None:
        """Move the cursor by lines."""
        self._move(self._at + lines)

    def action_page(self, screens: int) -> None:
        """Move the cursor by screens."""
        self._move(self._at + screens * max(self._height - 1, 1))

    def action_edge(self, which: str) -> None:
        """Move the cursor to the first or the last line."""
        self._move(0 if which == "first" else len(self._lines) - 1)

    def action_choose(self) -> None:
        """Choose the line under the cursor."""
        if (index := self.cursor) is not None:
            self.post_message(self.Chosen(self, index))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the line that is clicked; a double click chooses it."""
        place = event.get_content_offset(self)
        if place is None or place.y + self.scroll_offset.y >= len(self._lines):
            return
        self._move(place.y + self.scroll_offset.y)
        if event.chain == 2:
            self.action_choose()

    def on_resize(self) -> None:
        """Keep the cursor on screen."""
        self._scroll_to_cursor()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; the style of the widget, which is costly to ask for, is the same for all."""
        self._plain = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget."""
        at, width, style = y + self.scroll_offset.y, self.size.width, self._plain
        if at >= len(self._lines):
            return Strip.blank(width, style)
        index = self._lines[at]
        segments = self._segments(index)
        if index in self._highlighted:
            segments = _styled_over(segments, self, "line-list--highlighted")
        if at == self._at:
            style = self.get_component_rich_style("line-list--cursor")
            segments = _styled_over(segments, self, "line-list--cursor")
        return Strip(list(Segment.apply_style(segments, self._plain))).adjust_cell_length(width, style)

    @property
    def _height(self) -> int:
        return self.container_size.height - self.scrollbar_size_horizontal

    def _segments(self, index: int) -> list[Segment]:
        text = self._line(index).copy()
        if not text.plain.isprintable():
            text = Text(visible(text.plain), style=text.style)
        text.truncate(max(self.size.width - self.scrollbar_size_vertical, 0), overflow="ellipsis")
        console = self.app.console
        text.end = ""
        return list(Segment.apply_style(text.render(console), console.get_style(text.style)))

    def _move(self, at: int) -> None:
        at = max(min(at, len(self._lines) - 1), 0)
        if at != self._at:
            self._go(at)
            self.post_message(self.Moved(self, self._lines[at]))

    def _go(self, at: int) -> None:
        for line in (self._at, at):
            self.refresh(Region(0, line - self.scroll_offset.y, self.size.width, 1))
        self._at = at
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        if self._height <= 0:
            return
        top = self.scroll_offset.y
        target = max(min(top, self._at), self._at - self._height + 1)
        if target != top:
            self.scroll_to(y=target, animate=False, force=True)


def _styled_over(segments: list[Segment], widget: LineList, component: str) -> list[Segment]:
    style = widget.get_component_rich_style(component)
    return list(Segment.apply_style(segments, post_style=style))
