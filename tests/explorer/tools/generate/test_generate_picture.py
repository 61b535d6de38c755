"""A picture of the screen that writes on; the same as it was, to the last cell."""

from __future__ import annotations

import itertools

import pytest
from reference import REFERENCES

from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.generation import writing
from tui_transformer.model.options import ModelOptions


@pytest.fixture
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token takes 10 milliseconds, as the screen says it."""
    seconds = itertools.count(step=0.01)
    monkeypatch.setattr(writing.time, "perf_counter", lambda: next(seconds))


def test_the_screen_is_as_it_was(no_time_passes: None, snap_compare) -> None:
    session = open_session(ModelOptions(str(REFERENCES / "qwen3")), "The waves crashed", None)

    async def settle(pilot) -> None:
        await pilot.press("r", "w")
        while not isinstance(pilot.app.screen, GenerateScreen) or pilot.app.screen.view.shown is None:
            await pilot.pause(0.01)
        await pilot.press("space", "space", "space", "space", "left")
        while not pilot.app.settled:
            await pilot.pause(0.01)
        await pilot.pause(0.05)

    assert snap_compare(ExplorerApp(session, Preferences()), terminal_size=(100, 30), run_before=settle)
