"""Panes, all with their room or one in the whole terminal; counts, and the line of keys that follows the focus."""

from __future__ import annotations

import re
from itertools import product

import pytest
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, exploring
from textual.command import CommandPalette
from textual.geometry import Size

from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.explorer.shell.menu import MenuScreen
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.session.pane_fit import NARROW_MOST, given_way, layout_of, lines_below


async def typed(explorer, *keys: str) -> None:
    """Type keys one right after the other, also where the machine is busy."""
    explorer.parts.counting.moment = 60.0
    explorer.send(*keys)
    await explorer.handled()
    await explorer.handled()
    await explorer.settled()


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_digit_is_a_count_of_a_letter_and_with_an_arrow_a_pane(size):
    async with exploring(size, model="question", at=WEIGHTS) as explorer:
        await typed(explorer, "5", "j")
        assert (explorer.position.place.row, explorer.view.active) == (5, "matrix")
        await typed(explorer, "3", "l")
        assert explorer.position.place.column == 3
        await typed(explorer, "2", "k")
        assert explorer.position.place.row == 3
        await typed(explorer, "3", "right")
        assert (explorer.view.active, explorer.position.place.head) == ("heads", 1)
        await explorer.press("0")
        assert explorer.parts.panes.whole


async def test_two_digits_and_a_step():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        assert explorer.place[0] == 1
        await typed(explorer, "1", "0", "space")
        assert explorer.place[0] == 11
        assert explorer.parts.panes.whole
        await typed(explorer, "5", "backspace")
        assert explorer.place[0] == 6


async def test_a_count_is_said_while_it_is_typed_and_ends_with_escape_or_after_a_moment():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.go(WEIGHTS)
        await typed(explorer, "1", "2")
        assert explorer.text.splitlines()[-1].split()[:4] == ["12", "times", "space", "next"]
        await typed(explorer, "escape", "j")
        assert "times" not in explorer.text.splitlines()[-1]
        assert explorer.view.active == "steps"
        await explorer.press("4")
        await typed(explorer, "3", "escape", "]")
        assert explorer.position.place.head == 1
        await explorer.go(WEIGHTS)
        explorer.parts.counting.moment = 1e-6
        await explorer.press("2", "j")
        assert explorer.view.active == "steps"
        assert explorer.stop != WEIGHTS


async def test_the_key_that_the_user_gave_for_back_ends_a_count_and_does_no_more():
    async with exploring(
        WIDE, model="question", preferences=Preferences(keys={"back": "f7"}, classic=True)
    ) as explorer:
        await explorer.go(WEIGHTS)
        await typed(explorer, "3")
        assert "f7 no count" in explorer.text
        await typed(explorer, "f7")
        assert ("times" in explorer.text, explorer.view.active) == (False, "heads")
        await typed(explorer, "f7")
        assert explorer.view.active == "matrix"


async def test_a_click_on_a_key_while_a_count_stands_is_counted_as_the_key_is():
    async with exploring(WIDE, model="question", preferences=Preferences()) as explorer:
        await explorer.go(WEIGHTS)
        for key, wanted in {"space": 16, "backspace": 13}.items():
            await typed(explorer, "3")
            await explorer.click(f" {key} ", 1)
            assert (explorer.place[0], explorer.view.active) == (wanted, "matrix")
        await typed(explorer, "4")
        await explorer.click("h j k l", 2)
        assert explorer.position.place.row == 4
    async with exploring(WIDE, model="question", preferences=Preferences(keys={"cursor.up": "up,f5"})) as explorer:
        await typed(explorer, "3")
        assert "h j f5 l cell" in explorer.text  # an arrow is not counted


async def test_the_key_of_a_menu_is_not_counted():
    async with exploring(WIDE, model="question", preferences=Preferences()) as explorer:
        await explorer.press("space")
        for menu in MENUS.values():
            await typed(explorer, "5", menu.key)
            assert isinstance(explorer.app.screen, MenuScreen), menu.key
            await explorer.leave()
            assert explorer.view.active == "cell"


FIRST = {"2": "enter its numbers", "3": "enter look inside", "4": "enter look inside", "5": "enter follow"}
FOUND = {
    "attention weights": "Attention weights",
    "open story": "Open story (trained)",
    "tour: which way": "Tour: Which way does every number",
    "setting: positions": "Setting: positions",
}


def line(explorer) -> str:
    return explorer.text.splitlines()[-1]


async def test_enter_comes_first_and_says_what_it_does_in_the_focused_pane():
    async with exploring(WIDE, model="question") as explorer:
        explorer.parts.counting.moment = 0.05  # else the line says the count for that long
        await explorer.press("space", "space")
        assert "[ ] head" not in line(explorer)
        await explorer.go(WEIGHTS)
        assert "[ ] head" in line(explorer)
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.go(WEIGHTS)
            for digit, says in FIRST.items():
                await explorer.press(digit)
                await explorer.until(lambda says=says: line(explorer).startswith(f" {says} "))


async def test_the_card_of_a_tour_has_the_line_of_keys_while_it_has_the_keys():
    async with exploring(MEDIUM, model="question") as explorer:
        await explorer.press("t")
        assert line(explorer).startswith(" enter next stop  ← → stop  esc leave the tour ")
        assert "space next" not in line(explorer)
        await explorer.press("tab")
        await explorer.until(lambda: "next stop" not in line(explorer))
        await explorer.press("escape", "escape")
        assert "stop" not in line(explorer)


async def test_what_would_be_refused_is_not_named():
    async with exploring(WIDE, model="attention") as explorer:
        await explorer.press("space")
        for word in ("sentence", "write", "layer", "lens", "vocabulary", "backward"):
            assert f" {word} " not in line(explorer)


async def test_a_click_on_a_token_chooses_it_and_a_double_click_edits():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        await explorer.click(" sailor 22", 2)
        assert explorer.position.place.row == 4
        await explorer.click("sailor hide", 8)
        assert explorer.position.place.row == 5
        await explorer.click("sailor hide", 8, times=2)
        assert explorer.focused_input.value == explorer.session.text


async def test_arrows_go_from_word_to_word_each_named_whole_or_not_at_all_and_enter_edits():
    async with exploring(MEDIUM, model="question", at=WEIGHTS) as explorer:
        tokens = next(text for text in explorer.text.splitlines() if "@0" in text)
        assert tokens.rstrip("│ ").endswith("the 4 @6  …")
        await explorer.press("1", "right", "right")
        assert explorer.position.place.row == 2
        await explorer.press(*["right"] * 6)
        tokens = next(text for text in explorer.text.splitlines() if "@8" in text)
        assert tokens.lstrip("│ ").startswith("… ")
        assert "? 6 @8" in tokens
        await explorer.press("enter")
        assert explorer.focused_input.value == explorer.session.text


async def test_the_palette_finds_steps_models_tours_and_settings():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("ctrl+p")
        await explorer.until(lambda: isinstance(explorer.app.screen, CommandPalette))
        for typed, text in FOUND.items():
            await explorer.write(typed)
            await explorer.shown(text)


PANES = {"sentence": "1", "steps": "2", "heads": "3", "matrix": "4", "cell": "5", "chart": "6"}


def inner(explorer) -> list[str]:
    """The screen without its first line, which says how long a step took, and its last: a digit is a count, too."""
    return explorer.text.split("\n")[1:-1]


async def test_every_pane_is_named_or_has_its_digit_and_has_the_whole_terminal_and_gives_it_back():
    async with exploring(NARROW, model="question", at=WEIGHTS) as explorer:
        for width, says in (
            (80, "1 sentence   2 steps   3 heads  [4 matrix]  5 cell   6 chart"),
            (60, "1   2   3  [4 matrix]  5   6"),
        ):
            await explorer.resize(width, 24)
            assert any(line.strip() == says for line in explorer.text.splitlines()), explorer.text
        async for size in explorer.sizes(WIDE, NARROW, SMALL):
            for name, digit in PANES.items():
                await explorer.press(digit)
                before, pane = inner(explorer), explorer.main.query_one(f"#{name}")
                await explorer.press("Z")
                assert pane.size.width >= size[0] - 4, name
                assert pane.size.height >= size[1] - 6, name
                await explorer.press("Z")
                assert inner(explorer) == before, name
            await explorer.press("Z", "escape")
            assert explorer.view.zoom is None
        await check_heads(explorer)


async def check_heads(explorer) -> None:
    """A zoomed matrix says which head it is."""
    for pane in ("matrix", "cell", "chart"):
        explorer.main.action_pane(pane)
        await explorer.press("Z")
        for head in (1, 2):
            await explorer.press("]")
            assert re.search(rf"head +{head}\b", explorer.text), pane
        await explorer.press("[", "[", "Z")


async def test_the_whole_can_be_zoomed_and_another_pane_takes_its_place_and_says_which_head_it_is():
    async with exploring(WIDE, model="question", whole=True, at=WEIGHTS) as explorer:
        await explorer.press("Z")
        assert explorer.main.query_one("#whole").size.height > 25
        assert not explorer.main.query_one("#body").display
        await explorer.press("tab")
        assert explorer.view.zoom == "matrix"
        assert explorer.main.query_one("#matrix").size.width > 150
        await explorer.press("escape")
        assert explorer.main.query_one("#whole").display
        async for _ in explorer.sizes(WIDE, MEDIUM):
            await check_heads(explorer)


async def test_the_zoomed_whole_has_all_lines_but_title_and_keys_on_a_smaller_terminal():
    async with exploring(MEDIUM, model="question") as explorer:
        await explorer.press("0", "Z")
        for size, lines in ((MEDIUM, 28), (NARROW, 23)):
            await explorer.resize(*size)
            assert explorer.text.splitlines()[-1].startswith(" enter look inside")
            assert explorer.main.query_one("#whole").size.height == lines


async def test_a_tour_ends_a_zoom_and_gives_it_back():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        await explorer.press("5", "Z", "t")
        assert explorer.view.zoom is None
        assert "Stop 1 of 17" in explorer.text
        await explorer.press("escape")
        assert explorer.view.zoom == "cell"
        assert explorer.main.query_one("#cell").size.width > 150


SIZES = ((80, 24), (80, 60), (96, 26), (100, 30), (119, 35), (119, 60), (120, 36), (120, 60), (160, 45), (200, 60))
LONG = "Once there was a small girl called Mira , who lived by the sea with a dog . One day Mira found a red kite ."


@pytest.mark.parametrize(
    ("model", "text", "whole", "stops"),
    [
        ("copy", None, None, ("decoder.1.self_attention.weights", "decoder.1.self_attention.query")),
        ("question", None, False, ("encoder.0.self_attention.weights", "encoder.0.self_attention.context")),
        ("story", LONG, None, ("decoder.0.self_attention.weights",)),
        ("story", LONG, False, ("decoder.0.self_attention.query",)),
    ],
)
async def test_a_larger_terminal_never_shows_fewer_numbers(model, text, whole, stops):
    counts: dict[str, dict[tuple[int, int], int]] = {stop: {} for stop in stops}
    async with exploring(SIZES[0], model=model, text=text, whole=whole) as explorer:
        async for size in explorer.sizes(*SIZES):
            for stop in stops:
                await explorer.go(stop)
                drawn = explorer.main.query_one("#matrix").query_one(HeatMap)
                rows, columns = drawn.shown
                counts[stop][size] = len(rows) * len(columns) if drawn.grid.cell_width >= 5 else 0
    for shown in counts.values():
        assert shown[SIZES[-1]] or whole is False
        for small, large in product(SIZES, SIZES):
            if small[0] <= large[0] and small[1] <= large[1]:
                assert shown[small] <= shown[large], (small, large)


def columns_left(size: Size, needed: int, *, whole: bool) -> int:
    """Columns that a matrix has, beside what gives way to it."""
    layout = layout_of(size).name
    given = given_way(layout, size, Size(needed, 10), whole=whole, heads=True)
    if layout == "-narrow":
        return size.width
    if layout == "-medium":
        return size.width if whole or "-broad" in given else size.width * 7 // 10
    side = 0 if "-alone" in given else 36 if "-slim" in given else 44
    steps = 0 if "-broad" in given else 26 if "-slim" in given else 32
    return size.width - ((side if given else size.width * 2 // 5) if whole else side + steps)


def test_what_fits_in_the_widest_terminal_with_one_pane_has_its_columns_in_every_wide_one():
    for width, columns, whole in product(range(120, 220), range(40, NARROW_MOST + 1), (True, False)):
        assert columns <= columns_left(Size(width, 40), columns, whole=whole)


def test_what_fits_in_a_terminal_fits_in_every_larger_one():
    for columns, whole in product(range(5, NARROW_MOST + 1), (True, False)):
        fits = {size: columns <= columns_left(Size(*size), columns, whole=whole) for size in SIZES}
        for small, large in product(SIZES, SIZES):
            if small[0] <= large[0] and small[1] <= large[1]:
                assert fits[small] <= fits[large], (columns, whole, small, large)


def test_heads_and_chart_give_way_to_rows_one_after_the_other():
    given = [given_way("-wide", Size(160, 45), Size(50, lines), whole=False, heads=True) for lines in (18, 19, 31)]
    assert [sorted(each) for each in given] == [[], ["-tall"], ["-tall", "-taller"]]


def test_every_token_has_a_line_under_the_whole_as_far_as_a_band_is_left():
    assert lines_below(9, 36, 34) == 13
    assert lines_below(11, 36, 34) == 15
    assert lines_below(20, 36, 34) == 24
    assert lines_below(500, 36, 34) == 25
    assert lines_below(500, 60, 58) == 25
    assert lines_below(500, 60, 58, first=True) == 50
