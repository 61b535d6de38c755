"""The whole follows the position: bands are placed at once, and what they show is read band by band."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.overlay import FOLLOWS, WRONG, marks
from tui_transformer.explorer.main.whole.bands import Placement, place_bands
from tui_transformer.explorer.main.whole.ladder import Lengths, Rung, ladder_columns, rung_of, rungs
from tui_transformer.explorer.main.whole.moving import standing
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.main.whole.pictures import Album, Drawing, Picture
from tui_transformer.explorer.main.whole.rungs import Ladder
from tui_transformer.explorer.shell.requests import AT_ONCE, Requests
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.heads import query_head


class Whole:
    """Shows the whole around what is explored."""

    def __init__(self, explored: Exploration, panes: Panes, requests: Requests) -> None:
        """Show nothing yet."""
        self._explored, self._panes, self._requests = explored, panes, requests
        self._album: Album | None = None
        self._size = panes.whole_size
        self._placed: tuple[Placement, ...] = ()
        self._pictures: dict[int, tuple[Picture, ...]] = {}
        self._lengths: dict[str, Lengths] = {}

    def show(self) -> None:
        """Show the bands around the position: what was read before at once, the rest when it is there."""
        if not self._panes.whole:
            return
        session, size = self._explored.session, self._panes.whole_size
        self._size = size
        position = standing(session, self._explored.position)
        if self._album is None or self._album.trace is not session.trace:
            self._album = Album(session.trace)
        drawing = Drawing(session, position, self._album)
        self._placed = place_bands(session, position, size.width, size.height)
        ready = {place: each for place, each in enumerate(self._placed) if drawing.is_ready(each)}
        self._pictures = {place: drawing.draw(each) for place, each in ready.items()}
        self._lengths = self._known_lengths(drawing)
        self._read_at_once(drawing)
        self._show(drawing)
        self._next(drawing)

    def fit(self) -> None:
        """Show the bands again where there is another room for them."""
        if self._size != self._panes.whole_size:
            self.show()

    @property
    def placed(self) -> tuple[Placement, ...]:
        """The bands on the screen."""
        return self._placed

    def _show(self, drawing: Drawing) -> None:
        position, pane = drawing.position, self._panes.screen.query_one(WholePane)
        marked = marks(drawing.session)
        ladder = self._ladder(drawing, marked)
        head = query_head(drawing.session.trace.program, position.place.head, position.stop)
        pane.show(self._placed, self._pictures, position.stop, head, ladder, marked)

    def _read_at_once(self, drawing: Drawing) -> None:
        """Read the first bands that together cost little."""
        left = AT_ONCE
        for place, placement in enumerate(self._placed):
            if place not in self._pictures:
                left -= drawing.cost(placement)
                if left < 0:
                    return
                self._requests.ask("whole", 0, partial(_read, drawing, placement), partial(self._keep, place))

    def _keep(self, place: int, pictures: tuple[Picture, ...]) -> None:
        self._pictures[place] = pictures

    def _next(self, drawing: Drawing) -> None:
        """Read the first band that was not read yet, then those after it."""
        place = next((place for place in range(len(self._placed)) if place not in self._pictures), None)
        if place is None:
            self._climb(drawing)
            return
        placement = self._placed[place]

        def done(pictures: tuple[Picture, ...]) -> None:
            self._pictures[place] = pictures
            self._show(drawing)
            self._next(drawing)

        cost = drawing.cost(placement)
        self._requests.ask("whole", cost, partial(_read, drawing, placement), done)

    # The ladder

    def _ladder(self, drawing: Drawing, marked: Mapping[str, str]) -> Ladder:
        program = drawing.session.trace.program
        columns = ladder_columns(program, self._panes.whole_size.width)
        steps = {name: mark for name, mark in marked.items() if name in program.by_name}
        layers = {rung_of(program, name): mark for name, mark in steps.items() if mark == FOLLOWS}
        layers |= {rung_of(program, name): mark for name, mark in steps.items() if mark == WRONG}
        return Ladder(rungs(program) if columns else (), self._lengths, drawing.here, columns, layers)

    def _rungs(self, drawing: Drawing) -> tuple[Rung, ...]:
        program = drawing.session.trace.program
        return rungs(program) if ladder_columns(program, self._panes.whole_size.width) else ()

    def _known_lengths(self, drawing: Drawing) -> dict[str, Lengths]:
        known = ((rung.layer, drawing.lengths(rung)) for rung in self._rungs(drawing))
        return {layer: lengths for layer, lengths in known if lengths is not None}

    def _climb(self, drawing: Drawing) -> None:
        """Read the rungs that were not read yet: as many at a time as cost little, from the first on."""
        missing = [rung for rung in self._rungs(drawing) if rung.layer not in self._lengths]
        if not missing:
            return
        cost, count = drawing.cost_of_rung(missing[0]), 1
        while count < len(missing) and cost + drawing.cost_of_rung(missing[count]) <= AT_ONCE:
            cost, count = cost + drawing.cost_of_rung(missing[count]), count + 1

        def done(lengths: dict[str, Lengths]) -> None:
            self._lengths |= lengths
            self._show(drawing)
            self._climb(drawing)

        self._requests.ask("whole", cost, lambda task: drawing.climb(missing[:count], task.report), done)


def _read(drawing: Drawing, placement: Placement, task: Task) -> tuple[Picture, ...]:
    return drawing.draw(placement, task.report)
