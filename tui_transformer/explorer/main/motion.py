"""Motion: after a step forward the matrix is for half a second on its way to the values, drawn from the same numbers.

What the panes draw is a scene whose step has a `frame`; in the end, and before any key is handled, the scene itself is
drawn. A moment is passed over where keys wait or the terminal has not shown the one before, so nothing is held up.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

from textual.timer import Timer

from tui_transformer.explorer.guard.event_queue import draw_together, later
from tui_transformer.explorer.guard.failures import carefully
from tui_transformer.explorer.main.panes.matrix import MatrixPair
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.records import replace
from tui_transformer.session.scene import Scene
from tui_transformer.views.flow import Flow, flow_of

SECONDS = 0.5
"""How long it takes."""

PAUSE = 0.7
"""Seconds between two steps of somebody who looks: longer than a key that is held takes to repeat."""


class Motion:
    """The way to what is shown; one at a time."""

    def __init__(self, screen: ExplorerScreen[None]) -> None:
        self._screen = screen
        self._app: Any = screen.app
        self._pair = screen.query_one(MatrixPair)
        self._scene: Scene | None = None
        self._flow: tuple[tuple[range, range], Flow | None] | None = None
        self._began, self._stepped = 0.0, -math.inf
        self._timer: Timer | None = None

    @property
    def rests(self) -> bool:
        """Whether the values themselves are shown."""
        return self._scene is None

    def follow(self, before: Scene, made: Scene) -> None:
        """Begin where a scene that was just drawn leads on from the one before; go on where it is of the same cell."""
        own = self._scene
        if (
            own is not None
            and (own.position, own.view, own.size) == (made.position, made.view, made.size)
            and own.step is not None
            and made.step is not None
            and own.step.view is made.step.view
        ):  # they differ in what is beside the matrix at most
            self._scene = made
            self._draw()
            return
        self._stop()
        if leads_on(before, made):
            now, last = time.monotonic(), self._stepped
            self._stepped = now
            if now - last >= PAUSE and self._is_seen:
                self._began, self._scene = now, made
                self._app.in_turn.until_next(self.end)
                self._draw()
                self._wait()

    def end(self) -> None:
        """Show the values."""
        scene = self._scene
        self._stop()
        if scene is not None:
            self._show(scene)

    @property
    def _is_seen(self) -> bool:
        """Whether the terminal has colours, and is quick; it is asked again for the next time where it is not."""
        line = self._app.line
        if line is None or Surface.of(self._app).depth == "none":
            return False
        quick: bool = line.is_quick
        if not quick:
            line.measure()
        return quick

    def _stop(self) -> None:
        self._scene = self._flow = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _wait(self) -> None:
        if self._scene is not None:
            self._timer = later(self._screen, 0.04, self._go_on)

    def _go_on(self) -> None:
        """Show another moment, where nobody waits and the terminal has shown the last."""
        line = self._app.line
        if not self._screen.is_there:
            self._stop()
        elif line is None or not line.is_quick or time.monotonic() - self._began >= SECONDS:
            self.end()
        elif line.asked is None and self._app.in_turn.idle:
            line.measure()
            self._draw()
        self._wait()

    def _draw(self) -> None:
        """Draw the moment that it is; where the step does not move, the values."""
        scene, shown = self._scene, self._pair.first.cells.shown
        if scene is None or scene.step is None:
            return
        if self._flow is None or self._flow[0] != shown:
            self._flow = shown, way_to(self._pair, scene)
        flow = self._flow[1]
        if flow is None:
            self.end()
        else:
            self._show(moment(scene, flow, (time.monotonic() - self._began) / SECONDS))

    def _show(self, scene: Scene) -> None:
        draw_together(self._screen)
        carefully(self._pair, partial(self._pair.show_scene, scene))


def way_to(pair: MatrixPair, scene: Scene) -> Flow | None:
    """The way to what is in sight of a scene's matrix; None where it does not move."""
    step, session, (rows, columns) = scene.step, scene.session, pair.first.cells.shown
    return None if step is None else flow_of(session.trace, step.view, session.labels, rows, columns, step.place)


def moment(scene: Scene, flow: Flow, progress: float) -> Scene:
    """A scene whose matrix is on its way."""
    return replace(scene, step=scene.step and replace(scene.step, frame=flow(progress)))


def leads_on(before: Scene, made: Scene) -> bool:
    """Whether a scene shows the values of the step after the one before; in a tour, of any later one."""
    step, stops, (here, there) = made.step, made.session.stops, (before.position.stop, made.position.stop)
    if step is None or not made.view.motion or here not in stops or there not in stops:
        return False
    if step.alone is not None or step.hidden or made.session.backward or "matrix" not in made.arrangement.drawn:
        return False  # another matrix is drawn, or none, or one goes the other way round
    by = stops.index(there) - stops.index(here)
    return by > 0 if "-tour" in made.arrangement.classes else by == 1 and made.session is before.session
