"""The tour: puts the screen where each of its stops says, and gives everything back when it is left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.predict import Predicting
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import keymap_of, with_keys
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.guide.texts import Stop
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.tour_stop import (
    BACKWARD,
    Scenery,
    backwards,
    base_of,
    doing,
    has_outcome,
    outcome,
    outcome_cost,
    scenery,
    tour_of,
)
from tui_transformer.session.view_state import ViewState

PANE_OF: dict[str, str] = {"explain": "cell", "chart": "chart"}
"""The pane that a stop is about, where one is shown at a time."""

ANSWERS = "question 99.9 % → statement 99.9 %"
LOSS = "the model says question 99.9 %, the target is statement: loss 7.1234"
"""As long as what comes of a stop usually is: before → after, and backward."""


class Tour:
    """Leads through what is explored, a stop after the other."""

    def __init__(
        self, explored: Exploration, panes: Panes, presenter: Presenter, port: MainPort, predicting: Predicting
    ) -> None:
        self._explored, self._panes, self._presenter, self._port = explored, panes, presenter, port
        self._predicting = predicting
        self._asked: set[str] = set()
        self._hidden = False
        self._stops: tuple[Stop, ...] = ()
        self._lecture: Lecture | None = None
        self._place = 0
        self._begun: Exploration | None = None
        self._base = explored.session
        self._shown: tuple[Session, ...] = ()
        port.begin_tour, port.end_tour = self.begin, self.leave

    def begin_or_leave(self) -> None:
        """Begin the tour of this model, backward that of gradients, or leave it."""
        if self._begun is not None:
            self.leave()
            return
        name = tour_of(self._explored.session)
        if name is None:
            self._port.say(
                self._port.hint(f"there is no tour of {self._explored.session.model.name}: {{open}} lists tours")
            )
            return
        self.begin(name)

    def begin(self, name: str) -> None:
        """Begin a tour of the program; one that goes on is left first."""
        self.follow(lecture(name))

    def follow(self, told: Lecture) -> None:
        """Begin a tour, of the program or from a file; one that goes on is left first."""
        told = with_keys(told, keymap_of(self._panes.screen.app))
        self.leave()
        explored, history = self._explored, self._explored.history
        before = History(explored.session, [*history.past], [*history.future])
        self._begun = replace(explored, history=before, scene=None)
        explored.change_view(zoom=None)
        self._lecture, self._stops, self._place = told, told.stops, 0
        self._asked, self._hidden = set(), False
        self._base = base_of(explored.session, told)
        self._shown = (explored.session, self._base)
        texts = tuple(_paragraphs(told.question, stop) for stop in told.stops)
        panel = TourPanel(told.question, texts)  # without an ID: the panel before may still be there
        self._panes.screen.mount(panel, after="#body")
        self._panes.told = texts
        self._presenter.show_now()
        if told.path is None and told.name == BACKWARD:
            program = self._base.trace.program
            cost = 3 * sum(map(program.flops, program.steps))
            base = self._base
            self._port.ask("tour", cost, lambda task: backwards(base, task.report), self._set_out)
        else:
            self._set_out(self._base)

    def _set_out(self, base: Session) -> None:
        self._base = base
        self._panes.screen.call_after_refresh(self._show)

    def go(self, direction: int) -> None:
        """Go to the next stop, after which the tour is left, or to the one before."""
        place = self._place + direction
        if place >= len(self._stops):
            self.leave()
        elif place >= 0:
            self._place = place
            self._show()

    def leave(self) -> None:
        """End the tour, and go back to what was explored before; what the reader changed meanwhile, redo brings."""
        begun, self._begun, self._stops, self._lecture = self._begun, None, (), None
        if begun is None:
            return
        explored = self._explored
        known = any(explored.session is each for each in (*self._shown, *begun.history.past))
        own = [] if known else [explored.session]
        explored.history = History(begun.session, begun.history.past, [*begun.history.future, *own])
        explored.position, explored.trail, explored.view = begun.position, begun.trail, begun.view
        screen = self._panes.screen
        for panel in screen.query(TourPanel):
            panel.remove()
        self._panes.told = ()
        explored.stay()
        self._presenter.focus(begun.view.active)
        if own:
            self._port.say(self._port.hint("the tour has ended: {redo} brings back what you changed"))

    @property
    def file(self) -> Path | None:
        """The file of the lecture that goes on, if it is from one."""
        return None if self._lecture is None else self._lecture.path

    @property
    def stop(self) -> tuple[int, int, str] | None:
        """The number of the stop that is shown, from 1, of how many, and its name; None without a tour."""
        if self._begun is None:
            return None
        return self._place + 1, len(self._stops), self._stops[self._place].name

    # A stop

    @property
    def _panel(self) -> TourPanel:
        return self._panes.screen.query_one(TourPanel)

    def _show(self) -> None:
        """Show the text of the stop, and put the screen where it says."""
        if self._begun is None:
            return
        stop, base = self._stops[self._place], self._base
        self._panel.show(stop, self._place + 1, len(self._stops))
        self._panel.focus()
        cost = AT_ONCE + 1 if stop.cell is not None else 0
        self._port.ask("tour", cost, lambda task: scenery(base, stop, task.report), partial(self._ask_first, stop))

    def _ask_first(self, stop: Stop, shown: Scenery) -> None:
        """Let the reader predict what the stop will show, once; then show it."""
        kind = stop.predict
        if kind is None or stop.name in self._asked or self._begun is None:
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
        begun, explored = self._begun, self._explored
        if begun is None or not self._stops or stop is not self._stops[self._place]:
            return
        changed = explored.session is not shown.after
        edited = [shown.before] if shown.after is not shown.before else []
        explored.history = History(shown.after, [*begun.history.past, *edited])
        explored.trail, self._shown = [], (begun.session, self._base, shown.before, shown.after)
        explored.change_view(chart=0)
        self._have_chart(stop, begun.view)
        explored.position = shown.position
        if changed:
            self._presenter.show_session()
        else:
            self._presenter.show()
        if not self._panes.arrangement.is_wide:
            self._presenter.focus(PANE_OF.get(stop.action or "", "matrix"))
        self._panel.focus()
        if has_outcome(stop):
            self._port.ask(
                "tour", outcome_cost(shown), lambda task: outcome(shown, stop, task.report), self._say_outcome
            )

    def _have_chart(self, stop: Stop, view: ViewState) -> None:
        """Let the whole give way to the chart that a stop is about, and show it again at the next one."""
        hides = stop.action == "chart" and (self._panes.whole or self._hidden)
        if hides is not self._hidden:
            self._hidden = hides
            self._explored.change_view(whole=False if hides else view.whole)

    def _say_outcome(self, text: str) -> None:
        if self._begun is not None:
            self._panel.say(text)


def _paragraphs(question: str, stop: Stop) -> tuple[str, ...]:
    """Text that the card of a stop may say; its outcome is not known yet."""
    notes = (f"notes: {stop.notes}",) if stop.notes else ()
    comes = LOSS if stop.cell is not None else f"{doing(stop)}: {ANSWERS}"
    return question, stop.text, *notes, *((comes,) if has_outcome(stop) else ())
