"""The whole follows the position: bands are placed at once, and what they show is read band by band."""

from __future__ import annotations

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.whole.bands import Placement, place_bands
from tui_transformer.explorer.main.whole.moving import standing
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.main.whole.pictures import Album, Drawing, Picture
from tui_transformer.explorer.shell.asking import Requests


class Whole:
    """Shows the whole around what is explored."""

    def __init__(self, explored: Exploration, panes: Panes, requests: Requests) -> None:
        """Show nothing yet."""
        self._explored, self._panes, self._requests = explored, panes, requests
        self._album: Album | None = None
        self._placed: tuple[Placement, ...] = ()
        self._pictures: dict[int, tuple[Picture, ...]] = {}

    def show(self) -> None:
        """Show the bands around the position: what was read before at once, the rest when it is there."""
        if not self._panes.whole:
            return
        session, size = self._explored.session, self._panes.whole_size
        position = standing(session, self._explored.position)
        if self._album is None or self._album.trace is not session.trace:
            self._album = Album(session.trace)
        drawing = Drawing(session, position, self._album)
        self._placed = place_bands(session, position, size.width, size.height)
        ready = {place: each for place, each in enumerate(self._placed) if drawing.is_ready(each)}
        self._pictures = {place: drawing.draw(each) for place, each in ready.items()}
        self._show(drawing)
        self._next(drawing)

    @property
    def placed(self) -> tuple[Placement, ...]:
        """The bands on the screen."""
        return self._placed

    def _show(self, drawing: Drawing) -> None:
        position, pane = drawing.position, self._panes.screen.query_one(WholePane)
        pane.show(self._placed, self._pictures, position.stop, position.place.head)

    def _next(self, drawing: Drawing) -> None:
        """Read the first band that was not read yet, then those after it."""
        place = next((place for place in range(len(self._placed)) if place not in self._pictures), None)
        if place is None:
            return
        placement = self._placed[place]

        def done(pictures: tuple[Picture, ...]) -> None:
            self._pictures[place] = pictures
            self._show(drawing)
            self._next(drawing)

        cost = drawing.cost(placement)
        self._requests.ask("whole", cost, lambda task: drawing.draw(placement, task.report), done)
