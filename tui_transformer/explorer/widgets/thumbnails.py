"""All heads of a step side by side, small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.explorer.widgets.small_picture import Picture, picture
from tui_transformer.views.view import Scale, Values

_SMALLEST_SLOT = 4
_GAP = 2
_MARK = "▸"


class HeadStrip(Widget, can_focus=True):
    """Small heat maps of the heads with their numbers; two rows of a matrix share a line."""

    HELP = """\
## Heads

Every head of the step, small. `▸` marks the one that is shown large.

| key | does |
|---|---|
| ← → or h l | the head before, the next head |
| home, end | first and last head |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "choose(-1)", "Head before", show=False, id="heads.left", tooltip="The head before"),
        Binding("right,l", "choose(1)", "Next head", show=False, id="heads.right", tooltip="The next head"),
        Binding("home", "choose(-100000)", "First head", show=False, id="heads.first", tooltip="The first head"),
        Binding("end", "choose(100000)", "Last head", show=False, id="heads.last", tooltip="The last head"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"head-strip--number", "head-strip--selected"}

    DEFAULT_CSS = """
    HeadStrip {
        height: auto;
        background: $background;
        color: $foreground;
        & > .head-strip--number { color: $foreground 65%; }
        & > .head-strip--selected { color: $accent; text-style: bold; }
    }
    """

    class HeadChosen(Message):
        """The user chose a head."""

        def __init__(self, head_strip: HeadStrip, head: int) -> None:
            super().__init__()
            self.head_strip = head_strip
            self.head = head

        @property
        def control(self) -> HeadStrip:
            """The strip that sent the message."""
            return self.head_strip

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a strip that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._tiles: Sequence[Values] = ()
        self._scale = Scale("sequential", 0.0, 1.0)
        self._selected = 0
        self._first_head = 0
        self._left = 0
        self._pictures: dict[int, Picture] = {}

    def show(self, tiles: Sequence[Values], selected: int, scale: Scale, first: int = 0) -> None:
        """Show heads.

        Args:
            tiles: The matrix of each head, already reduced to about as many rows and columns as there is room for.
            selected: The head that is shown large.
            scale: The range that the colours stand for.
            first: The number of the first head given.
        """
        self._tiles, self._scale, self._first_head = tiles, scale, first
        self._selected = selected - first
        self._redraw()
        self.refresh(layout=self.styles.height is not None and self.styles.height.is_auto)

    @property
    def selected(self) -> int:
        """The number of the head that is marked."""
        return self._first_head + self._selected

    def action_choose(self, step: int) -> None:
        """Choose the head so many further on."""
        self._choose(self._selected + step)

    def on_click(self, event: events.Click) -> None:
        """Choose the head that is clicked."""
        place = event.get_content_offset(self)
        if place is not None and self._left + place.x // self._slot < len(self._tiles):
            self._choose(self._left + place.x // self._slot)

    def on_resize(self) -> None:
        """Show as many heads as fit, the selected one among them."""
        self._left = 0
        self._scroll_to_selected()
        self.refresh()

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self._redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """One line of numbers, and a line for two rows of the tallest matrix."""
        return 1 + max(((len(tile) + 1) // 2 for tile in self._tiles), default=0)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the strip."""
        shown = range(self._left, min(self._left + self._fitting + 1, len(self._tiles)))
        parts = [self._number(index) if y == 0 else self._line(index, y - 1) for index in shown]
        segments = [segment for part in parts for segment in part]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    @property
    def _slot(self) -> int:
        """The columns that each head takes."""
        return max((tile.shape[1] for tile in self._tiles), default=0) + _GAP if self._tiles else _SMALLEST_SLOT

    @property
    def _fitting(self) -> int:
        return max((self.size.width + _GAP) // self._slot, 1)

    def _choose(self, index: int) -> None:
        index = max(min(index, len(self._tiles) - 1), 0)
        if index == self._selected or not self._tiles:
            return
        self._selected = index
        self._scroll_to_selected()
        self.refresh()
        self.post_message(self.HeadChosen(self, self.selected))

    def _scroll_to_selected(self) -> None:
        last_left = max(len(self._tiles) - self._fitting, 0)
        lowest = self._selected - self._fitting + 1
        self._left = max(min(max(self._left, lowest), self._selected, last_left), 0)

    def _redraw(self) -> None:
        self._pictures.clear()
        self._scroll_to_selected()
        self.refresh()

    def _number(self, index: int) -> list[Segment]:
        is_selected = index == self._selected
        style = self.get_component_rich_style(f"head-strip--{'selected' if is_selected else 'number'}")
        mark = _MARK if is_selected else " "
        return [Segment(fit_label(f"{mark}{self._first_head + index}", self._slot), style)]

    def _line(self, index: int, y: int) -> list[Segment]:
        if index not in self._pictures:
            self._pictures[index] = self._picture(self._tiles[index])
        picture = self._pictures[index]
        cells = picture[y] if y < len(picture) else []
        return [*cells, Segment(" " * (self._slot - len(cells)), self.rich_style)]

    def _picture(self, tile: Values) -> Picture:
        return picture(tile, self._scale, Surface.of(self.app), self.rich_style)
