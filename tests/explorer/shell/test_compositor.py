"""What is composed leanly is what Textual composes, in full and by what changed; and text in 16 colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from driving import NARROW, SMALL, WIDE, Explorer, exploring
from rich._palettes import STANDARD_PALETTE
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.color import Color
from textual.css.stylesheet import Stylesheet
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.explorer.guard import compositor
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.cell_style import text_color
from tui_transformer.explorer.guard.compositor import strips_of, update_of
from tui_transformer.explorer.guard.frame import Cells, Frame, _pieces
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.views.view import contrast_ratio

CELLS = Cells(ColorSystem.TRUECOLOR)
"""Numbers of cells can be compared where the same has made them."""

WALKS = {
    "steps and cells": [*" " * 12, "tab", "down", "right", "down", *"]] ", "backspace", "pagedown", "end", "home"],
    "views": ["Z", " ", "Z", "0", " ", "0", "+", "+", "-", "v", " ", "m", "b", " ", "b", "tab", "j", "j", "tab", "k"],
    "tools": [
        "?",
        "down",
        "escape",
        "ctrl+p",
        *"lens",
        "down",
        *("escape", "W", "escape", "B", "down", "escape"),
        *":e",
    ],
}


@contextmanager
def as_textual_does() -> Iterator[None]:
    ours = {(kind, name): getattr(kind, name) for kind, name in compositor.USUAL}
    for (kind, name), usual in compositor.USUAL.items():
        setattr(kind, name, usual)
    try:
        yield
    finally:
        for (kind, name), own in ours.items():
            setattr(kind, name, own)


def cells_of(explorer: Explorer, *, anew: bool = True) -> list[list[int]]:
    """The cells of the screen, every widget drawn anew, or as it was drawn last."""
    for widget in explorer.app.screen.walk_children(Widget) if anew else ():
        widget._styles_cache.clear()
    return [CELLS.of(strip)[0].tolist() for strip in explorer.app.screen._compositor.render_strips()]


class Written:
    """The cells of all updates over each other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells: dict[tuple[int, int], int] = {}
        usual = GuardedApp._display

        def display(app: GuardedApp, screen: Any, update: Any) -> None:
            if hasattr(update, "strips") or hasattr(update, "spans"):
                for y, x, segments in _pieces(update):
                    self.cells |= {(y, x + at): cell for at, cell in enumerate(CELLS.of(segments)[0].tolist())}
            usual(app, screen, update)

        monkeypatch.setattr(GuardedApp, "_display", display)

    def lines(self, size: Size) -> list[list[int]]:
        return [[self.cells[y, x] for x in range(size.width)] for y in range(size.height)]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("size", [WIDE, NARROW, SMALL], ids=str)
async def test_every_screen_is_the_one_that_textual_composes(walk: str, size: tuple[int, int], monkeypatch) -> None:
    written = Written(monkeypatch)
    async with exploring(size, whole=None, text="the cat sat on the mat") as explorer:
        for key in WALKS[walk]:
            await explorer.press(key)
            kept = cells_of(explorer, anew=False)
            with as_textual_does():
                wanted = cells_of(explorer)
            assert kept == cells_of(explorer) == wanted, key
            assert written.lines(explorer.app.size) == wanted, key


async def test_what_lies_behind_a_dialog_stays_where_only_covered_cells_change() -> None:
    async with exploring(WIDE, text="the cat sat on the mat") as explorer:
        await explorer.press("&")
        before = explorer.text
        middle = Region(WIDE[0] // 2, WIDE[1] // 2, 2, 1)
        explorer.main.query_one(HeatMap).refresh(middle.translate(-explorer.main.query_one(HeatMap).region.offset))
        await explorer.settled()
        assert explorer.text == before
        assert "Steps" in before, "the main screen is seen behind it"
        explorer.app.screen.refresh()
        assert explorer.text == before, "also where it is asked for before it is drawn"


class Styled(App[None]):
    """Widgets with what a style sheet can do to lines, one of them partly outside the screen."""

    CSS = """
    Static { height: 5; width: 30; }
    #border { border: round red; }
    #half { border-left: thick green; border-bottom: heavy yellow; }
    #padded { border: solid blue; padding: 1 2; }
    #outlined { outline: round cyan; }
    #faint { border: round white; opacity: 40%; }
    #pale { text-opacity: 30%; }
    #tinted { tint: magenta 30%; }
    #hatched { hatch: cross green; }
    #wide { width: 200; }
    """
    NAMES = ("border", "half", "padded", "outlined", "faint", "pale", "tinted", "hatched", "wide")

    def compose(self) -> ComposeResult:
        for name in self.NAMES:
            said = Static(Text(f"{name} with words\nand more of them"), id=name)
            said.border_title = said.border_subtitle = f"a {name} title"
            yield said


async def test_widgets_with_effects_are_drawn_as_by_textual() -> None:
    app = Styled()
    async with app.run_test(size=(60, 50)):

        def drawn() -> list[list[int]]:
            for widget in app.screen.walk_children(Widget):
                widget._styles_cache.clear()
            return [CELLS.of(strip)[0].tolist() for strip in app.screen._compositor.render_strips()]

        with as_textual_does():
            wanted = drawn()
        assert drawn() == wanted
        assert len({tuple(line) for line in wanted}) > len(Styled.NAMES), "they differ from each other"


async def test_a_title_draws_its_own_line_and_none_where_it_is_the_same() -> None:
    app = Styled()
    async with app.run_test(size=(60, 50)) as pilot:
        box = app.query_one("#border", Static)
        before = app.screen._compositor.render_strips()
        await pilot.pause()
        for name, line in (("border_title", 0), ("border_subtitle", 4)):
            setattr(box, name, "a border title")
            assert not box._repaint_regions
            setattr(box, name, "another")
            assert {region.y for region in box._repaint_regions} == {line}
            await pilot.pause()
        after = app.screen._compositor.render_strips()
        assert [y for y, (old, new) in enumerate(zip(before, after, strict=True)) if old.text != new.text] == [0, 4]


def test_a_strip_does_all_that_textuals_does() -> None:
    with as_textual_does():
        usual = Strip([Segment("abc"), Segment("defg")])
    own = Strip([Segment("abc"), Segment("defg")])
    for _ in range(2):  # the second time from what is kept
        assert own.divide([2, 5, 7]) == usual.divide([2, 5, 7])
        assert own.crop(1, 6) == usual.crop(1, 6)
        assert own.crop_extend(1, 9, None) == usual.crop_extend(1, 9, None)
        assert own.adjust_cell_length(9) == usual.adjust_cell_length(9)
        assert own.apply_offsets(3, 4) == usual.apply_offsets(3, 4)
        assert own.link_ids == usual.link_ids
        assert own.cell_count == usual.cell_count


async def test_the_rules_that_are_kept_are_those_of_the_theme() -> None:
    found: dict[str, object] = {}
    for _ in range(2):  # the second app finds all of them kept
        async with exploring(NARROW) as explorer:
            for theme in ("textual-light", "dracula", "textual-light"):
                explorer.app.theme = theme
                await explorer.settled()
                kept = [(rule.selectors, str(rule.styles.get_rules())) for rule in explorer.app.stylesheet.rules]
                with as_textual_does():
                    anew = explorer.app.stylesheet.copy()
                    anew.parse()
                    assert kept == [(rule.selectors, str(rule.styles.get_rules())) for rule in anew.rules]
                assert found.setdefault(theme, kept) == kept
    assert found["dracula"] != found["textual-light"]


async def test_after_a_change_of_theme_every_screen_is_the_one_that_textual_composes() -> None:
    async with exploring((100, 30), whole=None, text="the cat sat on the mat") as explorer:
        for theme in ("ansi-dark", "ansi-light", "atom-one-dark", "atom-one-light"):
            explorer.app.theme = theme
            await explorer.settled()
            for key in (" ", "tab", "down", "L", "escape"):
                await explorer.press(key)
                kept = cells_of(explorer, anew=False)
                with as_textual_does():
                    assert kept == cells_of(explorer), (theme, key)


KEYS = ("tab", "2", "Z", "3", "Z", "?", "escape", "/", "escape", "T", "1", "H", "V", "escape", "]", "shift+tab")
"""What changes classes and states of the main screen, and what lies over it."""


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_widgets_that_are_not_styled_again_have_the_styles_that_they_would_have(size) -> None:
    style = compositor.USUAL[Stylesheet, "apply"]
    async with exploring(size) as explorer:
        for key in KEYS:
            await explorer.press(key)
            for node in [each for each in explorer.app.screen.walk_children(with_self=True) if each.is_attached]:
                before, parts, watched = node.styles.base.get_rules(), {**node._component_styles}, watched_of(node)
                style(explorer.app.stylesheet, node)
                assert node.styles.base.get_rules() == before, (key, node)
                assert (node._component_styles, watched_of(node)) == (parts, watched), (key, node)


def watched_of(node: Widget) -> list[bool]:
    return [getattr(node, name) for name in compositor.WATCHED]


async def test_a_class_that_no_rule_asks_about_styles_nothing_again(monkeypatch) -> None:
    styled, style = list[object](), compositor.USUAL[Stylesheet, "apply"]

    def counted(self, node, **options):
        styled.append(node)
        style(self, node, **options)

    usual = {**compositor.USUAL, (Stylesheet, "apply"): counted}
    async with exploring(WIDE) as explorer:
        explorer.main.add_class("asked-by-no-rule")
        monkeypatch.setattr(compositor, "USUAL", usual)
        explorer.main.add_class("nor-by-any")
        assert {type(node).__name__ for node in styled} <= {"MainScreen", "DOMNode"}
        explorer.main.disabled = True
        await explorer.settled()
        assert len({type(node).__name__ for node in styled}) > 10


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
