"""The matrix of a step, and beside it a second one with the same cursor and scrolling."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Offset, Size

from tui_transformer.explorer.main.room import Need
from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.widgets.axis_labels import widest_label
from tui_transformer.explorer.widgets.heat_map import HeatMap, least_number_width
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.views.view import Scale, View

FRAME = 2
"""Lines or columns of a border."""

HEADER_AND_LEGEND = 2


class MatrixPair(Container):
    """Two matrices, of which the second is shown only where a scene has one beside."""

    DEFAULT_CSS = """
    MatrixPair {
        layout: horizontal;
        &.-stacked { layout: vertical; }
        & > #overlay { display: none; }
        &.-both > #overlay { display: block; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make a pair that shows nothing yet."""
        super().__init__(id=id)
        self.first, self.second = MatrixPane(id="matrix"), MatrixPane(id="overlay")

    def compose(self) -> ComposeResult:
        """The matrix, and the one beside."""
        yield self.first
        yield self.second

    def on_mount(self) -> None:
        """Let the scrolling of each follow the other."""
        for one, other in ((self.first, self.second), (self.second, self.first)):
            self._let_follow(one, other)

    @property
    def both(self) -> bool:
        """Whether two matrices are shown."""
        return self.has_class("-both")

    def show(self, scene: Scene, titles: Sequence[str], note: str, room: Size) -> None:
        """Show a step's own values, what is beside them, or both in the room that there is for the two."""
        overlay, place = scene.overlay, scene.place
        both = scene.shown == "both" and overlay is not None
        self.set_class(both, "-both")
        self.set_class(both and is_stacked(scene, room), "-stacked")
        width = _number_width(scene) if both else 0
        if scene.alone is None:
            self.first.show_matrix(
                scene.view, scene.scale, scene.tile, place, titles=titles, note=note, number_width=width
            )
        shown, pane = (scene.alone, self.first) if scene.alone is not None else (overlay, self.second)
        if shown is not None and (both or pane is self.first):
            pane.show_matrix(
                shown.view, shown.scale, shown.tile, place, titles=(shown.title,), note=shown.note, number_width=width
            )

    def say(self, remark: str) -> None:
        """A remark on what is shown, in the lower border of the last matrix."""
        for pane, text in zip((self.first, self.second), ("", remark) if self.both else (remark, ""), strict=True):
            if pane.border_subtitle != text:
                pane.border_subtitle = text

    @on(HeatMap.Moved)
    def _moved(self, event: HeatMap.Moved) -> None:
        """The other cursor goes to the same cell."""
        if self.both:
            other = self.second if event.control is self.first.cells else self.first
            other.cells.cursor = event.row, event.column

    def _let_follow(self, one: MatrixPane, other: MatrixPane) -> None:
        for axis in ("scroll_x", "scroll_y"):
            self.watch(one.cells, axis, lambda _: self._follow(one, other), init=False)

    def _follow(self, one: MatrixPane, other: MatrixPane) -> None:
        """Scroll the other where this one is, as long as their cells are of one size."""
        if self.both and one.cells.cell_size == other.cells.cell_size:
            place: Offset = one.cells.scroll_offset
            if place != other.cells.scroll_offset:
                other.cells.scroll_to(place.x, place.y, animate=False, force=True)


def _number_width(scene: Scene) -> int:
    """A width in which the numbers of both are told apart."""
    drawn = [each for each in (scene, scene.overlay) if each is not None]
    return max(least_number_width(each.scale, integer=each.view.integer) for each in drawn)


def need_of(scene: Scene) -> Need:
    """Columns and lines in which a matrix that is drawn alone shows every number."""
    if scene.shown == "both" and scene.overlay is not None:
        return Need()
    rows, columns = scene.drawn.shape
    width = columns * _number_width(scene) + widest_label(scene.drawn.rows) + 1 + FRAME
    return Need(width, rows + HEADER_AND_LEGEND + FRAME)


def columns_needed(view: View, scale: Scale) -> int:
    """Columns in which a matrix shows every number, with its border."""
    width = view.shape[1] * least_number_width(scale, integer=view.integer)
    return width + widest_label(view.rows) + 1 + FRAME


def is_stacked(scene: Scene, room: Size) -> bool:
    """Whether two matrices are easier to read one above the other: numbers fit so, and side by side they do not."""
    rows, columns = scene.view.shape
    side_by_side = columns * _number_width(scene) + widest_label(scene.view.rows) + 1 + FRAME <= room.width // 2
    return not side_by_side and rows + FRAME + HEADER_AND_LEGEND <= room.height // 2
