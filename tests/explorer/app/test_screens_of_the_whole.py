"""Help, tour, palette, themes, sizes, colours, mouse, cursor and preferences in the whole explorer."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, Explorer, exploring
from textual.command import CommandPalette

from tui_transformer.errors import UsageError
from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.run import check_theme
from tui_transformer.explorer.shell.help_page import HelpScreen
from tui_transformer.explorer.shell.preferences import Preferences, read_preferences
from tui_transformer.explorer.shell.themes import THEMES
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.guide.texts import tour

SMALLER = (MEDIUM, NARROW, (60, 20), SMALL, (5, 3), (1, 1))
LARGER = (120, 36)


PANES = ("sentence", "steps", "heads", "matrix", "cell", "chart")


async def test_every_pane_has_help_and_fits_every_size_and_tab_goes_through_them_and_around():
    async with exploring(NARROW, at=WEIGHTS) as explorer:
        pages = set()
        for key, pane in enumerate(PANES, 1):
            await explorer.press(str(key), "?", "enter")
            assert isinstance(explorer.app.screen, HelpScreen)
            pages.add(explorer.text)
            await explorer.leave()
            assert explorer.view.active == pane
        assert len(pages) == 6
        seen = []
        for _ in PANES:
            await explorer.press("tab")
            seen.append(explorer.view.active)
        assert sorted(seen) == sorted(PANES)
        await explorer.press("shift+tab")
        assert explorer.view.active == seen[-2]
        for key, pane in enumerate(PANES, 1):
            await explorer.press(str(key))
            async for size in explorer.sizes(*SMALLER, WIDE):
                check_size(explorer, *size)
            assert explorer.view.active == pane


@pytest.mark.parametrize(("model", "size"), [("encoder", NARROW), ("attention", WIDE)])
async def test_the_tour_goes_through_its_stops_and_back(model, size):
    async with exploring(size, model=model) as explorer:
        stops = tour(model)
        await explorer.press("t")
        for number, stop in enumerate(stops, 1):
            assert f"{number} of {len(stops)}" in explorer.text
            assert stop.title.split()[0] in explorer.text
            assert explorer.main.query_one(TourPanel).has_focus
            await explorer.press("space")
        assert not explorer.main.query(TourPanel)
        await explorer.press("t", *["right"] * (len(stops) - 1))
        for number in range(len(stops), 0, -1):
            assert f"{number} of {len(stops)}" in explorer.text
            await explorer.press("left")
        await explorer.press("]", "right")
        assert f"2 of {len(stops)}" in explorer.text
        await explorer.press("escape")
        assert not explorer.main.query(TourPanel)
        await explorer.press("space")
        assert explorer.app.is_running


async def test_ctrl_t_changes_the_theme_and_the_palette_lists_the_actions_and_runs_one():
    async with exploring(WIDE, at=WEIGHTS) as explorer:
        names = [theme.name for theme in THEMES]
        text = explorer.text
        assert explorer.app.theme == names[0]
        await explorer.press("ctrl+t")
        assert explorer.app.theme == names[1]
        assert explorer.text.splitlines()[2:6] == text.splitlines()[2:6]
        await explorer.press("5", "6", "c", "space", "ctrl+t")
        assert explorer.app.theme == names[0]
        # the palette
        stop = explorer.stop
        await explorer.press("ctrl+p")
        await explorer.until(lambda: isinstance(explorer.app.screen, CommandPalette))
        await explorer.shown("Next step", "Next head")
        for key in "next layer":
            await explorer.keys("space" if key == " " else key)
        await explorer.until(lambda: "Next layer" in explorer.text and "Next head" not in explorer.text)
        await explorer.leave("enter")
        await explorer.until(lambda: explorer.stop != stop)


def check_size(explorer: Explorer, width: int, height: int) -> None:
    assert [strip.cell_length for strip in explorer.app.screen._compositor.render_strips()] == [width] * height


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (1, 6, 7))])
async def test_every_stop_of_a_screen_that_becomes_smaller_and_larger(first):
    """At each stop another size, and in the slow tests others."""
    sizes = [size for each in SMALLER for size in (each, LARGER)]
    async with exploring(LARGER, text="the shore", sizes={"layers": 1}) as explorer:
        for number, stop in enumerate(explorer.session.stops, first):
            assert explorer.stop == stop
            size = sizes[number % len(sizes)]
            await explorer.resize(*size)
            check_size(explorer, *size)
            await explorer.keys("space")


async def test_the_whole_has_the_keys_again_where_there_is_room_for_it_again():
    async with exploring(WIDE, whole=None) as explorer:
        assert explorer.view.active == "whole"
        await explorer.resize(*NARROW)
        assert (explorer.view.active, explorer.app.focused.id) == ("matrix", "entries")
        await explorer.resize(*WIDE)
        assert (explorer.view.active, explorer.app.focused.id) == ("whole", "whole")


async def test_every_screen_at_every_size():
    async with exploring(NARROW, at="embedding.output") as explorer:
        for key in ("/", ",", "?", "e", "x", "t", "ctrl+p"):
            await explorer.keys(key)
            for size in (SMALL, (1, 1), NARROW):
                await explorer.resize(*size)
            await explorer.leave()


COLOURS = {
    "NO_COLOR": {"NO_COLOR": "1"},
    "ansi": {"TEXTUAL_THEME": "ansi-dark"},
    "both": {"NO_COLOR": "1", "TEXTUAL_THEME": "ansi-dark"},
    "light": {"TEXTUAL_THEME": "tui-light"},
}


@pytest.mark.parametrize(
    "environment",
    [pytest.param(value, id=name, marks=[pytest.mark.slow] * (name != "both")) for name, value in COLOURS.items()],
)
async def test_every_stop_and_pane_in_other_colours(environment, monkeypatch: pytest.MonkeyPatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with exploring((120, 36), text="the shore", sizes={"layers": 1}) as explorer:
        assert explorer.app.theme == environment.get("TEXTUAL_THEME", THEMES[0].name)
        assert explorer.app.no_color == ("NO_COLOR" in environment)
        while explorer.stop != "text":
            await explorer.press("space", "down")
        await explorer.go(WEIGHTS)
        await explorer.press(
            "1", "2", "3", "]", "4", "5", "6", "c", "c", "4", "/", "escape", ",", "escape", "?", "escape"
        )
        await explorer.press("x", "escape")
        await explorer.resize(*NARROW)
        assert WEIGHTS in explorer.text
        await explorer.press("t", "escape")


async def test_without_colour_the_numbers_are_glyphs(no_colors):
    async with exploring(SMALL, model="encoder", sizes={"d_model": 64}, at="embedding.output") as explorer:
        await explorer.press("minus", "minus", "minus", "minus")
        heat_map = explorer.main.query_one(HeatMap)
        row = heat_map.render_line(2).text
        assert len(set(row) - set(" thewavs")) > 1


async def test_clicks_on_a_pane_a_cell_a_step_a_head_and_the_sentence():
    async with exploring(WIDE, at=WEIGHTS) as explorer:
        for pane in ("cell", "chart", "matrix"):
            await explorer.pilot.click(f"#{pane}", offset=(3, 4))
            await explorer.settled()
            assert explorer.view.active == pane
        # a cell
        region = explorer.main.query_one(HeatMap).region
        lines = explorer.text.splitlines()
        row = next(y for y in range(region.y + 1, region.bottom) if "crashed" in lines[y][region.x : region.right])
        await explorer.click_at(region.x + region.width // 2, row)
        assert explorer.position.place.row == 2
        assert explorer.position.place.column > 0
        # a step
        lines = explorer.text.splitlines()
        y = next(y for y, line in enumerate(lines) if "concat" in line[:32])
        await explorer.click_at(10, y)
        assert explorer.stop == "encoder.0.self_attention.concat"
        assert explorer.view.active == "steps"
        await explorer.press("up", "up", "4")
        assert explorer.stop == WEIGHTS
        # a head
        heads = explorer.main.query_one("#heads").region
        x = explorer.text.splitlines()[heads.y + 1].index("3", heads.x)
        await explorer.click_at(x, heads.y + 2)
        assert explorer.position.place.head == 3
        # the sentence
        await explorer.pilot.click(SentencePane, times=2)
        await explorer.until(lambda: explorer.app.screen is not explorer.main)
        assert explorer.focused_input.value.startswith("The waves")


def preferences(tmp_path: Path, text: str) -> Preferences:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return read_preferences(path)


async def test_keys_and_theme_are_as_preferred(tmp_path):
    wanted = preferences(tmp_path, 'theme = "tui-light"\n[keys]\n"step.next" = "j,z"\n"quit" = "Q"\n')
    assert not wanted.problems
    async with exploring(NARROW, preferences=wanted) as explorer:
        assert explorer.app.theme == "tui-light"
        assert "j step" in explorer.text, "the line that opens"
        await explorer.press("left")
        assert "j next" in explorer.text
        commands = explorer.app.get_system_commands(explorer.app.screen)
        assert {each.title: each.help for each in commands}["Next step"] == "key: j z"
        await explorer.press("z", "z")
        assert explorer.place[0] == 3
        await explorer.press("space", "q")
        assert explorer.place[0] == 3
        explorer.send("Q")
        await explorer.until(lambda: not explorer.app.is_running)


async def test_our_themes_have_short_names_and_one_that_there_is_not_is_said_with_those_that_there_are(tmp_path):
    for name in ("light", "dark"):
        check_theme(name)
        check_theme(f"tui-{name}")
        async with exploring(NARROW, preferences=preferences(tmp_path, f'theme = "{name}"')) as explorer:
            assert explorer.app.theme == f"tui-{name}"
            assert not explorer.messages
    with pytest.raises(UsageError, match=r"no theme is called 'bright': use dark, light, .*nord"):
        check_theme("bright")
    async with exploring(NARROW, preferences=preferences(tmp_path, 'theme = "bright"')) as explorer:
        assert "no theme is called 'bright': dark, light, " in explorer.messages[0]


async def test_a_broken_file_is_told_of_in_one_line_and_the_explorer_works(tmp_path):
    for text in ("theme = [", "theme = 3", "themes = 'tui-light'", "keys = 3", "[keys]\nquit = 3"):
        problems = preferences(tmp_path, text).problems
        assert len(problems) == 1, text
        assert "config.toml" in problems[0]
        assert "\n" not in problems[0]
    async with exploring(NARROW, preferences=preferences(tmp_path, "theme = [")) as explorer:
        assert len(explorer.messages) == 1
        assert "config.toml" in explorer.messages[0]
        await explorer.press("space")
        assert explorer.place[0] == 2


async def test_strange_keys_break_nothing():
    keys = {"step.next": "", "step.back": ",", "head.back": "space,q", "layer.next": "nonsense+key", "weights": "[b]"}
    wanted = Preferences(keys={**keys, "no.such.action": "y", "head.next": "q"}, classic=True)
    async with exploring(NARROW, preferences=wanted) as explorer:
        await explorer.press("p", "n", "]", "v", "space", "w", "}")
        assert explorer.app.is_running


async def test_whatever_has_the_keys_the_cursor_is_where_the_position_is():
    async with exploring(MEDIUM, model="question") as explorer:

        def under() -> str:
            x, y = explorer.app.cursor_position
            return explorer.text.splitlines()[y][x:]

        # where nothing is marked it stays on the cell
        await explorer.press("space", "down", "6")
        assert explorer.app.cursor_position != (0, 0)
        # where the brackets are
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.press("4", "right", "right")
        async for _ in explorer.sizes(WIDE, NARROW, MEDIUM):
            assert under().startswith("▌")
            x = explorer.app.cursor_position.x
            await explorer.press("right")
            assert explorer.app.cursor_position.x > x
            await explorer.press("left")
        # in the sentence, in the chart and in the whole
        await explorer.press("right", "1")
        assert under().startswith("did 7 @1")
        await explorer.press("t")
        assert under().startswith("→.99 ←")
        await explorer.press("escape", "0")
        await explorer.until(lambda: under()[0] in "▀▄ ")
        before = explorer.app.cursor_position
        await explorer.press("space")
        assert explorer.app.cursor_position != before
