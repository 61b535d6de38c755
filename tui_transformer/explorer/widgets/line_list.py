"""A list of any number of lines, each made when it comes on screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import LINE_KEYS, Grid, GridWidget
from tui_transformer.explorer.widgets.labels import segments_of
from tui_transformer.text.display import visible

Parts = tuple[tuple[str, Style], ...]
"""The texts of a line, each in a style."""

NOWHERE = (-1, 0)
"""The place of a cursor that is on no line."""


class LineList(GridWidget, can_focus=True):
    """Lines with a cursor, of which a filter may show some only."""

    BINDINGS = LINE_KEYS
    kept_lines = 1
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor"}

    DEFAULT_CSS = """
    LineList {
        overflow-x: hidden;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        & > .line-list--cursor { background: $accent 25%; color: $foreground; text-style: bold; }
        &:focus > .line-list--cursor { background: $accent; color: $background; }
        &:ansi > .line-list--cursor { text-style: bold reverse; }
        &:nocolor > .line-list--cursor { text-style: bold reverse; background: $background; color: $foreground; }
    }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.line_at: Callable[[int], Text | Parts] = lambda _: ()
        self._lines: Sequence[int] = range(0)
        self._count = 0
        self._strips: dict[tuple[object, ...], Strip] = {}

    def show(self, count: int, line: Callable[[int], Text | Parts]) -> None:
        """Show so many lines, each made from its index, and never read as markup."""
        self._count, self.line_at = count, line
        self.filter(None)

    def filter(self, indices: Sequence[int] | None) -> None:
        """Show only these lines, in this order; None for all. The cursor stays on its line where that is shown."""
        current, nowhere = self.cursor, self.at == NOWHERE
        self._lines = range(self._count) if indices is None else indices
        if current is not None and current in self._lines:
            self.at = self._lines.index(current), 0
        self.lay_out(Grid(len(self._lines), 1, max(self.size.width, 1), 1, gutter=0, header=0))
        if nowhere:
            self.cursor = None

    @property
    def cursor(self) -> int | None:
        """The index of the line under the cursor, None where there is none; setting it scrolls the line into view.

        Set to None it is on no line until it is moved. A line that the filter leaves out cannot be under the cursor:
        setting it changes nothing.
        """
        return self._lines[self.at[0]] if 0 <= self.at[0] < len(self._lines) else None

    @cursor.setter
    def cursor(self, index: int | None) -> None:
        if index is None:
            self.at = NOWHERE
            self.refresh()
        elif index in self._lines:
            self.put((self._lines.index(index), 0))

    @property
    def index(self) -> int:
        return self._lines[self.at[0]]

    def on_resize(self) -> None:
        self.filter(self._lines)

    def render_line(self, y: int) -> Strip:
        seen, ground = self.seen, self.ink()
        at = y + seen.scroll.y
        if at >= len(self._lines):
            return Strip.blank(seen.size.width, ground)
        line = self.line_at(self._lines[at])
        if at != self.at[0]:
            return self.strip_of(line)
        style = self.ink("line-list--cursor")
        segments = self.under_cursor(self._segments(line), style)
        return Strip(list(Segment.apply_style(segments, ground))).adjust_cell_length(seen.size.width, style)

    def under_cursor(self, segments: list[Segment], style: Style) -> list[Segment]:
        return list(Segment.apply_style(segments, post_style=style))

    def strip_of(self, line: Text | Parts) -> Strip:
        """A line; many are the same after a key."""
        seen, ground = self.seen, self.ink()
        width = seen.size.width
        key = line if isinstance(line, tuple) else (line.plain, line.style, *line.spans), ground, width, seen.bar
        if (strip := self._strips.get(key)) is None:
            if len(self._strips) >= 256:
                self._strips.clear()
            strip = Strip(self._segments(line, ground)).adjust_cell_length(width, ground)
            self._strips[key] = strip
        return strip

    def _segments(self, line: Text | Parts, ground: Style | None = None) -> list[Segment]:
        room, console = max(self.seen.size.width - self.seen.bar, 0), self.app.console
        if isinstance(line, tuple):
            if all(text.isprintable() for text, _ in line) and sum(cell_len(text) for text, _ in line) <= room:
                return [Segment(text, style if ground is None else ground + style) for text, style in line if text]
            line = Text.assemble(*line)
        if not line.plain.isprintable():
            line = Text(visible(line.plain), style=line.style)
        if line.cell_len > room:
            line = line.copy()
            line.truncate(room, overflow="ellipsis")
        return segments_of(line, console, ground)
