"""Asking, and keeping the score."""

from __future__ import annotations

from collections import Counter

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.predict.question import question


class Predicting:
    """Asks one question after the other, another one on a step that was asked about.

    Attributes:
        right: How many were answered rightly.
        asked: How many were answered.
    """

    def __init__(self, explored: Exploration, port: MainPort) -> None:
        """Nothing was asked yet."""
        self.right = self.asked = 0
        self._explored, self._port = explored, port
        self._numbers: Counter[str] = Counter()

    def ask(self) -> None:
        """Ask about the step that is shown."""
        from tui_transformer.explorer.main.predict.screen import PredictScreen

        scene, session, stop = self._explored.scene, self._explored.session, self._explored.position.stop
        if scene is None:
            self._port.say("there is nothing to predict here: go to a step with space")
            return
        shape = session.trace.program.shape(scene.view.name)
        asked = question(scene.view, scene.place, shape, self._numbers[stop])
        self._numbers[stop] += 1
        words = texts.step_words(session, stop)
        self._port.open(PredictScreen(texts.stop_title(session, stop), words.what, asked), self._answered)

    def _answered(self, right: bool | None) -> None:  # noqa: FBT001 - what the screen gives
        if right is not None:
            self.asked += 1
            self.right += right
            self._port.say(f"{self.right} of {self.asked} predicted · p asks again")
