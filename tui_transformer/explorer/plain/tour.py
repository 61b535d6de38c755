"""A tour without a screen: a stop for every `tour`, and when it is left everything is as it was before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.sentences import said
from tui_transformer.explorer.shell.keymap import hint_in, with_keys
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import BACKWARD, backwards, base_of, has_outcome, outcome, scenery, tour_of
from tui_transformer.text.display import visible

ON_BY_LINE, ON_BY_KEY = "next or {tour} goes to the next stop", "{tour} goes to the next stop"
OUT_BY_LINE, OUT_BY_KEY = "{step.next} goes a step on; leave ends the tour", "{step.next} goes a step on; {back} leaves"
LAST = "this was the last stop"
"""The end of what is said at a stop: how it goes on."""


@dataclass(frozen=True, eq=False)
class Begun:
    """A tour that goes on: its text, the session that it is told of, and where one was when it began."""

    told: Lecture
    base: Session
    past: tuple[Session, ...]
    session: Session
    future: tuple[Session, ...]
    position: Position
    trail: tuple[Position, ...]


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
        self._begun: Begun | None = None
        self._stop = -1
        self._shown: Session | None = None

    @property
    def goes_on(self) -> bool:
        """Whether a tour was begun and not left."""
        return self._begun is not None

    def go(self, direction: int) -> str:
        """The stop after this one (1) or before it (−1): what it says, and where it leads.

        Raises:
            InputError: There is no tour, or no such stop of it.
        """
        begun, place = self._begun or self._begin(), self._stop + direction
        stops = begun.told.stops
        if not 0 <= place < len(stops):
            which = "first" if direction < 0 else "last"
            raise InputError(f"the tour has {len(stops)} stops; this was the {which}: leave ends the tour")
        stop, explored = stops[place], self._explored
        shown = scenery(begun.base, stop, lambda _: None)
        if shown.after is not explored.session:
            explored.history.push(shown.after)
            explored.stay()
        explored.position, self._stop, self._begun, self._shown = shown.position, place, begun, shown.after
        done = [outcome(shown, stop, lambda _: None)] if has_outcome(stop) else []
        notes = [f"notes: {stop.notes}"] if stop.notes else []
        about = [begun.told.question] if place == 0 and begun.told.question else []
        head = f"Stop {place + 1} of {len(stops)}, {stop.title}: {stop.text}"
        here, goes_on = f"{said(explored).sentence()}.", self._on if place + 1 < len(stops) else LAST
        return visible(" ".join([*about, head, *done, *notes, here, f"{goes_on}; {self._out}."]))

    def leave(self) -> str:
        """End the tour, and go back to what was explored before; what was changed meanwhile, redo brings.

        Raises:
            InputError: No tour goes on.
        """
        begun, explored = self._begun, self._explored
        if begun is None:
            raise InputError("no tour goes on that could be left: tour begins one")
        own = [] if explored.session in (self._shown, begun.session, *begun.past) else [explored.session]
        explored.history = History(begun.session, [*begun.past], [*begun.future, *own])
        explored.position, explored.trail = begun.position, [*begun.trail]
        explored.stay()
        self._begun, self._stop, self._shown = None, -1, None
        brings = ", redo brings back what you changed" if own else ""
        return f"the tour has ended, everything is as it was before it{brings}"

    def _begin(self) -> Begun:
        explored, session = self._explored, self._explored.session
        name = tour_of(session) if self._told is None else None
        told = self._told if name is None else lecture(name)
        if told is None:
            raise InputError(f"there is no tour of {session.model.name}: --tour FILE gives one")
        base = base_of(session, told)
        base = backwards(base, lambda _: None) if told.path is None and told.name == BACKWARD else base
        history = explored.history
        return Begun(
            told=with_keys(told, self._keymap),
            base=base,
            past=tuple(history.past),
            session=session,
            future=tuple(history.future),
            position=explored.position,
            trail=tuple(explored.trail),
        )
