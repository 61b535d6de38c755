"""Opening the inside of the cell that is shown, and going where it is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position

if TYPE_CHECKING:
    from tui_transformer.explorer.main.inside.screen import Spot


class InsideOpening:
    """Opens the inside of the cell under the cursor, as a screen."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: MainPort) -> None:
        self._explored, self._presenter, self._port = explored, presenter, port

    def open(self) -> None:
        """Open the inside of the cell; words have none and are read where they stand."""
        from tui_transformer.explorer.main.inside.screen import InsideScreen, Spot

        scene, session = self._explored.step, self._explored.session
        if scene is None:
            self._presenter.focus("matrix")
            return
        gradient = scene.working is not None and scene.working.name.startswith(GRADIENT)
        spot = Spot.at(session, scene.view.name, scene.place, gradient=gradient)
        self._port.open(InsideScreen(self._port, spot), lambda left: self._go(spot, left))

    def _go(self, begun: Spot, left: Spot | None) -> None:
        """Show the cell that was left; where it is of another step, esc goes back to where one began."""
        if left is None or left == begun:
            return
        position = Position(left.name, left.place(self._explored.session))
        if left.name == begun.name:
            self._port.go(replace(self._explored.position, place=position.place))
        else:
            self._port.follow(position)
