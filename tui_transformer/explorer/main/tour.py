"""The tour: puts the screen where each of its stops says, and gives everything back when it is left.

Where a stop asks first, the card has the question, and the screen what one needs to think; then the stop is shown.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tui_transformer.analysis.tokens import NOTHING
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.panes.card import TourPanel, goes_on_with
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.main.question import NOTHING_CHOSEN, Question, question_at
from tui_transformer.explorer.shell.keymap import keymap_of, with_keys
from tui_transformer.explorer.shell.user_files import count_answer
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.guide.lecture import Lecture, lecture, tell_speaker
from tui_transformer.guide.texts import Stop
from tui_transformer.records import replace
from tui_transformer.session.answer_summary import answer_cost
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.position import Position
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
    scenery,
    suitable,
    thinking_place,
    tour_after,
    tour_of,
)

ANSWERS = "question 99.9 % → statement 99.9 %"
LOSS = "the model says question 99.9 %, the target is statement: loss 7.1234"
"""As long as what comes of a stop usually is: before → after, and backward."""

VERDICT = "You said 4 × 9 × 18. It is 4 × 9 × 9. Queries Q 4 × 9 × 8 and Keys K 4 × 9 × 8 give 4 × 9 query × 9 key."
"""As long as it usually is how one could have known."""


class Tour:
    """Leads through what is explored, a stop after the other."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Navigation) -> None:
        self._explored, self._presenter, self._port = explored, presenter, port
        self._panes, self._screen = presenter.panes, presenter.panes.screen
        self._state: TourState | None = None
        self._given: Lecture | None = None
        self._place = 0
        self._asking: tuple[Stop, Scenery, Question] | None = None  # what waits for an answer
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
        """Begin the lecture that was opened, or the first tour of this model; or leave it, at its end for the next."""
        following, was_led = self._following, self._state is not None
        self.leave()
        if following is not None:
            self.begin(following)
        elif was_led:
            return
        elif self._given is not None and self._given.path is not None:
            try:
                self.follow(replace(suitable(self._explored.session, str(self._given.path)), notes=self._given.notes))
            except InputError as error:  # as its file is now: the model's own is begun next
                self._given = None
                self._port.say(str(error))
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
        self._given = told if told.path is not None else self._given
        told = with_keys(told, keymap_of(self._screen.app))
        self.leave()
        state = self._state = TourState.begin(self._explored, told)
        self._explored.change_view(zoom=None, **({} if told.path is not None else {"hidden": NOTHING}))
        self._place, self._asked, self._hidden, self._shown = 0, set(), False, ()
        self._panes.told = tuple(self._paragraphs(told, number) for number in range(1, len(told.stops) + 1))
        self._screen.mount(TourPanel(self._panes.told), after="#body")
        self._presenter.show_now()
        if goes_back(told):
            program = state.base.trace.program
            cost = 3 * sum(map(program.flops, program.steps))
            self._port.ask("tour", lambda task: backwards(state.base, task.report), self._set_out, cost)
        else:
            self._set_out(state.base)

    def _set_out(self, base: Session) -> None:
        if self._state is not None:
            self._state = replace(self._state, base=base)
        self._screen.call_after_refresh(self._show)

    def go(self, direction: int) -> None:
        """Go to the next stop, after which the tour is left, or to the one before; a question is left open."""
        place = self._place + direction
        if direction > 0 and self._asking is not None:
            self._begin_stop(*self._asking[:2])
        elif self._state is None or place >= len(self._state.told.stops):
            self.leave()
        elif place >= 0:
            self._place = place
            self._show()

    def answer(self) -> None:
        """Show what is right, where an answer is chosen; without a question go on."""
        if self._asking is None:
            self.go(1)
            return
        (stop, shown, question), choice = self._asking, self._panel.choice
        if choice is None:
            self._panel.say(f"{NOTHING_CHOSEN}: 1 to {len(question.choices)}, or → skips the question")
        else:
            self._port.say(str(count_answer(right=choice == question.right)))
            self._begin_stop(stop, shown, question.verdict(choice))

    def leave(self) -> None:
        """End the tour, and go back to what was explored before; what the reader changed meanwhile, redo brings."""
        state, self._state, self._asking = self._state, None, None
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

    @property
    def _following(self) -> str | None:
        """The tour that goes on from here, at the last stop of one."""
        state = self._state
        return None if state is None or self._place + 1 < len(state.told.stops) else tour_after(state.told)

    def _show(self) -> None:
        """Show the text of the stop, and put the screen where it says; or ask first, once."""
        if self._state is None:
            return
        told, base = self._state.told, self._state.base
        stop, self._asking = told.stops[self._place], None
        asks = stop.predict is not None and stop.name not in self._asked
        self._panel.show(told, self._place + 1, asks=asks, goes_on=self._following is not None)
        self._panel.focus()
        try:
            tell_speaker(told, self._place + 1)
        except InputError as error:
            self._port.say(f"the notes end here: {error}")
            self._state = replace(self._state, told=replace(told, notes=None))
        cost = AT_ONCE + 1 if stop.cell is not None else 0
        then = partial(self._prepare if asks else self._set, stop)
        self._port.ask("tour", lambda task: scenery(base, stop, task.report), then, cost)

    # The question of a stop

    def _prepare(self, stop: Stop, shown: Scenery) -> None:
        """Make the question of a stop, and what one thinks about; then ask."""
        session, position = shown.after, shown.position
        before, trace = thinking_place(session, position), session.trace
        if before is None:
            self._begin_stop(stop, shown)
            return

        def make(task: Task) -> Question | None:
            for name in (before.stop, position.stop):
                trace.prepare(name, before=lambda step: task.report(step.name))
            return question_at(session, position, stop.predict or "")

        self._port.ask("tour", make, partial(self._ask, stop, shown, before), trace.pending((position.stop,)))

    def _ask(self, stop: Stop, shown: Scenery, before: Position, question: Question | None) -> None:
        if question is None:
            self._begin_stop(stop, shown)
        elif self._is_at(stop):
            self._asking = stop, shown, question
            self._panel.ask(question)
            self._put(stop, shown, before)

    def _begin_stop(self, stop: Stop, shown: Scenery, verdict: str = "") -> None:
        """Show a stop that is asked about no more, with the verdict where its question was answered."""
        self._asking = None
        self._asked.add(stop.name)
        if self._state is not None and self._is_at(stop):
            self._panel.show(self._state.told, self._place + 1, goes_on=self._following is not None)
            self._set(stop, shown)
            self._panel.judge(verdict)

    # What it shows

    def _is_at(self, stop: Stop) -> bool:
        return self._state is not None and stop is self._state.told.stops[self._place]

    def _set(self, stop: Stop, shown: Scenery) -> None:
        """Show where a stop leads, and what comes of what it does."""
        if not self._is_at(stop):
            return
        self._put(stop, shown, shown.position)
        if has_outcome(stop):

            def say(text: str) -> None:
                if self._is_at(stop):
                    self._panel.say(text)

            cost = answer_cost(shown.before) + answer_cost(shown.after)
            self._port.ask("tour", lambda task: outcome(shown, stop, task.report), say, cost)

    def _put(self, stop: Stop, shown: Scenery, position: Position) -> None:
        """Put the screen at a position of the session that a stop shows."""
        state, explored = self._state, self._explored
        if state is None:
            return
        changed = explored.session is not shown.after
        edited = [shown.before] if shown.after is not shown.before else []
        explored.history = History(shown.after, [*state.before.history.past, *edited])
        explored.trail, self._shown = [], (shown.before, shown.after)
        explored.change_view(chart=0, pointed=(position.stop, position.place) if stop.arrow else None)
        if stop.arrow:  # at a number, however narrow the cells were made
            explored.change_view(cell_width=None)
        # the whole gives way to the chart that a stop is about, and is shown again at the next one
        hides = stop.action == "chart" and (self._panes.whole or self._hidden)
        if hides is not self._hidden:
            self._hidden = hides
            explored.change_view(whole=False if hides else state.before.view.whole)
        explored.position = position
        if changed:
            self._presenter.show_session()
        else:
            self._presenter.show()
        if "-wide" not in self._panes.arrangement.classes:
            about = "" if self._asking is not None else stop.action
            self._presenter.focus({"explain": "cell", "chart": "chart"}.get(about or "", "matrix"))
        self._panel.focus()

    def _paragraphs(self, told: Lecture, number: int) -> tuple[str, ...]:
        """Text that the card of a stop may say; its outcome is not known yet."""
        stop = told.stops[number - 1]
        said = LOSS if stop.cell is not None else f"{doing(stop)}: {ANSWERS}"
        comes = (VERDICT,) * (stop.predict is not None) + (said,) * has_outcome(stop)
        following = tour_after(told) if number == len(told.stops) else None
        goes_on = () if following is None else (self._port.hint(goes_on_with(following)),)
        return "" if stop.arrow else told.question, stop.text, *comes, *goes_on
