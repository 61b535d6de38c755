"""A run whose model belongs to another thread: what is asked for is done in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from training_runs import settings, trained, training, training_of

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

    begun = Training("run", lambda: run, turn)
    begun.save(lambda: setattr(begun, "_turn", turn))  # opened on the CPU it does without from then on
    begun.save()
    begun.copy_model(lambda _: done.set())
    assert done.wait(30), begun.error
    begun.end()
    assert begun.error is None


async def test_under_a_dialog_the_screen_of_a_run_that_is_closed_or_explored_waits(tmp_path: Path) -> None:
    async with training(trained(tmp_path, made=4)) as explorer:
        held, model = threading.Event(), explorer.session.model
        training_of(explorer)._commands.put(("", lambda: held.wait(20)))
        await explorer.keys("E", "escape")
        assert "the run is saved and closed" in explorer.text
        held.set()
        await explorer.until(training_of(explorer)._commands.empty)
        await explorer.until(lambda: training_of(explorer).status.doing == "")
        await explorer.handled()
        assert explorer.session.model is model
        training_of(explorer).end()
        screen_of_run = explorer.app.screen_stack[-2]
        for _ in range(3):
            screen_of_run._tick()
        await explorer.handled()
        assert not explorer.messages
        await explorer.keys("escape")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.until(lambda: explorer.messages == ["the run is closed"])
