"""Pictures of a few screens; the same as they were, to the last cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.main import screen
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.model.options import ModelOptions
from tui_transformer.session import step_scene

TO_WEIGHTS = ["space"] * 6


@pytest.fixture
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes a millisecond, as the screen says it, and a digit stays a count."""
    monkeypatch.setattr(screen, "MOMENT", 1000.0)
    seconds = itertools.count(step=0.001)
    monkeypatch.setattr(step_scene, "clock", lambda: next(seconds))


def attention() -> ExplorerApp:
    return ExplorerApp(open_session(ModelOptions("attention"), None, None), Preferences())


def encoder() -> ExplorerApp:
    return ExplorerApp(open_session(ModelOptions(vocab="dog"), None, None), Preferences())


PICTURES: dict[str, tuple[Callable[[], ExplorerApp], tuple[int, int], list[str]]] = {
    "attention": (attention, (80, 24), [*TO_WEIGHTS, "down", "down", "right"]),
    "cell": (attention, (80, 24), [*TO_WEIGHTS, "down", "down", "right", "5"]),
    "main": (encoder, (120, 36), ["space"] * 11),
}


@pytest.mark.parametrize(("make", "size", "keys"), PICTURES.values(), ids=PICTURES.keys())
def test_a_screen_is_as_it_was(make, size, keys, no_time_passes, snap_compare):
    async def settle(pilot) -> None:
        await pilot.press(*keys)
        while not pilot.app.settled:
            await pilot.pause(0.01)

    assert snap_compare(make(), terminal_size=size, run_before=settle)
