"""The tour: puts the screen where each of its stops says."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.tours import tour_of
from tui_transformer.guide.texts import Stop, tour
from tui_transformer.views.step_view import Place

PANE_OF: dict[str, str] = {"explain": "cell", "chart": "chart"}
"""The pane that a stop is about, where one is shown at a time."""


class Tour:
    """Leads through what is explored, a stop after the other."""

    def __init__(self, explored: Exploration, panes: Panes, port: MainPort) -> None:
        """Lead nowhere yet."""
        self._explored, self._panes, self._port = explored, panes, port
        self._stops: tuple[Stop, ...] = ()
        self._place = 0

    @property
    def _screen(self) -> ExplorerScreen[None]:
        return self._panes.screen

    def begin_or_leave(self) -> None:
        """Begin the tour of this model, backward that of gradients, or leave it."""
        if self._stops:
            self.leave()
            return
        name = tour_of(self._explored.session)
        if name is None:
            self._port.say(f"there is no tour of {self._explored.session.model.name}: --model question has one")
            return
        self._stops, self._place = tour(name), 0
        self._screen.mount(TourPanel(id="tour"))
        self._screen.call_after_refresh(self._show)

    def go(self, direction: int) -> None:
        """Go to the next stop, after which the tour is left, or to the one before."""
        place = self._place + direction
        if place >= len(self._stops):
            self.leave()
        elif place >= 0:
            self._place = place
            self._show()

    def leave(self) -> None:
        """End the tour."""
        self._stops = ()
        for panel in self._screen.query(TourPanel):
            panel.remove()
        self._panes.focus("matrix")

    def _show(self) -> None:
        """Put the screen where the stop says, and show its text."""
        stop = self._stops[self._place]
        try:
            self._set_up(stop)
        except InputError as error:
            self._port.say(str(error), severity="error")
        panel = self._screen.query_one(TourPanel)
        panel.show(stop, self._place + 1, len(self._stops))
        panel.focus()

    def _set_up(self, stop: Stop) -> None:
        session = self._explored.session.for_tour(stop)
        if session is not self._explored.session:
            self._port.change(session)
        names = [name for name in (*session.stops, *session.trace.program.weights) if fnmatchcase(name, stop.step)]
        place = Place(stop.head or 0, stop.row or 0, stop.column or 0)
        self._port.go(Position(names[0] if names else session.stops[0], place))
        if not self._panes.wide:
            self._panes.focus(PANE_OF.get(stop.action or "", "matrix"))
