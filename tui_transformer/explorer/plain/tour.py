"""A tour without a screen, a stop for every `tour`, which may ask first; questions on a step: predict, then reveal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.question import Question, chosen, question, question_at
from tui_transformer.explorer.plain.keys import ANSWER
from tui_transformer.explorer.plain.sentences import describe, line_of, matrix_of
from tui_transformer.explorer.shell.keymap import hint_in, with_keys
from tui_transformer.explorer.shell.user_files import count_answer
from tui_transformer.guide.lecture import Lecture, lecture, tell_speaker
from tui_transformer.guide.texts import Stop, tour_question
from tui_transformer.records import replace
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import (
    Scenery,
    TourState,
    backwards,
    goes_back,
    has_outcome,
    outcome,
    scenery,
    thinking_place,
    tour_after,
    tour_of,
)
from tui_transformer.text.display import visible

REVEALS = "answer and a number or the words reveals it"
BY_LINE = (
    "next or {tour} goes to the next stop",
    "{step.next} goes a step on; leave ends the tour",
    f"{REVEALS}; next or {{tour}} skips it",
)
BY_KEY = (
    "{tour} goes to the next stop",
    "{step.next} goes a step on; {back} leaves",
    f"{ANSWER} takes an answer; {{tour}} skips it",
)
"""How a tour goes on, and is left, at the end of what is said at a stop; how a question is answered, and left open."""

LAST = "this was the last stop"
ANSWERED_SO = "write the answer behind it: answer 2"


class Touring:
    """Leads through what is explored, a stop after the other, and asks: at a stop, or on any step.

    Its arguments are those of `Reader`.
    """

    def __init__(
        self, explored: Exploration, told: Lecture | None, keymap: Mapping[str, str], *, by_line: bool
    ) -> None:
        self._on, self._out, self._asks = (hint_in(keymap, text) for text in (BY_LINE if by_line else BY_KEY))
        self._explored, self._told, self._keymap = explored, told, keymap
        self._state: TourState | None = None
        self._stop = -1
        self._shown: tuple[Session, ...] = ()
        self._asked: set[str] = set()
        self._asking: tuple[Question, Callable[[], str]] | None = None
        """The question of the stop while it is open, and what tells the stop then."""
        self._predicted: Question | None = None
        self._numbers: Counter[str] = Counter()
        """The question on a step, and how many there were on each."""

    @property
    def goes_on(self) -> bool:
        """Whether a tour was begun and not left."""
        return self._state is not None

    def begin(self, told: Lecture) -> str:
        """The first stop of a tour."""
        self._state = self._begin(told)
        return self.go(1)

    def go(self, direction: int) -> str:
        """The stop after this one (1) or before it (−1): what it says, and where it leads.

        Raises:
            InputError: There is no tour, or no such stop of it.
        """
        if direction > 0 and self._asking is not None:
            return self._asking[1]()
        state, place = self._state or self._begin(), self._stop + direction
        stops, following = state.told.stops, tour_after(state.told)
        if place == len(stops) and following is not None:
            self.leave()
            return self.begin(lecture(following))
        if not 0 <= place < len(stops):
            which = "first" if direction < 0 else "last"
            raise InputError(f"the tour has {len(stops)} stops; this was the {which}: leave ends the tour")
        stop, problem, asked = stops[place], "", None
        shown = scenery(state.base, stop, lambda _: None)
        thinking = thinking_place(shown.after, shown.position)
        if stop.predict is not None and stop.name not in self._asked and thinking is not None:
            asked = question_at(shown.after, shown.position, stop.predict)
        self._stop, self._state, self._shown, self._asking = place, state, (shown.after,), None
        try:
            tell_speaker(state.told, place + 1)
        except InputError as error:
            self._state = replace(state, told=replace(state.told, notes=None))
            problem = f"The notes end here: {error}."
        heading = f"Stop {place + 1} of {len(stops)}, {stop.title}"
        tell = partial(self._tell, state.told, stop, shown, heading)
        if asked is None:
            return f"{problem} {tell()}".lstrip()
        self._asking = asked, tell
        self._put(shown, thinking or shown.position)  # the row that one needs to think
        before = f"Before it, {describe(self._explored, counted=False).step}: {line_of(self._explored)}."
        return f"{problem} {visible(f'{heading}: {asked.text} {offered(asked)} {self._asks}. {before}')}".lstrip()

    def predict(self) -> str:
        """A question on the step, another one than before, and what can be answered.

        Raises:
            InputError: The step has no numbers.
        """
        stop, view = self._explored.position.stop, matrix_of(self._explored)
        if view is None:
            raise InputError("there is nothing to predict here: go to a step with numbers")
        trace, place = self._explored.session.trace, self._explored.position.place
        asked = self._predicted = question(trace, view, place, self._numbers[stop])
        self._numbers[stop] += 1
        return visible(f"{asked.text} {offered(asked)} {REVEALS}.")

    def answer(self, typed: str) -> str:
        """Whether an answer is right and how one could have known, the score, and what a stop that asked says.

        Raises:
            InputError: Nothing was asked, or nothing is answered.
        """
        if self._asking is not None:
            asked, tell = self._asking
            return f"{_judged(asked, typed)} {tell()}"
        if self._predicted is None:
            raise InputError("nothing was asked: predict asks a question on this step")
        judged, self._predicted = _judged(self._predicted, typed), None
        return judged

    def _tell(self, told: Lecture, stop: Stop, shown: Scenery, heading: str) -> str:
        """What a stop says, once nothing is asked there any more, and where it leads."""
        self._asking = None
        self._asked.add(stop.name)
        self._put(shown, shown.position)
        following = tour_after(told) if stop is told.stops[-1] else None
        ends = LAST if stop is told.stops[-1] else self._on
        if following is not None:
            ends = f"{self._on.replace('the next stop', 'the next tour')}, {tour_question(following)}"
        parts = (
            told.question if self._stop == 0 and not stop.arrow else "",
            f"{heading}: {stop.text}",
            outcome(shown, stop, lambda _: None) if has_outcome(stop) else "",
            f"{describe(self._explored, counted=False).sentence()}.",
            f"{ends}; {self._out}.",
        )
        return visible(" ".join(filter(None, parts)))

    def _put(self, shown: Scenery, position: Position) -> None:
        if shown.after is not self._explored.session:
            self._explored.history.push(shown.after)
            self._explored.stay()
        self._explored.position = position

    def leave(self) -> str:
        """End the tour, and go back to what was explored before; what was changed meanwhile, redo brings.

        Raises:
            InputError: No tour goes on.
        """
        if self._state is None:
            raise InputError("no tour goes on that could be left: tour begins one")
        changed = self._state.leave(self._explored, self._shown)
        self._state, self._stop, self._shown, self._asking = None, -1, (), None
        self._asked.clear()
        brings = ", redo brings back what you changed" if changed else ""
        return f"the tour has ended, everything is as it was before it{brings}"

    def _begin(self, told: Lecture | None = None) -> TourState:
        session, told = self._explored.session, told or self._told
        name = tour_of(session) if told is None else None
        told = told if name is None else lecture(name)
        if told is None:
            raise InputError(f"there is no tour of {session.model.name}: --tour FILE gives one")
        state = TourState.begin(self._explored, with_keys(told, self._keymap))
        return replace(state, base=backwards(state.base, lambda _: None)) if goes_back(told) else state


def _judged(asked: Question, typed: str) -> str:
    """Whether an answer is right and how one could have known, and the score; InputError where there is no answer."""
    if not typed:
        raise InputError(ANSWERED_SO)
    place = chosen(asked, typed)
    return f"{asked.verdict(place, typed)} {count_answer(right=place == asked.right)}."


def offered(asked: Question) -> str:
    """What can be answered."""
    choices = ", ".join(f"{number}: {visible(choice)}" for number, choice in enumerate(asked.choices, 1))
    return f"It may be {choices};"
