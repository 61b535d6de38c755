"""A run whose model belongs to another thread: what is asked for is done in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from training_runs import settings

from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.learning.run import Run


def test_no_turn_is_asked_for_within_a_turn(tmp_path: Path) -> None:
    """On a GPU it would wait for itself: the thread that owns the model does one piece of work after the other."""
    run, inside, done = Run.start(tmp_path / "run", settings(tmp_path)), [], threading.Event()

    def turn(work: Callable[[], None]) -> None:
        assert not inside
        inside.append(work)
        work()
        inside.clear()

    training = Training("run", lambda: run, turn)
    training.save(lambda: setattr(training, "_turn", turn))  # opened on the CPU it does without from then on
    training.save()
    training.copy_model(lambda _: done.set())
    assert done.wait(30), training.error
    training.end()
    assert training.error is None
