"""Widgets of cells in rows and columns: where the cells lie, and the cursor over them with its keys and messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.guard.failures import careful
from tui_transformer.explorer.guard.scroll_bars import keep_bars, set_content_size
from tui_transformer.records import dataclass

Cell = tuple[int, int]
"""A row and a column."""


def _key(name: str, keys: str, action: str, says: str) -> Binding:
    """Keys of the cursor; their name, by which the user can change them, is the same in every widget."""
    return Binding(keys, action, says, show=False, id=f"cursor.{name}", tooltip=says)


ACROSS = (
    _key("left", "left,h", "step(0, -1)", "Cursor left"),
    _key("right", "right,l", "step(0, 1)", "Cursor right"),
)
DOWN = (
    _key("up", "up,k", "step(-1, 0)", "Cursor up"),
    _key("down", "down,j", "step(1, 0)", "Cursor down"),
)
TO_ENDS = (
    _key("top", "ctrl+home", "edge(-1, 0)", "First row"),
    _key("bottom", "G", "edge(1, 0)", "Last row"),
)
ROW_ENDS = (
    _key("row-start", "home", "edge(0, -1)", "First column"),
    _key("row-end", "end", "edge(0, 1)", "Last column"),
)
ENDS = (_key("row-start", "home", "edge(-1, 0)", "First row"), _key("row-end", "end", "edge(1, 0)", "Last row"))
PAGES = (
    _key("page-up", "pageup", "page(-1.0)", "One screen up"),
    _key("page-down", "pagedown", "page(1.0)", "One screen down"),
    _key("half-up", "ctrl+u", "page(-0.5)", "Half a screen up"),
    _key("half-down", "ctrl+d", "page(0.5)", "Half a screen down"),
)
ZOOM = (
    _key("wider", "plus,equals_sign", "zoom(1)", "Larger cells"),
    _key("narrower", "minus", "zoom(-1)", "Smaller cells"),
)
CHOOSE = _key("choose", "enter", "choose", "Choose what is under the cursor")
CELL_KEYS: list[BindingType] = [*ACROSS, *ROW_ENDS, *DOWN, *PAGES, *TO_ENDS, *ZOOM, CHOOSE]
ROW_KEYS: list[BindingType] = [*ACROSS, *ROW_ENDS, CHOOSE]
LINE_KEYS: list[BindingType] = [*DOWN, *PAGES, *TO_ENDS, *ENDS, CHOOSE]
"""The keys of widgets with cells in rows and columns, in one row, and in lines."""

CURSOR_KEYS = {str(each.id): each.key for each in (*ACROSS, *DOWN, *TO_ENDS, *ROW_ENDS, *PAGES, *ZOOM, CHOOSE)}
"""The keys of each meaning; the table of all keys takes them from here."""


def next_size(sizes: Sequence[int], size: int, direction: int) -> int | None:
    """The next larger (1) or smaller (−1) of the sizes in ascending order, None past the ends."""
    if direction > 0:
        return next((each for each in sizes if each > size), None)
    return next((each for each in reversed(sizes) if each < size), None)


@dataclass(frozen=True)
class Grid:
    """Cells of `cell_width` columns × `cell_height` lines, right of the row labels and below the column labels.

    The labels stay while the cells scroll. `slack` are columns, and `slack_lines` lines, behind the last cell, so that
    the last scroll starts with a whole one. Where rows are folded, blocks of `block` rows, each with its labels, stand
    beside each other, and all of them are on the screen.
    """

    rows: int
    columns: int
    cell_width: int
    cell_height: int
    gutter: int
    header: int
    slack: int = 0
    slack_lines: int = 0
    block: int = 0

    @cached_property
    def block_width(self) -> int:
        """Columns of a block, labels included."""
        return self.gutter + self.columns * self.cell_width

    @cached_property
    def virtual_size(self) -> Size:
        """Size of all cells with their labels and the slack."""
        down, across = self.block or self.rows, -(-self.rows // self.block) if self.block else 1
        width, height = self.block_width * across, self.header + down * self.cell_height
        return Size(width + self.slack, height + self.slack_lines)

    @cached_property
    def text_line(self) -> int:
        """The line of a cell that holds its number."""
        return (self.cell_height - 1) // 2

    def visible(self, scroll: Offset, size: Size) -> tuple[range, range]:
        """The rows and columns that are at least partly on screen."""
        down = scroll.y, size.height - self.header, self.cell_height, self.rows
        across = scroll.x, size.width - self.gutter, self.cell_width, self.columns
        rows, columns = (
            range(min(first // step, count), min(-(-(first + room) // step), count)) if room > 0 else range(0)
            for first, room, step, count in (down, across)
        )
        return rows, columns

    def whole_cells(self, scroll: Offset, size: Size) -> tuple[range, range]:
        """The rows and columns that are wholly on screen, or that come first, where no cell is."""
        if self.block:
            return range(self.rows), range(self.columns)
        down = max((size.height - self.header) // self.cell_height, 1) * self.cell_height
        across = max((size.width - self.gutter) // self.cell_width, 1) * self.cell_width
        return self.visible(scroll, Size(across + self.gutter, down + self.header))

    def cell_at(self, place: Offset, scroll: Offset) -> Cell | None:
        """The cell at a place of the widget, or None on labels and outside."""
        block, left = divmod(place.x, self.block_width) if self.block else (0, place.x)
        x, y = left - self.gutter, place.y - self.header
        row, column = (y + scroll.y) // self.cell_height, (x + scroll.x) // self.cell_width
        inside = x >= 0 and 0 <= y < self.virtual_size.height and column < self.columns
        row += block * self.block
        return (row, column) if inside and row < self.rows else None

    def cell_region(self, cell: Cell, scroll: Offset) -> Region:
        block, row = divmod(cell[0], self.block) if self.block else (0, cell[0])
        x = block * self.block_width + self.gutter + cell[1] * self.cell_width - scroll.x
        y = self.header + row * self.cell_height - scroll.y
        return Region(x, y, self.cell_width, self.cell_height)

    def scroll_to_show(self, cell: Cell, scroll: Offset, size: Size) -> Offset:
        """The smallest scroll from `scroll` with which the whole cell is on screen."""
        x = _reach(scroll.x, cell[1] * self.cell_width, self.cell_width, size.width - self.gutter)
        y = _reach(scroll.y, cell[0] * self.cell_height, self.cell_height, size.height - self.header)
        beyond = self.virtual_size - size  # of a smaller one it may have been scrolled further
        return Offset(min(x, beyond.width), min(y, beyond.height))


def _reach(scroll: int, start: int, length: int, room: int) -> int:
    """The nearest scroll to a whole number of cells that shows start to start + length."""
    whole_cells = max(room // length, 1) * length
    if start < scroll:
        return start
    return scroll if start + length <= scroll + room else start + length - whole_cells


class Seen(NamedTuple):
    """How far a widget is scrolled, the room for its cells, its size, and the columns of its vertical bar."""

    scroll: Offset
    room: Size
    size: Size
    bar: int


class CursorMessage(Message):
    """The row and column under the cursor when the message was sent, and its number in the widget."""

    def __init__(self, sender: GridWidget) -> None:
        super().__init__()
        self._sent_by = sender
        (self.row, self.column), self.index = sender.at, sender.index

    @property
    def control(self) -> GridWidget:
        return self._sent_by


@careful
class GridWidget(ScrollView):
    """A widget of cells in a grid that scrolls, with a cursor; each kind of them has messages of its own."""

    DEFAULT_CSS = """
    GridWidget {
        background: $background;
        color: $foreground;
        scrollbar-size: 1 1;
    }
    """
    mixed_colors: ClassVar[bool] = True
    kept_lines: ClassVar[int] = 0
    """Rows of a page that are on the next one as well."""

    only_whole: ClassVar[bool] = False
    """Whether cells that are on screen in part are left out."""

    grid = Grid(0, 0, 1, 1, 0, 0)

    class Moved(CursorMessage):
        """The user moved the cursor, or other cells came into view."""

    class Chosen(CursorMessage):
        """The user chose what is under the cursor."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for kind in (cls.Moved, cls.Chosen):
            name = {"__qualname__": f"{cls.__qualname__}.{kind.__name__}", "__module__": cls.__module__}
            setattr(cls, kind.__name__, type(kind.__name__, (kind,), name))

    def __init__(self, *children: Widget, **options: Any) -> None:
        super().__init__(*children, **options)
        self.at: Cell = (0, 0)
        self._clicked = False
        self._styles: dict[tuple[str, bool], Style] = {}
        self.seen = Seen(Offset(), Size(), Size(), 0)
        keep_bars(self)
        for place in ("scroll_x", "scroll_y"):
            self.watch(self, place, lambda: self.scrolled(), init=False)

    # The cursor

    @property
    def extent(self) -> Cell:
        return self.grid.rows, self.grid.columns

    @property
    def index(self) -> int:
        """Number of what is under the cursor, counted row by row."""
        return self.at[0] * self.extent[1] + self.at[1]

    def inside(self, cell: Cell) -> Cell:
        rows, columns = self.extent
        return max(min(cell[0], rows - 1), 0), max(min(cell[1], columns - 1), 0)

    def put(self, cell: Cell) -> None:
        """Put the cursor on a row and column, or the nearest that there are."""
        before, self.at = self.at, self.inside(cell)
        self.follow(before)

    def move(self, cell: Cell) -> None:
        """Put the cursor on a row and column as the user asks, and say so where it moves."""
        if all(self.extent) and self.inside(cell) != self.at:
            self.put(cell)
            self.post_message(self.Moved(self))

    def follow(self, before: Cell) -> None:
        """Draw the cells of the cursor and their labels anew, and scroll to the cursor."""
        if before != self.at:
            grid, regions = self.grid, [Region(0, 0, self.size.width, self.grid.header)]
            for cell in (before, self.at):
                region = grid.cell_region(cell, self.scroll_offset)
                regions += region, Region(0, region.y, grid.gutter, region.height)
            self.refresh(*regions)
        self.scroll_to_cursor()

    def action_step(self, rows: int, columns: int) -> None:
        self.move((self.at[0] + rows, self.at[1] + columns))

    def action_page(self, screens: float) -> None:
        page = max((self.viewport.height - self.grid.header) // self.grid.cell_height - self.kept_lines, 1)
        self.action_step(int(screens * page) or (1 if screens > 0 else -1), 0)

    def action_edge(self, row: int, column: int) -> None:
        """Move the cursor to the first (−1) or the last (1) row or column; 0 keeps it where it is."""
        far = sum(self.extent)
        self.action_step(row * far, column * far)

    def action_choose(self) -> None:
        if all(self.extent) and self.inside(self.at) == self.at:
            self.post_message(self.Chosen(self))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to what is clicked; a double click chooses it, also where something else came there by it."""
        place = event.get_content_offset(self)
        cell = self.cell_at(place) if place is not None else None
        if event.chain != 2:
            self._clicked = cell is not None
            if cell is not None:
                self.move(cell)
        elif self._clicked:
            self.action_choose()

    # Where the cells are

    @property
    def viewport(self) -> Size:
        """Columns and lines beside the scroll bars."""
        return self.container_size - (self.scrollbar_size_vertical, self.scrollbar_size_horizontal)

    @property
    def shown(self) -> tuple[range, range]:
        scroll, size = self.scroll_offset, self.viewport
        if self.only_whole:
            return self.grid.whole_cells(scroll, size)
        return self.grid.visible(scroll, size)

    @property
    def marked(self) -> Region | None:
        """The line of the cell under the cursor that holds its number; None without cells."""
        if not all(self.extent):
            return None
        cell = self.grid.cell_region(self.at, self.scroll_offset)
        return Region(cell.x, cell.y + self.grid.text_line, cell.width, 1)

    def cell_at(self, place: Offset) -> Cell | None:
        return self.grid.cell_at(place, self.scroll_offset)

    def lay_out(self, grid: Grid, start: Offset | None = None) -> None:
        """Draw the cells in a grid, scrolled as far as the cursor needs from where it was, or from `start`."""
        self.grid = grid
        self.at = self.inside(self.at)
        set_content_size(self, grid.virtual_size)
        self.scroll_to_cursor(start)
        self.refresh(Region(0, 0, *self.scrollable_content_region.size))  # frame and bars see to themselves

    def scroll_to_cursor(self, start: Offset | None = None) -> None:
        """Scroll no further than it takes to have the cell under the cursor in view."""
        if not self.viewport:
            return
        target = self.grid.scroll_to_show(self.at, self.scroll_offset if start is None else start, self.viewport)
        if target != self.scroll_offset:
            self.scroll_to(target.x, target.y, animate=False, force=True)

    def scrolled(self) -> None:
        """Other cells came into view."""

    # How they are drawn

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; sizes are asked for once for all of them, and styles until another is applied."""
        if self._styles.get(("", False)) is not self.rich_style:  # that of what it is in may be another
            self._styles = {("", False): self.rich_style}
        self.seen = Seen(self.scroll_offset, self.viewport, self.size, self.scrollbar_size_vertical)
        return super().render_lines(crop)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}

    def ink(self, component: str = "", *, partial: bool = False) -> Style:
        """The style of a component class, or of the widget: costly to ask for, and the same for all lines."""
        key = component, partial
        if key not in self._styles:
            own = self.get_component_rich_style(component, partial=partial) if component else self.rich_style
            self._styles[key] = own
        return self._styles[key]
