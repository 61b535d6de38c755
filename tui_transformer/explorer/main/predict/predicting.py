"""Asking, and keeping the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.predict.question import Question, question, question_of
from tui_transformer.explorer.shell.user_files import Score, keep_score, read_score
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.step_scene import StepScene, gather


class Predicting:
    """Asks one question after the other, another one on a step that was asked about."""

    def __init__(self, explored: Exploration, port: MainPort) -> None:
        self._explored, self._port = explored, port
        self._numbers: Counter[str] = Counter()
        self._score: Score | None = None

    @property
    def score(self) -> Score:
        """All answers so far, of earlier days too."""
        if self._score is None:
            self._score = read_score()
        return self._score

    def ask(self) -> None:
        """Ask about the step that is shown."""
        scene, session, stop = self._explored.step, self._explored.session, self._explored.position.stop
        if scene is None:
            self._port.say(self._port.hint("there is nothing to predict here: go to a step with {step.next}"))
            return
        shape = session.trace.program.shape(scene.view.name)
        asked = question(scene.view, scene.place, shape, self._numbers[stop])
        self._numbers[stop] += 1
        self._open(session, scene, asked)

    def ask_at(self, session: Session, position: Position, kind: str, then: Callable[[], None]) -> None:
        """Ask a question of a kind about a cell, before it is shown; then go on, whatever was answered."""
        scene = gather(session, position, self._explored.view, "value")
        asked = question_of(kind, scene.view, scene.place, session.trace.program.shape(position.stop))
        if asked is None:
            then()
        else:
            self._open(session, scene, asked, then)

    def _open(
        self, session: Session, scene: StepScene, asked: Question, then: Callable[[], None] = lambda: None
    ) -> None:
        from tui_transformer.explorer.main.predict.screen import PredictScreen

        def answered(right: bool | None) -> None:  # noqa: FBT001 - what the screen gives
            if right is not None:
                self._score = read_score().and_then(right=right)
                keep_score(self._score)
                self._port.say(f"{self._score} · {self._port.hint('{predict} asks again')}")
            then()

        self._port.open(PredictScreen(asked, session, scene), answered)
