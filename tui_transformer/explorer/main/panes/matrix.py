"""The numbers of a step: its matrix with the one beside it, its heads, its chart."""

from __future__ import annotations

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.geometry import Offset

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.explorer.main.lines import stop_title
from tui_transformer.explorer.widgets.chart import Chart
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.thumbnails import HeadThumbnails
from tui_transformer.session.overlay import apart
from tui_transformer.session.pane_fit import PANES, number_width
from tui_transformer.session.scene import Heads, Scene
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.words import WORDS
from tui_transformer.text.display import visible

SOFTMAX = Softmax().formula

ROUNDING = 1e-3
"""How far from 1 a row of rounded shares may sum to."""

NO_CHART = "Token IDs have no chart: they are names of words, and no sizes."


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

    def show_scene(self, scene: Scene) -> None:
        """Show a step's own values, what is beside them, or both; of what is still computed the name alone."""
        stop, step = scene.position.stop, scene.step
        if stop in (VOCABULARY, *WORDS):
            return
        self.set_class(scene.has_pair, "-both")
        self.set_class("-stacked" in scene.arrangement, "-stacked")
        for pane in (self.first, self.second):
            pane.cells.wanted_width = scene.view.cell_width
        if step is None:
            self.first.show_missing(stop)
            remark = "computing"
        else:
            self._show(step, scene)
            remark = visible(apart(scene.session, stop))
        for pane, text in zip((self.first, self.second), ("", remark) if scene.has_pair else (remark, ""), strict=True):
            if pane.border_subtitle != text:
                pane.border_subtitle = text

    def _show(self, step: StepScene, scene: Scene) -> None:
        overlay, both = step.overlay, scene.has_pair
        width = number_width(step) if both else 0
        if step.alone is None:
            titles = matrix_titles(scene.session, step, wide=scene.arrangement.is_wide, both=both)
            self.first.show_matrix(
                step.view, step.scale, step.tile, step.place, titles=titles, note=scale_note(step), number_width=width
            )
        pane = self.second if step.alone is None else self.first
        if overlay is not None and (both or pane is self.first):
            pane.show_matrix(
                overlay.view,
                overlay.scale,
                overlay.tile,
                step.place,
                titles=(overlay.title,),
                note=overlay.note,
                number_width=width,
            )

    @property
    def _both(self) -> bool:
        return self.has_class("-both")

    @on(HeatMap.Moved)
    def _moved(self, event: HeatMap.Moved) -> None:
        if self._both:
            other = self.second if event.control is self.first.cells else self.first
            other.cells.cursor = event.row, event.column

    def _let_follow(self, one: MatrixPane, other: MatrixPane) -> None:
        for axis in ("scroll_x", "scroll_y"):
            self.watch(one.cells, axis, lambda _: self._follow(one, other), init=False)

    def _follow(self, one: MatrixPane, other: MatrixPane) -> None:
        """Scroll the other where this one is, as long as their cells are of one size."""
        if self._both and one.cells.cell_size == other.cells.cell_size:
            place: Offset = one.cells.scroll_offset
            if place != other.cells.scroll_offset:
                other.cells.scroll_to(place.x, place.y, animate=False, force=True)


class HeadsPane(HeadThumbnails, can_focus=True):
    """The heads of the step, or nothing until they are there."""

    _heads: Heads | None = None

    def show_scene(self, scene: Scene) -> None:
        """Show the heads of a scene; where the step has none, there is no pane."""
        self.set_class("heads" not in scene.arrangement.names, "-absent")
        if not scene.arrangement.draws("heads"):
            return
        heads, head = scene.heads, scene.position.place.head
        if heads is not None and heads is self._heads:
            self.put((0, head))
            return
        self._heads = heads
        title = " · ".join(filter(None, (PANES["heads"], heads.what if heads is not None else "computing")))
        if self.border_title != title:
            self.border_title = Content(title)
        if heads is None:
            self.show((), head, self.scale)
        else:
            self.show(heads.tiles, head, heads.scale, of=heads.of, shape=heads.shape)


class ChartPane(Chart, can_focus=True):
    """A chart that can be gone to, as every other pane."""

    def show_scene(self, scene: Scene) -> None:
        """Show the chart of a scene, or why there is none."""
        if not scene.arrangement.draws("chart"):
            return
        why = ""
        if scene.chart is None:
            why = "computing" if scene.waits or scene.kind is not None else NO_CHART * (scene.step is not None)
        if (scene.chart, why) != (self.chart, self.why):
            self.show(scene.chart, why)


def matrix_titles(session: Session, scene: StepScene, *, wide: bool, both: bool) -> tuple[str, ...]:
    """Name and shape of what the matrix pane shows; with label and head, where no other line says them.

    The longest comes first; the others are for panes that have no room for it.
    """
    view, shape = scene.view, shape_text(session.trace.program.shape(scene.view.name))
    label = stop_title(session, view.name)
    if not wide:
        return f"{view.name} · {shape}", view.name
    head = [f"head {scene.place.head} of {view.heads}"] if view.heads > 1 else []
    alone = () if both else ([label, view.name, *head, shape],)
    parts = (*alone, [view.name, *head, shape], [label, *head, shape], [label, *(head if both else [shape])])
    return tuple(dict.fromkeys(" · ".join(dict.fromkeys(part)) for part in parts))


def scale_note(scene: StepScene) -> str:
    """Remarks on the colours."""
    if scene.hidden or scene.view.formula != SOFTMAX:
        return scene.hidden
    values = scene.tile.values
    whole, without_keys = values.shape[1] == scene.view.columns.size, np.isnan(values).all(axis=1)
    sums = np.nansum(values[~without_keys], axis=1) if whole else np.empty(0)
    if (abs(sums - 1) > ROUNDING).any():
        return f"rows sum to {spoken(sums.min(), 4)} to {spoken(sums.max(), 4)}"
    if scene.view.edited and not len(sums):
        return ""  # of rows that are not drawn whole nothing is known
    return "a row without a visible key sums to 0" if whole and without_keys.any() else "every row sums to 1"
