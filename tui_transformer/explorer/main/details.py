"""Heads, chart and nearest words of a scene: what takes long follows a moment later, and slows no fast keys down."""

from __future__ import annotations

import math
from collections.abc import Callable

from textual.content import Content
from textual.timer import Timer

from tui_transformer.explorer.main.charts import ChartKind, chart_of, kinds_of
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.heads import Heads, heads_of
from tui_transformer.explorer.main.layout import PANES, Panes
from tui_transformer.explorer.main.panes.chart import ChartPane
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.timers import later
from tui_transformer.explorer.state.near import Near, near, near_cost
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.widgets.thumbnails import HeadThumbnails
from tui_transformer.views.charts import Chart

SOON = 0.015
"""Seconds after which they follow."""

LIGHT_CHARTS = (None, "row", "waves", "sines", "cosines", "all waves")
"""Charts that read one row, whatever the size of the step; and none."""


NO_CHART = "Token IDs have no chart: they are names of words, and no sizes."


class Details:
    """The heads of the step that is shown, the chart that was chosen, and the nearest words of a row of an embedding.

    Attributes:
        due: Whether they are about to follow.
        soon: Seconds after which they follow.
    """

    def __init__(
        self,
        explored: Exploration,
        panes: Panes,
        requests: Requests,
        show_near: Callable[[tuple[Near, ...]], None],
    ) -> None:
        """Details on the screen of these panes; `show_near` is told the nearest words."""
        self._explored, self._panes, self._requests, self._show_near = explored, panes, requests, show_near
        self.due = self._heads_due = self._chart_due = False
        self.soon = SOON
        self._timer: Timer | None = None

    def stop(self) -> None:
        """Do not follow: something else is shown."""
        self.due = False
        if self._timer is not None:
            self._timer.stop()

    def follow(self, *, heads: bool = False) -> None:
        """Show the chart, in a moment where it takes long, and the heads then where they are another step's."""
        self.stop()
        self.due = True
        self._heads_due |= heads
        self._chart_due = self._kind not in LIGHT_CHARTS
        self._chart_pane.stale, self._heads_pane.stale = self._chart_due, self._heads_due
        if not self._chart_due:
            self.show_chart()
        self._timer = later(self._panes.screen, self.soon, self._show)

    def _show(self) -> None:
        scene = self._explored.scene
        if self._heads_due and scene is not None and scene.view.heads > 1 and "heads" in self._panes.names():
            session, hidden = self._explored.session, self._explored.view.hidden
            cost = 4 * math.prod(session.trace.program.shape(scene.view.name))
            self._requests.ask(
                "heads", cost, lambda task: heads_of(session, scene, hidden, task.report), self._show_heads
            )
        self.due = self._heads_due = False
        if self._chart_due:
            self.show_chart()
        self._find_near()

    def _find_near(self) -> None:
        """Look for the nearest words, where they are shown and not there yet."""
        scene, session, asked = self._explored.scene, self._explored.session, self._explored.view.words
        if scene is None or scene.near is None or scene.near:
            return
        position = Position(scene.view.name, scene.place)
        cost = near_cost(session, position.stop, asked)
        self._requests.ask("near", cost, lambda task: near(session, position, asked, task.report), self._show_near)

    def show_heads_pane(self, *, shown: bool) -> None:
        """Show the heads or not; the class is the pane's own, so that nothing else is styled again."""
        self._heads_pane.set_class(not shown, "-absent")

    def _show_heads(self, heads: Heads) -> None:
        pane, scene = self._heads_pane, self._explored.scene
        title = " · ".join(filter(None, (PANES["heads"], heads.what)))
        if pane.border_title != title:
            pane.border_title = Content(title)
        if scene is not None:
            pane.show(heads.tiles, scene.place.head, heads.scale, of=heads.of, shape=heads.shape)

    @property
    def _heads_pane(self) -> HeadThumbnails:
        return self._panes.screen.query_one(HeadThumbnails)

    @property
    def _chart_pane(self) -> ChartPane:
        return self._panes.screen.query_one(ChartPane)

    def chart(self) -> Chart | None:
        """The chart that is drawn, if any is."""
        return self._chart_pane.chart

    @property
    def _kind(self) -> ChartKind | None:
        """The kind of chart that was chosen, of those that fit the stop."""
        scene = self._explored.scene
        kinds = () if scene is None else kinds_of(self._explored.session, scene.drawn.name)
        return kinds[self._explored.view.chart % len(kinds)] if kinds else None

    def show_chart(self) -> None:
        """The chart that was chosen, of those that fit the stop."""
        scene, pane = self._explored.scene, self._chart_pane
        if scene is None:
            pane.show(None)
            return
        session, view, kind = self._explored.session, scene.drawn, self._kind
        if kind is None:
            pane.show(None, NO_CHART)
            return
        cost = 0 if kind in LIGHT_CHARTS else 10 * view.rows.size * view.columns.size * (view.heads or 1)
        self._requests.ask("chart", cost, lambda _: chart_of(session, kind, view, scene.place), pane.show)
