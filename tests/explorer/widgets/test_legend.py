from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.views.view import Frame, Meeting, Scale, Tile

ScreenText = Callable[[App[Any]], str]
UNIT = Scale("sequential", 0.0, 0.9912)
SIGNED = Scale("diverging", -3.5, 3.5)


class LegendApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Legend()


async def line(screen_text: ScreenText, scale: Scale, size: int = 80, **more: Any) -> str:
    app = LegendApp()
    async with app.run_test(size=(size, 2)) as pilot:
        app.query_one(Legend).show(scale, **more)
        await pilot.pause()
        strip = app.screen._compositor.render_strips()[0]
        assert strip.cell_length == size
        return screen_text(app).splitlines()[0]


async def test_ends_masked_cells_and_note_are_named(screen_text: ScreenText) -> None:
    text = await line(screen_text, UNIT, masked=True, note="every row sums to 1")
    assert text.split() == ["0", "0.991", "×", "masked", "every", "row", "sums", "to", "1"]


async def test_a_signed_scale_says_where_zero_is(screen_text: ScreenText) -> None:
    text = await line(screen_text, SIGNED)
    assert text.split() == ["−3.5", "0", "3.5"]
    assert "masked" not in text


async def test_what_lies_beyond_the_scale_is_named(screen_text: ScreenText) -> None:
    text = await line(screen_text, Scale("diverging", -3.5, 3.5, -54.5), masked=True)
    assert "× masked   ▲▼ to −54.5, beyond the 99.5th p" in text
    assert "   ▲ to 54.5, beyond" in await line(screen_text, Scale("sequential", 0.0, 3.5, 54.5))


async def test_the_ramp_runs_from_the_low_to_the_high_colour() -> None:
    app = LegendApp()
    async with app.run_test(size=(60, 2)) as pilot:
        app.query_one(Legend).show(UNIT)
        await pilot.pause()
        strip = app.screen._compositor.render_strips()[0]
        lightness = [
            sum(s.style.bgcolor.get_truecolor()) for s in strip if s.style and s.style.bgcolor and s.text == " "
        ]
        assert lightness[0] < 120
        assert max(lightness) > 600


async def test_without_colour_the_ramp_is_of_glyphs(screen_text: ScreenText, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "blank ,, :: -- == ++ ** ## %% @@" in await line(screen_text, UNIT)
    assert "== -= --  - blank  + ++ +# ##" in await line(screen_text, SIGNED)


@pytest.mark.parametrize("size", [1, 5, 12, 20, 30])
async def test_any_width(size: int, screen_text: ScreenText) -> None:
    assert (await line(screen_text, SIGNED, size, masked=True, note="a long note \x1b[31m"))[:4] == "−3.5"[:size]


def meeting(done: int, of: int) -> Frame:
    numbers = np.linspace([-1.0, 0.5], [2.0, -0.5], of).T
    return Frame(Tile(0, 0, np.zeros((1, 1))), "", Meeting("q where", "k did", numbers, done, 1.234567))


async def test_two_lines_that_meet_stand_in_the_place_of_the_scale(screen_text: ScreenText) -> None:
    text = await line(screen_text, SIGNED, frame=meeting(2, 4))
    assert text.rstrip() == "q where ▀▀▀▀▀▀······ k did   + 0 · 0.167 → 1.23"
    assert "· (−0.5) → 1.23" in await line(screen_text, SIGNED, frame=meeting(4, 4))


async def test_of_many_products_the_last_ones_are_shown(screen_text: ScreenText) -> None:
    text = await line(screen_text, SIGNED, frame=meeting(300, 384))
    assert text.startswith(f"q where {'▀' * 34} k did   + ")
    text = await line(screen_text, SIGNED, frame=meeting(3, 384))
    assert text.startswith(f"q where ▀▀▀{'·' * 31} k did   + ")


@pytest.mark.parametrize("size", [1, 9, 20, 40])
async def test_lines_meet_in_any_width(size: int, screen_text: ScreenText) -> None:
    assert (await line(screen_text, SIGNED, size, frame=meeting(3, 8)))[:7] == "q where"[:size]
