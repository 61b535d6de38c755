"""A tour without a screen, a stop for every `tour`, and questions on a step: predict, then reveal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.question import Question, chosen, question
from tui_transformer.explorer.plain.sentences import describe, matrix_of
from tui_transformer.explorer.shell.keymap import hint_in, with_keys
from tui_transformer.explorer.shell.user_files import keep_score, read_score
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import TourState, backwards, goes_back, has_outcome, outcome, scenery, tour_of
from tui_transformer.text.display import visible

ON_BY_LINE, ON_BY_KEY = "next or {tour} goes to the next stop", "{tour} goes to the next stop"
OUT_BY_LINE, OUT_BY_KEY = "{step.next} goes a step on; leave ends the tour", "{step.next} goes a step on; {back} leaves"
LAST = "this was the last stop"
"""The end of what is said at a stop: how it goes on."""


class Touring:
    """Leads through what is explored, a stop after the other."""

    def __init__(
        self, explored: Exploration, told: Lecture | None, keymap: Mapping[str, str], *, by_line: bool
    ) -> None:
        """Lead nowhere yet.

        Args:
            explored: The session and the position.
            told: The tour that is led, by default that of the model.
            keymap: The keys that the user gave to meanings.
            by_line: Whether whole lines are typed, with commands in words, or single keys.
        """
        self._on = hint_in(keymap, ON_BY_LINE if by_line else ON_BY_KEY)
        self._out = hint_in(keymap, OUT_BY_LINE if by_line else OUT_BY_KEY)
        self._explored, self._told, self._keymap = explored, told, keymap
        self._state: TourState | None = None
        self._stop = -1
        self._shown: tuple[Session, ...] = ()

    @property
    def goes_on(self) -> bool:
        """Whether a tour was begun and not left."""
        return self._state is not None

    def go(self, direction: int) -> str:
        """The stop after this one (1) or before it (−1): what it says, and where it leads.

        Raises:
            InputError: There is no tour, or no such stop of it.
        """
        state, place, explored = self._state or self._begin(), self._stop + direction, self._explored
        stops = state.told.stops
        if not 0 <= place < len(stops):
            which = "first" if direction < 0 else "last"
            raise InputError(f"the tour has {len(stops)} stops; this was the {which}: leave ends the tour")
        stop = stops[place]
        shown = scenery(state.base, stop, lambda _: None)
        if shown.after is not explored.session:
            explored.history.push(shown.after)
            explored.stay()
        explored.position, self._stop, self._state, self._shown = shown.position, place, state, (shown.after,)
        parts = (
            state.told.question if place == 0 else "",
            f"Stop {place + 1} of {len(stops)}, {stop.title}: {stop.text}",
            outcome(shown, stop, lambda _: None) if has_outcome(stop) else "",
            f"notes: {stop.notes}" if stop.notes else "",
            f"{describe(explored).sentence()}.",
            f"{self._on if place + 1 < len(stops) else LAST}; {self._out}.",
        )
        return visible(" ".join(filter(None, parts)))

    def leave(self) -> str:
        """End the tour, and go back to what was explored before; what was changed meanwhile, redo brings.

        Raises:
            InputError: No tour goes on.
        """
        if self._state is None:
            raise InputError("no tour goes on that could be left: tour begins one")
        changed = self._state.leave(self._explored, self._shown)
        self._state, self._stop, self._shown = None, -1, ()
        brings = ", redo brings back what you changed" if changed else ""
        return f"the tour has ended, everything is as it was before it{brings}"

    def _begin(self) -> TourState:
        session = self._explored.session
        name = tour_of(session) if self._told is None else None
        told = self._told if name is None else lecture(name)
        if told is None:
            raise InputError(f"there is no tour of {session.model.name}: --tour FILE gives one")
        state = TourState.begin(self._explored, with_keys(told, self._keymap))
        return replace(state, base=backwards(state.base, lambda _: None)) if goes_back(told) else state


class Questions:
    """Asks one question after the other, another one on a step that was asked about."""

    def __init__(self, explored: Exploration) -> None:
        self._explored = explored
        self._numbers: Counter[str] = Counter()
        self._asked: Question | None = None

    def ask(self) -> str:
        """A question on the step, and what can be answered.

        Raises:
            InputError: The step has no numbers.
        """
        stop, view = self._explored.position.stop, matrix_of(self._explored)
        if view is None:
            raise InputError("there is nothing to predict here: go to a step with numbers")
        shape = self._explored.session.trace.program.shape(stop)
        asked = self._asked = question(view, self._explored.position.place, shape, self._numbers[stop])
        self._numbers[stop] += 1
        choices = ", ".join(f"{number} {visible(choice)}" for number, choice in enumerate(asked.choices, 1))
        return f"{visible(asked.text)} It may be {choices}; answer and a number or the words reveals it."

    def reveal(self, typed: str) -> str:
        """Whether an answer was right, why, and the score.

        Raises:
            InputError: Nothing was asked, or nothing is answered.
        """
        asked = self._asked
        if asked is None:
            raise InputError("nothing was asked: predict asks a question on this step")
        if not typed:
            raise InputError("write the answer behind it: answer 2")
        self._asked, place = None, chosen(asked, typed)
        given = visible(typed) if place is None else asked.choices[place]
        score = read_score().and_then(right=place == asked.right)
        keep_score(score)
        said = "Right" if place == asked.right else f"Not {given}: it is {asked.choices[asked.right]}"
        return visible(f"{said}; {asked.working}; {score}.")
