"""A step on its way: only where it is wanted and seen, ended by any key, and of no effect on what is shown then."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from driving import MEDIUM, NARROW, WIDE, Explorer, exploring
from textual import events

from tui_transformer.explorer import run
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.main import motion
from tui_transformer.explorer.shell.preferences import Preferences, preferences_path, read_preferences
from tui_transformer.explorer.tools.settings import SettingsScreen
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session

BEFORE, SCORES = (f"encoder.0.self_attention.{name}" for name in ("value", "scores"))
FOR_EVER, SOON = 600.0, 1e-3


@dataclass
class Line:
    """A line to a terminal that is as quick as one likes."""

    is_quick: bool = True
    asked: float | None = None
    measured: list[str] = field(default_factory=list)

    def measure(self) -> None:
        self.measured.append("")


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """The line; what moves goes on until something ends it, and one key may follow another at once."""
    line = Line()
    monkeypatch.setattr(GuardedApp, "line", line)
    monkeypatch.setattr(motion, "SECONDS", FOR_EVER)
    monkeypatch.setattr(motion, "PAUSE", 0.0)
    return line


@asynccontextmanager
async def at(
    stop: str, size: tuple[int, int] = MEDIUM, *, moves: bool = True, **options: Any
) -> AsyncIterator[Explorer]:
    async with exploring(size, model="question", **options, at=stop) as explorer:
        explorer.parts.explored.change_view(motion=moves)
        yield explorer


def picture(explorer: Explorer) -> list[list[tuple[str, str]]]:
    """All that is on the screen, with its colours; but for the first line, which says how long a step took."""
    strips = explorer.app.screen._compositor.render_strips()[1:]
    return [[(part.text, str(part.style)) for part in strip] for strip in strips]


async def test_a_step_is_on_its_way_and_then_there(line: Line, monkeypatch: pytest.MonkeyPatch):
    there = {}
    async with at(BEFORE, moves=False) as explorer:
        async for size in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.press("space")
            there[size] = picture(explorer)
            await explorer.press("backspace")
    async with at(BEFORE) as explorer:
        for size, wanted in there.items():
            await explorer.resize(*size)
            line.measured.clear()
            await explorer.keys("space")
            assert "so far 1 of 8 products · Q Kᵀ" in explorer.text
            assert "q where " in explorer.text
            assert not explorer.app.settled
            await explorer.until(lambda: line.measured)
            monkeypatch.setattr(motion, "SECONDS", SOON)
            await explorer.settled()
            assert picture(explorer) == wanted
            monkeypatch.setattr(motion, "SECONDS", FOR_EVER)
            await explorer.press("backspace")
        # another size ends it
        await explorer.keys("space")
        assert "so far" in explorer.text
        await explorer.resize(*MEDIUM)
        assert "so far" not in explorer.text
        assert picture(explorer) == there[MEDIUM]


async def test_any_key_ends_it_and_finds_the_screen_that_it_would_find_without(line: Line):
    there: dict[str, list[list[tuple[str, str]]]] = {}
    for moves in (False, True):
        async with at(BEFORE, moves=moves) as explorer:
            for key in ("right", "backspace", "[", "escape", "z", "?", "4"):
                await explorer.keys("space")
                assert ("so far" in explorer.text) is moves, key
                await explorer.press(key)
                assert "so far" not in explorer.text
                assert picture(explorer) == there.setdefault(key, picture(explorer)), key
                if key == "?":
                    await explorer.press("escape")
                await explorer.go(BEFORE)


async def test_a_click_ends_it_and_the_mouse_that_moves_does_not(line: Line):
    async with at(BEFORE) as explorer:
        await explorer.keys("space")
        here = explorer.parts.panes.heat_map("matrix").content_region.offset
        place = (None, here.x + 20, here.y + 3, 0, 0, 0, False, False, False)
        explorer.app.post_message(events.MouseMove(*place))
        await explorer.handled()
        assert "so far" in explorer.text
        # nor does what comes late beside the matrix
        explorer.parts.presenter._loop()
        await explorer.handled()
        assert "so far" in explorer.text
        explorer.app.post_message(events.MouseDown(*place))
        await explorer.handled()
        assert "so far" not in explorer.text


async def test_who_steps_on_at_once_sees_no_motion_between(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(motion, "PAUSE", FOR_EVER)
    async with at(BEFORE, moves=False) as explorer:
        await explorer.press(*["space"] * 5)
        there = picture(explorer)
    async with at(BEFORE) as explorer:
        await explorer.keys("space")
        assert "so far" in explorer.text
        await explorer.press("space")
        assert "so far" not in explorer.text
        explorer.send("space", "space", "space")
        await explorer.settled()
        assert picture(explorer) == there


async def test_a_line_that_becomes_slow_ends_it_and_is_measured_again_at_the_next_step(line: Line):
    async with at(BEFORE) as explorer:
        await explorer.keys("space")
        line.is_quick = False
        await explorer.settled()
        assert "so far" not in explorer.text
        measured = len(line.measured)
        await explorer.press("space")
        assert len(line.measured) == measured + 1
        line.is_quick = True
        await explorer.keys("space", "space")
        assert "so far" in explorer.text
        # a moment that is not shown yet is waited for
        line.asked = math.inf
        measured = len(line.measured)
        for _ in range(3):
            explorer.parts.presenter._motion._go_on()
        assert len(line.measured) == measured


async def test_nothing_is_worked_out_where_nothing_moves(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(motion, "flow_of", lambda *_: pytest.fail("worked out"))
    async with at(BEFORE, moves=False) as explorer:
        await explorer.press("space")
        assert explorer.stop == SCORES
        # the way back
        explorer.parts.explored.change_view(motion=True)
        await explorer.press("backspace")
        assert explorer.stop == BEFORE
        # several steps at once
        await explorer.press("}")
        assert explorer.stop not in (BEFORE, SCORES)
        await explorer.go(BEFORE)
        # another pane alone
        explorer.parts.explored.change_view(zoom="cell", active="cell")
        await explorer.press("space")
        assert explorer.stop == SCORES
        explorer.parts.explored.change_view(zoom=None, active="matrix")
        await explorer.press("backspace")
        # a slow line, and none
        line.is_quick = False
        await explorer.press("space", "backspace")
        monkeypatch.setattr(GuardedApp, "line", None)
        await explorer.press("space")
        assert explorer.stop == SCORES


@pytest.mark.parametrize("how", ["NO_COLOR", "theme"])
async def test_nothing_moves_without_colour(line: Line, monkeypatch: pytest.MonkeyPatch, how: str):
    if how == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    preferences = Preferences("ansi-dark" if how == "theme" else None, classic=True)
    async with at(BEFORE, preferences=preferences) as explorer:
        await explorer.keys("space")
        assert "so far" not in explorer.text


async def test_bars_stand_in_the_place_of_shares_and_gradients_and_hidden_tokens_do_not_move(line: Line):
    async with at("encoder.0.self_attention.masked") as explorer:
        await explorer.press("I")
        await explorer.keys("space")
        assert "so far" not in explorer.text
        await explorer.press("I", "backspace", "b")
        await explorer.keys("space")
        assert "so far" not in explorer.text
        await explorer.press("b")
        await explorer.go("encoder.0.self_attention.masked")
        await explorer.keys("space")
        assert "a full bar is 1 · where: sum " in explorer.text
        assert "every row sums to 1" not in explorer.text
        explorer.parts.presenter._motion._began -= 0.4 * FOR_EVER
        await explorer.until(lambda: "so far 8 of 9 keys" in explorer.text)
        shown = next(line for line in explorer.text.splitlines() if "▇" in line)
        assert "▂" in shown
        assert "." not in shown


async def test_a_tour_moves_at_its_stops(line: Line, monkeypatch: pytest.MonkeyPatch):
    seen = []
    show = motion.Motion._draw
    monkeypatch.setattr(motion.Motion, "_draw", lambda self: seen.append(self._scene.position.stop) or show(self))
    monkeypatch.setattr(motion, "SECONDS", SOON)
    async with at("vocabulary", WIDE) as explorer:
        await explorer.press("t", *["right"] * 6)
    assert len(set(seen)) > 1


async def test_the_form_of_settings_turns_it_off_and_nothing_else(line: Line):
    async with at(BEFORE) as explorer:
        session = explorer.session
        await explorer.keys(",")
        await explorer.until(lambda: isinstance(explorer.app.screen, SettingsScreen))
        explorer.app.screen.query_one("#motion").focus()
        await explorer.press("left")
        assert "motion" in explorer.text
        await explorer.leave("ctrl+s")
        assert not explorer.view.motion
        assert explorer.session is session
        assert not explorer.parts.explored.history.past
        await explorer.keys("space")
        assert "so far" not in explorer.text


def test_the_file_of_preferences_and_the_environment_turn_it_off_for_good(tmp_path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "config.toml"
    assert read_preferences(path).motion
    path.write_text("motion = false")
    assert not read_preferences(path).motion
    path.write_text("motion = 0")
    assert read_preferences(path).problems == (f"{path}: motion is true or false",)
    assert read_preferences(path).motion
    # the program begins with what the file and the environment say
    start = run.Start(open_session(ModelOptions("question"), None), None, "", None)

    def moves() -> bool:
        return run._explorer(start, None, None, in_browser=False)._view.motion

    assert moves()
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    assert not moves()
    monkeypatch.delenv("TEXTUAL_ANIMATIONS")
    preferences_path().parent.mkdir(parents=True)
    preferences_path().write_text("motion = false")
    assert not moves()
