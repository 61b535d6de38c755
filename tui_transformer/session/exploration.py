"""The state that the parts of the main screen share: session, position, how one looks at it, and what is shown."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Generic, Literal, TypeVar

from tui_transformer.engine.pool import trim
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.position import Position
from tui_transformer.session.scene import Scene
from tui_transformer.session.sentences import let_go
from tui_transformer.session.session import LOSS, VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.store import Store
from tui_transformer.session.view_state import ViewState


@dataclass(eq=False)
class Exploration:
    """The values that say what is on the screen.

    Attributes:
        history: The session, and those before and after it.
        position: The stop and the cell.
        view: How one looks at them.
        trail: The positions that terms were followed from.
        scene: What is on the screen; None before anything is.
        store: What was worked out of the sessions that are near.
        near_bytes: Bytes of the traces and gradients of other sessions that are kept, so that undo is immediate.
    """

    history: History[Session]
    position: Position
    view: ViewState = field(default_factory=ViewState)
    trail: list[Position] = field(default_factory=list)
    scene: Scene | None = None
    store: Store = field(default_factory=Store)
    near_bytes: int = 1 << 25

    @classmethod
    def begun(cls, session: Session, at: Position | None = None, view: ViewState | None = None) -> Exploration:
        """Of a session, at its first stop if nothing else is said; edits that it begins with can be undone."""
        past = [session.unedited] if session.edits else []
        return cls(History(session, past), at or Position(session.stops[0]), view or ViewState())

    @property
    def session(self) -> Session:
        """The session that is explored."""
        return self.history.current

    @property
    def step(self) -> StepScene | None:
        """The matrix and the cell on the screen; None for words, and where the screen has not followed yet."""
        scene = self.scene
        if scene is None or scene.session is not self.session or scene.position.stop != self.position.stop:
            return None
        return scene.step

    def change_view(self, **changes: Any) -> None:
        """Replace parts of the view state."""
        self.view = replace(self.view, **changes)

    def go(self, position: Position) -> None:
        """Be at another stop or cell; a stop begins with the first of its charts."""
        if position.stop != self.position.stop:
            self.view = replace(self.view, chart=0)
        self.position = position

    def follow(self, position: Position) -> None:
        """Be at another cell, and remember where one came from."""
        self.trail.append(self.position)
        self.go(position)

    @property
    def first_weight(self) -> str | None:
        """The first weight that the step reads; None where there is none."""
        program, stop = self.session.trace.program, self.position.stop
        inputs = program.step(stop).inputs if stop in program.by_name else ()
        return next((name for name in inputs if name in program.weights), None)

    def has(self, stop: str) -> bool:
        """Whether the session has a stop."""
        program = self.session.trace.program
        known = stop in self.session.stops or stop in program.by_name
        of_model = stop in program.weights or stop in program.givens
        return known or of_model or (stop == VOCABULARY and self.session.model.vocabulary is not None)

    @property
    def beginning_back(self) -> Position | None:
        """Where a walk backwards begins that is asked for here: nowhere else, but from the vocabulary at the loss."""
        return Position(LOSS, self.position.place) if self.position.stop == VOCABULARY else None

    def stay(self) -> None:
        """Keep the positions that the session has; where it has not this one, go to the first stop.

        What was worked out of sessions many changes away, or takes more memory than is kept, is let go, and so are
        weights that no nearer one has.
        """
        if not self.has(self.position.stop):
            self.position = Position(self.session.stops[0])
        self.trail = [position for position in self.trail if self.has(position.stop)]
        near, held = [self.session], 0
        for each in self.history.near:
            held += each.cache.held_bytes
            if held > self.near_bytes:
                break
            near.append(each)
        self.store.keep(near)
        kept = set(map(id, near))
        far = [each for each in self.history.all if id(each) not in kept]
        let_go((each.cache for each in far), (each.cache for each in near))
        weights = {id(each.model.weights) for each in near}
        for each in far:
            if id(each.model.weights) not in weights:
                each.model.weights.let_go()
        trim()


State = TypeVar("State")
Way = Literal["undo", "redo"]
MOST = 100
NEAR = 2
"""Changes back and forth that are undone and made again at once; further away, all is worked out again."""


@dataclass(eq=False)
class History(Generic[State]):
    """The states before and after the current one."""

    current: State
    past: list[State] = field(default_factory=list)
    future: list[State] = field(default_factory=list)

    @property
    def near(self) -> list[State]:
        """The states a few changes away, the nearest first."""
        pairs = zip_longest(self.past[: -NEAR - 1 : -1], self.future[: -NEAR - 1 : -1])
        return [state for pair in pairs for state in pair if state is not None]

    @property
    def all(self) -> list[State]:
        """Every state."""
        return [*self.past, self.current, *self.future]

    def push(self, state: State) -> None:
        """A new current state; what was undone is forgotten."""
        self.past = [*self.past, self.current][-MOST:]
        self.current, self.future = state, []

    def turn(self, way: Way) -> bool:
        """Go back or forward one state; whether there was one."""
        source, target = (self.past, self.future) if way == "undo" else (self.future, self.past)
        if not source:
            return False
        target.append(self.current)
        self.current = source.pop()
        return True
