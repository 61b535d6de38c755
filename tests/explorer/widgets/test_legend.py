from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.views.view import Scale

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
