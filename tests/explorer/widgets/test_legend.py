from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.views.view import Frame, Meeting, Scale, Tile

UNIT = Scale("sequential", 0.0, 0.9912)
SIGNED = Scale("diverging", -3.5, 3.5)


class LegendApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Legend()


Line = Callable[..., Awaitable[str]]


@asynccontextmanager
async def legend(screen_text, size: int = 80) -> AsyncIterator[Line]:
    """A legend so wide: a function that shows a scale and gives its line."""
    app = LegendApp()
    async with app.run_test(size=(size, 2)) as pilot:

        async def line(scale: Scale, **more: Any) -> str:
            app.query_one(Legend).show(scale, **more)
            await pilot.pause()
            assert app.screen._compositor.render_strips()[0].cell_length == size
            return screen_text(app).splitlines()[0]

        yield line


async def test_ends_masked_cells_note_zero_and_what_lies_beyond_the_scale_are_named(screen_text) -> None:
    async with legend(screen_text) as line:
        text = await line(UNIT, absent="masked", note="every row sums to 1")
        assert text.split() == ["0", "0.991", "×", "masked", "every", "row", "sums", "to", "1"]
        text = await line(SIGNED)
        assert text.split() == ["−3.5", "0", "3.5"]
        text = await line(Scale("diverging", -3.5, 3.5, -54.5), absent="masked")
        assert "× masked   ▲▼ to −54.5, beyond the 99.5th p" in text
        assert "× masked   ▲ ∞" in await line(SIGNED, absent="masked", infinite=True)
        assert (await line(Scale("sequential", 0.2, 0.200012))).split() == ["0.2", "0.20001"]
        assert "   ▲ to 54.5, beyond" in await line(Scale("sequential", 0.0, 3.5, 54.5))


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


async def test_without_colour_the_ramp_is_of_glyphs(screen_text, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with legend(screen_text) as line:
        assert "blank ,, :: -- == ++ ** ## %% @@" in await line(UNIT)
        assert "== -= --  - blank  + ++ +# ##" in await line(SIGNED)


def meeting(done: int, of: int) -> Frame:
    numbers = np.linspace([-1.0, 0.5], [2.0, -0.5], of).T
    return Frame(Tile(0, 0, np.zeros((1, 1))), "", Meeting("q where", "k did", numbers, done, 1.234567))


async def test_two_lines_that_meet_stand_in_the_place_of_the_scale(screen_text) -> None:
    async with legend(screen_text) as line:
        text = await line(SIGNED, frame=meeting(2, 4))
        assert text.rstrip() == "q where ▀▀▀▀▀▀······ k did   + 0 · 0.167 → 1.23"
        assert "· (−0.5) → 1.23" in await line(SIGNED, frame=meeting(4, 4))
        # of many products the last ones are shown
        text = await line(SIGNED, frame=meeting(300, 384))
        assert text.startswith(f"q where {'▀' * 34} k did   + ")
        text = await line(SIGNED, frame=meeting(3, 384))
        assert text.startswith(f"q where ▀▀▀{'·' * 31} k did   + ")


@pytest.mark.parametrize("size", [1, 5, 9, 12, 20, 30, 40])
async def test_any_width(size: int, screen_text) -> None:
    async with legend(screen_text, size) as line:
        assert (await line(SIGNED, absent="masked", note="a long note \x1b[31m"))[:4] == "−3.5"[:size]
        assert (await line(SIGNED, frame=meeting(3, 8)))[:7] == "q where"[:size]
