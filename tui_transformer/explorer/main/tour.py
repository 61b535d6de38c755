"""The tour: puts the screen where each of its stops says, and gives everything back when it is left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.predict import Predicting
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import keymap_of, with_keys
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.guide.texts import Stop
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.tour_stop import (
    Scenery,
    TourState,
    backwards,
    doing,
    goes_back,
    has_outcome,
    outcome,
    outcome_cost,
    scenery,
    tour_of,
)

PANE_OF: dict[str, str] = {"explain": "cell", "chart": "chart"}
"""The pane that a stop is about, where one is shown at a time."""

ANSWERS = "question 99.9 % → statement 99.9 %"
LOSS = "the model says question 99.9 %, the target is statement: loss 7.1234"
"""As long as what comes of a stop usually is: before → after, and backward."""


class Tour:
    """Leads through what is explored, a stop after the other."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Navigation, predicting: Predicting) -> None:
        self._explored, self._presenter, self._port, self._predicting = explored, presenter, port, predicting
        self._panes, self._screen = presenter.panes, presenter.panes.screen
        self._state: TourState | None = None
        self._place = 0
        self._asked: set[str] = set()
        self._hidden = False
        self._shown: tuple[Session, ...] = ()
        port.begin_tour, port.end_tour = self.begin, self.leave

    @property
    def file(self) -> Path | None:
        """The file of the lecture that goes on, if it is from one."""
        return None if self._state is None else self._state.told.path

    @property
    def stop(self) -> tuple[int, int, str] | None:
        """The number of the stop that is shown, from 1, of how many, and its name; None without a tour."""
        if self._state is None:
            return None
        stops = self._state.told.stops
        return self._place + 1, len(stops), stops[self._place].name

    def begin_or_leave(self) -> None:
        """Begin the tour of this model, backward that of gradients, or leave it."""
        if self._state is not None:
            self.leave()
        elif (name := tour_of(self._explored.session)) is not None:
            self.begin(name)
        else:
            what = f"there is no tour of {self._explored.session.model.name}"
            self._port.say(self._port.hint(f"{what}: {{open}} lists tours"))

    def begin(self, name: str) -> None:
        """Begin a tour of the program; one that goes on is left first."""
        self.follow(lecture(name))

    def follow(self, told: Lecture) -> None:
        """Begin a tour, of the program or from a file; one that goes on is left first."""
        told = with_keys(told, keymap_of(self._screen.app))
        self.leave()
        state = self._state = TourState.begin(self._explored, told)
        self._explored.change_view(zoom=None)
        self._place, self._asked, self._hidden, self._shown = 0, set(), False, ()
        self._panes.told = tuple(_paragraphs(told.question, stop) for stop in told.stops)
        # without an ID: the panel before may still be there
        self._screen.mount(TourPanel(told.question, self._panes.told), after="#body")
        self._presenter.show_now()
        if goes_back(told):
            program = state.base.trace.program
            cost = 3 * sum(map(program.flops, program.steps))
            self._port.ask("tour", cost, lambda task: backwards(state.base, task.report), self._set_out)
        else:
            self._set_out(state.base)

    def _set_out(self, base: Session) -> None:
        if self._state is not None:
            self._state = replace(self._state, base=base)
        self._screen.call_after_refresh(self._show)

    def go(self, direction: int) -> None:
        """Go to the next stop, after which the tour is left, or to the one before."""
        place = self._place + direction
        if self._state is None or place >= len(self._state.told.stops):
            self.leave()
        elif place >= 0:
            self._place = place
            self._show()

    def leave(self) -> None:
        """End the tour, and go back to what was explored before; what the reader changed meanwhile, redo brings."""
        state, self._state = self._state, None
        if state is None:
            return
        for panel in self._screen.query(TourPanel):
            panel.remove()
        self._panes.told = ()
        changed = state.leave(self._explored, self._shown)
        self._presenter.focus(self._explored.view.active)
        if changed:
            self._port.say(self._port.hint("the tour has ended: {redo} brings back what you changed"))

    # A stop

    @property
    def _panel(self) -> TourPanel:
        return self._screen.query_one(TourPanel)

    def _show(self) -> None:
        """Show the text of the stop, and put the screen where it says."""
        if self._state is None:
            return
        stops, base = self._state.told.stops, self._state.base
        stop = stops[self._place]
        self._panel.show(stop, self._place + 1, len(stops))
        self._panel.focus()
        cost = AT_ONCE + 1 if stop.cell is not None else 0
        self._port.ask("tour", cost, lambda task: scenery(base, stop, task.report), partial(self._ask_first, stop))

    def _ask_first(self, stop: Stop, shown: Scenery) -> None:
        """Let the reader predict what the stop will show, once; then show it."""
        kind = stop.predict
        if kind is None or stop.name in self._asked or self._state is None:
            self._set(stop, shown)
            return
        self._asked.add(stop.name)
        trace, position = shown.after.trace, shown.position
        self._port.ask(
            "tour",
            trace.pending((position.stop,)),
            lambda task: trace.prepare(position.stop, before=lambda step: task.report(step.name)),
            lambda _: self._predicting.ask_at(shown.after, position, kind, lambda: self._set(stop, shown)),
        )

    def _set(self, stop: Stop, shown: Scenery) -> None:
        state, explored = self._state, self._explored
        if state is None or stop is not state.told.stops[self._place]:
            return
        changed = explored.session is not shown.after
        edited = [shown.before] if shown.after is not shown.before else []
        explored.history = History(shown.after, [*state.before.history.past, *edited])
        explored.trail, self._shown = [], (shown.before, shown.after)
        explored.change_view(chart=0)
        # the whole gives way to the chart that a stop is about, and is shown again at the next one
        hides = stop.action == "chart" and (self._panes.whole or self._hidden)
        if hides is not self._hidden:
            self._hidden = hides
            explored.change_view(whole=False if hides else state.before.view.whole)
        explored.position = shown.position
        if changed:
            self._presenter.show_session()
        else:
            self._presenter.show()
        if not self._panes.arrangement.is_wide:
            self._presenter.focus(PANE_OF.get(stop.action or "", "matrix"))
        self._panel.focus()
        if has_outcome(stop):
            cost = outcome_cost(shown)
            self._port.ask("tour", cost, lambda task: outcome(shown, stop, task.report), self._say_outcome)

    def _say_outcome(self, text: str) -> None:
        if self._state is not None:
            self._panel.say(text)


def _paragraphs(question: str, stop: Stop) -> tuple[str, ...]:
    """Text that the card of a stop may say; its outcome is not known yet."""
    notes = (f"notes: {stop.notes}",) if stop.notes else ()
    comes = LOSS if stop.cell is not None else f"{doing(stop)}: {ANSWERS}"
    return question, stop.text, *notes, *((comes,) if has_outcome(stop) else ())
