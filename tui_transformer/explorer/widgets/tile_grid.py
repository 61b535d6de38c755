"""Small pictures side by side in rows, each with a label, one of them selected; only those on screen are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.explorer.widgets.small_picture import Picture, picture
from tui_transformer.explorer.widgets.tile_layout import SIZES, TileLayout, choose_layout, reach
from tui_transformer.views.view import Scale, Values

_MISSING = "·"
_MARK = "▌"


@dataclass(frozen=True)
class Tiles:
    """What a grid shows.

    Attributes:
        count: How many tiles there are.
        columns: Tiles a row; None for as many as fit.
        picture: A tile's matrix, reduced to at most so many rows and columns; None while it is not known.
        labels: What is written over a tile, the longest text first; the first that fits is taken.
        row_label: What is written beside a row of a fixed number of columns.
        scale: The range that the colours of a tile stand for.
    """

    count: int
    columns: int | None
    picture: Callable[[int, int], Values | None]
    labels: Callable[[int], Sequence[str]]
    row_label: Callable[[int], str]
    scale: Callable[[int], Scale]


NOTHING = Tiles(0, 1, lambda _, __: None, lambda _: ("",), str, lambda _: Scale("sequential", 0.0, 1.0))


class TileGrid(Widget, can_focus=True):
    """Tiles in rows. Only whole tiles are shown; the selected one is always among them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", "Left", show=False, id="tiles.left", tooltip="The tile to the left"),
        Binding("right,l", "step(0, 1)", "Right", show=False, id="tiles.right", tooltip="The tile to the right"),
        Binding("up,k", "step(-1, 0)", "Up", show=False, id="tiles.up", tooltip="The tile above"),
        Binding("down,j", "step(1, 0)", "Down", show=False, id="tiles.down", tooltip="The tile below"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="tiles.page-up", tooltip="One screen up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="tiles.page-down", tooltip="One screen down"),
        Binding("home", "edge(0, -1)", "Row start", show=False, id="tiles.row-start", tooltip="First tile of the row"),
        Binding("end", "edge(0, 1)", "Row end", show=False, id="tiles.row-end", tooltip="Last tile of the row"),
        Binding("g", "edge(-1, 0)", "Top", show=False, id="tiles.top", tooltip="The first row"),
        Binding("G", "edge(1, 0)", "Bottom", show=False, id="tiles.bottom", tooltip="The last row"),
        Binding("plus,equals_sign", "zoom(1)", "Larger", show=False, id="tiles.larger", tooltip="Larger pictures"),
        Binding("minus", "zoom(-1)", "Smaller", show=False, id="tiles.smaller", tooltip="Smaller pictures"),
        Binding("enter", "choose", "Choose", show=False, id="tiles.choose", tooltip="Choose the tile"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tile-grid--label", "tile-grid--selected", "tile-grid--mark"}

    DEFAULT_CSS = """
    TileGrid {
        height: 1fr;
        width: 1fr;
        background: $background;
        color: $foreground;
        & > .tile-grid--label { color: $foreground 65%; }
        & > .tile-grid--mark { color: $accent; }
        & > .tile-grid--selected { color: $background; background: $accent; text-style: bold; }
        &:nocolor > .tile-grid--selected { color: $foreground; background: $background; text-style: bold reverse; }
        &:ansi > .tile-grid--selected { text-style: bold reverse; }
    }
    """

    class _TileMessage(Message):
        def __init__(self, tile_grid: TileGrid, index: int) -> None:
            super().__init__()
            self.tile_grid, self.index = tile_grid, index

        @property
        def control(self) -> TileGrid:
            """The grid that sent the message."""
            return self.tile_grid

    class Moved(_TileMessage):
        """Another tile was selected, or others came on screen."""

    class Chosen(_TileMessage):
        """A tile was chosen."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a grid that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._tiles = NOTHING
        self._selected = self._top = self._left = 0
        self._wanted_side: int | None = None
        self._places = TileLayout(0, 1, SIZES[0], 1, 1, 1)
        self._pictures: dict[int, Picture] = {}
        self._styles: dict[str, Style] = {}

    def show(self, tiles: Tiles, selected: int) -> None:
        """Show tiles with one of them selected."""
        self._tiles, self._selected = tiles, selected
        self._lay_out()

    def renew(self, indices: Sequence[int]) -> None:
        """Draw some tiles again: their pictures are known now."""
        for index in indices:
            self._pictures.pop(index, None)
        self.refresh()

    @property
    def selected(self) -> int:
        """The index of the tile that is selected."""
        return self._selected

    @property
    def side(self) -> int:
        """The columns of a picture, twice its lines."""
        return self._places.side

    @property
    def shown(self) -> range:
        """The rows of tiles that are on screen."""
        return range(self._top, min(self._top + self._places.down, self._places.rows))

    @property
    def shown_columns(self) -> range:
        """The columns of tiles that are on screen."""
        return range(self._left, min(self._left + self._places.across, self._places.columns))

    @property
    def columns(self) -> int:
        """Tiles a row."""
        return self._places.columns

    def action_step(self, rows: int, columns: int) -> None:
        """Select the tile so many rows and columns away; where tiles flow, the row's end leads to the next row."""
        row, column = divmod(self._selected, self.columns)
        if self._tiles.columns is None:
            self._select(self._selected + rows * self.columns + columns)
        else:
            self._select_at(row + rows, column + columns)

    def action_page(self, screens: int) -> None:
        """Select a tile a screen further."""
        self.action_step(screens * self._places.down, 0)

    def action_edge(self, row: int, column: int) -> None:
        """Select the first or the last tile of the row or of the column."""
        at = divmod(self._selected, self.columns)
        self._select_at(_edge(at[0], row, self._places.rows), _edge(at[1], column, self.columns))

    def action_zoom(self, direction: int) -> None:
        """Make pictures larger or smaller."""
        side = self.side
        larger, smaller = [size for size in SIZES if size > side], [size for size in SIZES if size < side]
        self._wanted_side = (larger or [side])[0] if direction > 0 else (smaller or [side])[-1]
        self._lay_out()
        self.post_message(self.Moved(self, self._selected))

    def action_choose(self) -> None:
        """Choose the selected tile."""
        if self._tiles.count:
            self.post_message(self.Chosen(self, self._selected))

    def on_click(self, event: events.Click) -> None:
        """Select the tile that is clicked; a double click chooses it."""
        place = event.get_content_offset(self)
        if place is None or place.x < self._places.gutter:
            return
        column = (place.x - self._places.gutter) // (self.side + 1) + self._left
        row = place.y // self._places.height + self._top
        if column in self.shown_columns and row in self.shown:
            self._select_at(row, column)
            if event.chain == 2:
                self.action_choose()

    def on_resize(self) -> None:
        """Fit as many tiles as there is room for."""
        self._lay_out()
        self.post_message(self.Moved(self, self._selected))

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self._pictures.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; styles, which are costly to ask for, are the same for all."""
        self._styles = {name: self.get_component_rich_style(name) for name in self.COMPONENT_CLASSES}
        self._styles["page"] = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the grid."""
        row, line = divmod(y, self._places.height)
        page = self._styles["page"]
        if row + self._top not in self.shown or not self._tiles.count:
            return Strip.blank(self.size.width, page)
        segments = [self._row_label(row + self._top, line)]
        for column in self.shown_columns:
            segments += self._tile_line((row + self._top) * self.columns + column, line)
        return Strip(segments).adjust_cell_length(self.size.width, page)

    # Where tiles are

    def _lay_out(self) -> None:
        """Choose the places for the size, and draw everything anew."""
        tiles = self._tiles
        self._places = choose_layout(tiles.count, tiles.columns, self.size, self._gutter, self._wanted_side)
        self._pictures.clear()
        self._scroll()
        self.refresh()

    @property
    def _gutter(self) -> int:
        """Room for the row labels; none where tiles flow."""
        if self._tiles.columns is None or not self._tiles.count:
            return 0
        return cell_len(self._tiles.row_label((self._tiles.count - 1) // self._tiles.columns)) + 1

    def _select_at(self, row: int, column: int) -> None:
        row, column = max(min(row, self._places.rows - 1), 0), max(min(column, self.columns - 1), 0)
        self._select(row * self.columns + column)

    def _select(self, index: int) -> None:
        index = max(min(index, self._tiles.count - 1), 0)
        if index == self._selected:
            return
        before = self._region_of(self._selected)
        self._selected = index
        if self._scroll():
            self.refresh()
        else:
            self.refresh(before, self._region_of(index))
        self.post_message(self.Moved(self, self._selected))

    def _region_of(self, index: int) -> Region:
        row, column = divmod(index, self.columns)
        return self._places.region(row - self._top, column - self._left)

    def _scroll(self) -> bool:
        """Bring the selected tile on screen; whether anything moved."""
        row, column = divmod(self._selected, self.columns)
        before = self._top, self._left
        self._top = reach(self._top, row, self._places.down, self._places.rows)
        self._left = reach(self._left, column, self._places.across, self.columns)
        return before != (self._top, self._left)

    # How they are drawn

    def _row_label(self, row: int, line: int) -> Segment:
        text = self._tiles.row_label(row) if self._tiles.columns is not None and line == 0 else ""
        return Segment(fit_label(text, self._places.gutter, "right"), self._styles["tile-grid--label"])

    def _tile_line(self, index: int, line: int) -> list[Segment]:
        """The mark in front of a tile, and one line of it."""
        page, side = self._styles["page"], self.side
        if index >= self._tiles.count:
            return [Segment(" " * (side + 1), page)]
        selected = index == self._selected
        mark = Segment(_MARK, self._styles["tile-grid--mark"]) if selected else Segment(" ", page)
        if line == 0:
            style = self._styles[f"tile-grid--{'selected' if selected else 'label'}"]
            return [mark, Segment(self._label(index), style)]
        cells = self._picture_line(index, line - 1)
        return [mark, *cells, Segment(" " * (side - len(cells)), page)]

    def _label(self, index: int) -> str:
        texts, side = self._tiles.labels(index), self.side
        return fit_label(next((text for text in texts if cell_len(text) <= side), texts[-1]), side)

    def _picture_line(self, index: int, line: int) -> list[Segment]:
        if index not in self._pictures:
            self._pictures[index] = self._draw(index)
        drawn = self._pictures[index]
        return drawn[line] if line < len(drawn) else []

    def _draw(self, index: int) -> Picture:
        """A tile's picture, every cell as many times as there is room for."""
        side = self.side
        values = self._tiles.picture(index, side)
        if values is None:
            return [[Segment(_MISSING, self._styles["tile-grid--label"])]]
        times = max(side // max(values.shape), 1)
        larger = np.repeat(np.repeat(values, times, axis=0), times, axis=1)
        return picture(larger, self._tiles.scale(index), Surface.of(self.app), self._styles["page"])


def _edge(place: int, way: int, count: int) -> int:
    """The first or the last place, or the same one."""
    return {-1: 0, 0: place, 1: count - 1}[way]
