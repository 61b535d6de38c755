"""Text in terminals of 16 colours."""

from __future__ import annotations

import re

import pytest
from driving import NARROW, WIDE, exploring
from rich._palettes import STANDARD_PALETTE
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from tui_transformer.explorer.guard.cell_style import text_color
from tui_transformer.explorer.guard.compositor import strips_of, update_of
from tui_transformer.explorer.guard.frame import Frame
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.views.view import contrast_ratio


@pytest.mark.parametrize("theme", ["dark", "light", "solarized-light", "nord"])
async def test_in_16_colours_text_is_told_from_its_page(theme: str) -> None:
    async with exploring(WIDE, model="question", preferences=Preferences(theme)) as explorer:
        strips = strips_of(explorer.app)
    styles = {style for strip in strips for text, style, _ in strip if style is not None and text.strip()}
    lost = []
    for style in styles:
        color, page = text_color(style, ColorSystem.STANDARD), style.bgcolor
        assert color is not None
        assert page is not None
        assert text_color(style, ColorSystem.EIGHT_BIT) == style.color
        shown = [STANDARD_PALETTE[each.downgrade(ColorSystem.STANDARD).number or 0] for each in (color, page)]
        if contrast_ratio((style.color or color).get_truecolor(), page.get_truecolor()) >= 3 > contrast_ratio(*shown):
            lost.append(style)
    assert not lost


def test_quiet_text_on_a_light_page_is_dark_in_16_colours() -> None:
    quiet = Style(color="#85898e", bgcolor="#f7f7f3")
    frame = Frame(ColorSystem.STANDARD)
    assert re.findall(r"\x1b\[([\d;]*)m", frame.write(update_of([Strip([Segment("9 × 32", quiet)])])))[0] == "90;107"


def test_a_colour_that_stands_for_a_value_stays_in_16_colours_where_it_is_near_the_page() -> None:
    half = Style(color="#00aaaa", bgcolor="#2e3440")
    assert text_color(half, ColorSystem.STANDARD) == half.color


async def test_the_accent_of_every_theme_is_read_on_its_page() -> None:
    async with exploring(NARROW, model="question", preferences=Preferences("textual-light")) as explorer:
        themes = [theme for theme in explorer.app.available_themes.values() if not theme.ansi]
        chosen = explorer.app.theme_variables["accent"]
    assert "textual-light" in [theme.name for theme in themes]
    for theme in themes:
        colors = theme.to_color_system().generate()
        accent, page = (Color.parse(colors[name][:7]).rgb for name in ("accent", "background"))
        assert contrast_ratio(accent, page) >= 2.95, theme.name
    assert contrast_ratio(Color.parse(chosen).rgb, Color.parse("#e0e0e0").rgb) >= 2.95
