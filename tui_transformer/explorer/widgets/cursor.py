"""One cursor for every widget of rows and columns: its keys, clicks, and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.guard.error_boundary import CarefulWidget
from tui_transformer.explorer.widgets.grid import Cell, Grid

CURSOR_KEYS: Mapping[str, str] = {
    "cursor.left": "left,h",
    "cursor.right": "right,l",
    "cursor.up": "up,k",
    "cursor.down": "down,j",
    "cursor.top": "ctrl+home",
    "cursor.bottom": "G",
    "cursor.row-start": "home",
    "cursor.row-end": "end",
    "cursor.page-up": "pageup",
    "cursor.page-down": "pagedown",
    "cursor.half-up": "ctrl+u",
    "cursor.half-down": "ctrl+d",
    "cursor.wider": "plus,equals_sign",
    "cursor.narrower": "minus",
    "cursor.choose": "enter",
}
"""The keys of each meaning, separated by commas; the table of all keys takes them from here."""


def _key(name: str, action: str, says: str) -> Binding:
    """A key of the cursor; its name, by which the user can change it, is the same in every widget."""
    meaning = f"cursor.{name}"
    return Binding(CURSOR_KEYS[meaning], action, says, show=False, id=meaning, tooltip=says)


ACROSS = (
    _key("left", "step(0, -1)", "Cursor left"),
    _key("right", "step(0, 1)", "Cursor right"),
)
ROW_ENDS = (
    _key("row-start", "edge(0, -1)", "First column"),
    _key("row-end", "edge(0, 1)", "Last column"),
)
DOWN = (
    _key("up", "step(-1, 0)", "Cursor up"),
    _key("down", "step(1, 0)", "Cursor down"),
    _key("page-up", "page(-1.0)", "One screen up"),
    _key("page-down", "page(1.0)", "One screen down"),
    _key("half-up", "page(-0.5)", "Half a screen up"),
    _key("half-down", "page(0.5)", "Half a screen down"),
    _key("top", "edge(-1, 0)", "First row"),
    _key("bottom", "edge(1, 0)", "Last row"),
)
ENDS = (
    _key("row-start", "edge(-1, 0)", "First row"),
    _key("row-end", "edge(1, 0)", "Last row"),
)
ZOOM = (
    _key("wider", "zoom(1)", "Larger cells"),
    _key("narrower", "zoom(-1)", "Smaller cells"),
)
CHOOSE = (_key("choose", "choose", "Choose what is under the cursor"),)


def next_size(sizes: Sequence[int], size: int, direction: int) -> int | None:
    """The next larger (1) or smaller (−1) of the sizes in ascending order, None past the ends."""
    if direction > 0:
        return next((each for each in sizes if each > size), None)
    return next((each for each in reversed(sizes) if each < size), None)


class CursorMessage(Message):
    """The row and column under the cursor when the message was sent.

    Attributes:
        row: Its row.
        column: Its column.
        index: Its number in the widget.
    """

    def __init__(self, sender: CursorWidget) -> None:
        super().__init__()
        self._sent_by = sender
        (self.row, self.column), self.index = sender.at, sender.index

    @property
    def control(self) -> CursorWidget:
        """The widget that sent the message."""
        return self._sent_by


class CursorWidget(CarefulWidget):
    """A widget of rows and columns with a cursor.

    A widget says how many rows and columns there are, what lies where, and what a moved cursor changes on the screen.
    """

    class Moved(CursorMessage):
        """The user moved the cursor."""

    class Chosen(CursorMessage):
        """The user chose what is under the cursor."""

    def __init__(self, *children: Widget, **options: Any) -> None:
        super().__init__(*children, **options)
        self.at: Cell = (0, 0)
        self._styles: dict[str, Style] = {}
        for axis in ("horizontal", "vertical"):
            self.watch(self, f"show_{axis}_scrollbar", lambda: put_bars(self), init=False)

    @property
    def extent(self) -> Cell:
        """How many rows and columns there are."""
        raise NotImplementedError

    @property
    def page(self) -> int:
        """Rows of a screen."""
        raise NotImplementedError

    def cell_at(self, place: Offset) -> Cell | None:
        """Row and column of what is drawn at a place of the widget, if anything."""
        raise NotImplementedError

    def follow(self, before: Cell) -> None:
        """Draw the cursor where it is now instead of at `before`, and bring it into view."""
        raise NotImplementedError

    @property
    def index(self) -> int:
        """Number of what is under the cursor, counted row by row."""
        return self.at[0] * self.extent[1] + self.at[1]

    def inside(self, cell: Cell) -> Cell:
        """The nearest row and column that there are."""
        rows, columns = self.extent
        return max(min(cell[0], rows - 1), 0), max(min(cell[1], columns - 1), 0)

    def put(self, cell: Cell) -> None:
        """Put the cursor on a row and column, or the nearest that there are."""
        before, self.at = self.at, self.inside(cell)
        self.follow(before)

    def move(self, cell: Cell) -> None:
        """Put the cursor on a row and column as the user asks, and say so where it moves."""
        if self.inside(cell) != self.at:
            self.put(cell)
            self.post_message(self.Moved(self))

    def action_step(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns."""
        self.move((self.at[0] + rows, self.at[1] + columns))

    def action_page(self, screens: float) -> None:
        """Move the cursor by screens of rows."""
        self.action_step(int(screens * self.page) or (1 if screens > 0 else -1), 0)

    def action_edge(self, row: int, column: int) -> None:
        """Move the cursor to the first (−1) or the last (1) row or column; 0 keeps it where it is."""
        far = sum(self.extent)
        self.action_step(row * far, column * far)

    def action_choose(self) -> None:
        """Choose what is under the cursor, where it is on anything."""
        if all(self.extent) and self.inside(self.at) == self.at:
            self.post_message(self.Chosen(self))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to what is clicked; a double click chooses it."""
        place = event.get_content_offset(self)
        cell = self.cell_at(place) if place is not None else None
        if cell is not None:
            self.move(cell)
            if event.chain == 2:
                self.action_choose()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; styles are asked for anew."""
        self._styles = {}
        return super().render_lines(crop)

    def ink(self, component: str = "") -> Style:
        """The style of a component class, or of the widget: costly to ask for, and the same for all lines."""
        if component not in self._styles:
            self._styles[component] = self.get_component_rich_style(component) if component else self.rich_style
        return self._styles[component]


class GridWidget(ScrollView, CursorWidget):
    """A cursor widget whose cells lie in a grid that scrolls."""

    grid = Grid(0, 0, 1, 1, 0, 0)

    @property
    def viewport(self) -> Size:
        """Columns and lines beside the scroll bars."""
        return self.container_size - (self.scrollbar_size_vertical, self.scrollbar_size_horizontal)

    @property
    def shown(self) -> tuple[range, range]:
        """The rows and columns that are at least partly on screen."""
        scroll, size = self.scroll_offset, self.viewport
        return self.grid.visible_rows(scroll, size.height), self.grid.visible_columns(scroll, size.width)

    @property
    def extent(self) -> Cell:
        """How many rows and columns there are."""
        return self.grid.rows, self.grid.columns

    @property
    def page(self) -> int:
        """Rows of a screen."""
        return max((self.viewport.height - self.grid.header) // self.grid.cell_height, 1)

    @property
    def marked(self) -> Region | None:
        """The line of the cell that holds its number; None without cells."""
        if not all(self.extent):
            return None
        cell = self.grid.cell_region(self.at, self.scroll_offset)
        return Region(cell.x, cell.y + self.grid.text_line, cell.width, 1)

    def cell_at(self, place: Offset) -> Cell | None:
        """Row and column of the cell at a place, None on labels and outside."""
        return self.grid.cell_at(place, self.scroll_offset)

    def follow(self, before: Cell) -> None:
        """Draw the cells of the cursor and their labels anew, and scroll to the cursor."""
        if before != self.at:
            self.refresh(*self._regions_of(before), *self._regions_of(self.at))
        self.scroll_to_cursor()

    def lay_out(self, grid: Grid, start: Offset | None = None) -> None:
        """Draw the cells in a grid, scrolled as far as the cursor needs from where it was, or from `start`."""
        self.grid = grid
        self.at = self.inside(self.at)
        set_content_size(self, grid.virtual_size)
        self.scroll_to_cursor(start)
        self.refresh()

    def scroll_to_cursor(self, start: Offset | None = None) -> None:
        """Scroll no further than it takes to have the cell under the cursor in view."""
        if not self.viewport:
            return
        target = self.grid.scroll_to_show(self.at, self.scroll_offset if start is None else start, self.viewport)
        beyond = self.grid.virtual_size - self.viewport  # of a smaller one it may have been scrolled further
        target = Offset(min(target.x, beyond.width), min(target.y, beyond.height))
        if target != self.scroll_offset:
            self.scroll_to(target.x, target.y, animate=False, force=True)

    def scrolled(self) -> None:
        """Other cells came into view."""

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Tell that other cells came into view."""
        super().watch_scroll_x(old_value, new_value)
        self.scrolled()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell that other cells came into view."""
        super().watch_scroll_y(old_value, new_value)
        self.scrolled()

    def _regions_of(self, cell: Cell) -> tuple[Region, Region, Region]:
        label = self.grid.label_region(cell[0], self.scroll_offset)
        header = Region(0, 0, self.size.width, self.grid.header)
        return self.grid.cell_region(cell, self.scroll_offset), label, header


def set_content_size(view: ScrollView, size: Size) -> None:
    """Say how large the content is; only where a scroll bar comes or goes is the whole screen laid out again."""
    if not view.container_size or _bars(view, size) != (view.show_horizontal_scrollbar, view.show_vertical_scrollbar):
        view.virtual_size = size
        return
    view.set_reactive(Widget.virtual_size, size)
    if view.show_horizontal_scrollbar:
        view.horizontal_scrollbar.window_virtual_size = size.width
    if view.show_vertical_scrollbar:
        view.vertical_scrollbar.window_virtual_size = size.height
    x, y = min(view.scroll_x, view.max_scroll_x), min(view.scroll_y, view.max_scroll_y)
    if (x, y) != (view.scroll_x, view.scroll_y):
        view.scroll_to(x, y, animate=False, force=True)
    view.refresh()


def put_bars(view: Widget) -> None:
    """Put the scroll bars where the view is scrolled to, in its colours: away, they were told of neither."""
    if view.show_horizontal_scrollbar:
        view.horizontal_scrollbar.position = view.scroll_x
        view.horizontal_scrollbar.refresh()
    if view.show_vertical_scrollbar:
        view.vertical_scrollbar.position = view.scroll_y
        view.vertical_scrollbar.refresh()
    if view.show_horizontal_scrollbar and view.show_vertical_scrollbar:
        view.scrollbar_corner.refresh()


def _bars(view: ScrollView, size: Size) -> tuple[bool, bool]:
    """Whether content of this size needs a horizontal and a vertical scroll bar; each takes room from the other."""
    styles, room = view.styles, view.container_size
    across = _needed(styles.overflow_x, size.width, room.width)
    down = _needed(styles.overflow_y, size.height, room.height)
    if down and not across:
        across = _needed(styles.overflow_x, size.width, room.width - styles.scrollbar_size_vertical)
    if across and not down:
        down = _needed(styles.overflow_y, size.height, room.height - styles.scrollbar_size_horizontal)
    return across, down


def _needed(overflow: str, content: int, room: int) -> bool:
    return overflow == "scroll" or (overflow == "auto" and content > room)
