"""Looking inside a cell: the drawing, following its operands, and the way back."""

from __future__ import annotations

import math
import re
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from rich.style import Style

from tui_transformer.explorer.main.inside import InsideLines, InsideScreen
from tui_transformer.explorer.main.inside_drawing import Paint, lines_of
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.widgets.labels import Inks
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.records import replace
from tui_transformer.views.inside.parts import Product

sys.path.append(str(Path(__file__).parents[3] / "views" / "inside"))
from test_inside import CASES, cells

SCORES, WEIGHTS = "encoder.0.self_attention.scores", "encoder.0.self_attention.weights"
INKS = Inks(*[Style()] * 6)


def drawn(inside, width: int, depth: str = "none") -> list[str]:
    lines = lines_of(inside, Paint(INKS, Surface(depth, dark=True), Style(bgcolor="black"), width))  # type: ignore[arg-type]
    return [line.text.plain for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_operation_is_drawn_within_the_columns_there_are(name):
    for inside, width in product(cells(name)[:3], (34, 75, 155)):
        lines = drawn(inside, width)
        assert len(lines) > 4
        assert lines[-1].startswith("recomputed")
        if width > 70:
            assert max(map(len, lines)) <= width + 1, [line for line in lines if len(line) > width + 1]


async def test_enter_draws_the_operation_and_the_division_is_spelled_out():
    async with exploring(WIDE, model="question", at=SCORES) as explorer:
        await explorer.press("]", "]", "end")
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.go(SCORES)
            await explorer.press("enter")
            assert isinstance(explorer.app.screen, InsideScreen)
            assert "Q, row of “where”" in explorer.text
            assert "Kᵀ, column of “?”" in explorer.text
            assert "┃    19.638 ┃" in explorer.text
            await explorer.press("space", "space", "space")
            assert re.search(r"e\^\(6\.94298 − 6\.94298\) ÷ 1\.01155 = 1 ÷ 1\.01155 = 0\.9885", explorer.text)
            assert "recomputed 0.98858" in explorer.text
            await explorer.press("q")
            assert (explorer.stop, explorer.position.place.column) == (WEIGHTS, 8)


async def test_operands_are_followed_to_q_and_esc_goes_back_along_them():
    async with exploring(NARROW, model="question", at=WEIGHTS) as explorer:
        await explorer.press("]", "]", "end", "enter")
        screen, seen = explorer.app.screen, []
        for _ in range(4):
            await explorer.press("enter")
            seen.append(screen.spot.name.rpartition(".")[2])
        assert seen == ["masked", "scaled", "scores", "query"]
        await explorer.press("escape", "escape")
        assert screen.spot.name.endswith("scaled")
        await explorer.press("escape", "escape")
        assert screen.spot.name == WEIGHTS
        await explorer.leave()
        assert explorer.stop == WEIGHTS
        # leaving elsewhere shows that cell, and esc returns
        await explorer.go(SCORES)
        await explorer.press("enter", ";", "q")
        assert explorer.stop == "encoder.0.self_attention.key"
        await explorer.press("escape")
        assert explorer.stop == SCORES


async def test_neighbours_and_heads_are_looked_into_without_leaving():
    async with exploring(SMALL, model="question", at=WEIGHTS) as explorer:
        await explorer.press("enter", "right", "]")
        assert explorer.app.screen.spot.index == (1, 0, 1)
        await explorer.press("left", "left", "[", "[")
        assert explorer.app.screen.spot.index == (0, 0, 0)
        await explorer.press("?")
        assert "operation of one cell" in explorer.text


async def test_words_have_no_inside_and_a_gradient_has_one_where_it_is_shown():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        await explorer.press("enter")
        assert explorer.app.screen is explorer.main
        await explorer.press("B", "enter", "space", "space", "space", "enter")
        screen = explorer.screen(InsideScreen)
        assert screen.spot.gradient
        assert "∂loss/∂" in explorer.text
        assert screen.inside.explanation.recomputed == pytest.approx(screen.inside.explanation.stored, abs=1e-5)


@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_colours_of_values_stay_under_the_cursor(theme):
    async with exploring(WIDE, model="question", preferences=Preferences(theme=theme), at=SCORES) as explorer:
        await explorer.press("enter")
        lines = explorer.app.screen.query_one(InsideLines)
        cursor = lines.ink("line-list--cursor")
        painted = 0
        for _ in range(12):
            y = lines.at[0] - lines.scroll_offset.y
            there = [part for part in lines.render_line(y) if part.style is not None and part.text.strip()]
            painted += sum(part.style.bgcolor not in (None, cursor.bgcolor) for part in there)
            await explorer.press("down")
        assert painted


async def test_the_term_under_the_cursor_stays_there_in_another_width():
    async with exploring(NARROW, model="story", text="Mira and Ben", preferences=Preferences()) as explorer:
        await explorer.go("decoder.1.self_attention.concat")
        await explorer.press("enter")
        screen = explorer.screen(InsideScreen)
        led = screen._line().target
        assert led is not None
        async for _ in explorer.sizes(SMALL, WIDE, SMALL, NARROW):
            assert screen._line().target == led
        await explorer.resize(*SMALL)
        await explorer.press("enter")
        assert screen.spot.name == led.name


@pytest.mark.parametrize("lost", [math.inf, math.nan])
def test_beside_a_product_that_is_no_number_the_others_are_drawn_as_long_as_without(lost):
    all_of = (inside for name in CASES for inside in cells(name))
    inside = next(each for each in all_of if any(isinstance(part, Product) for part in each.parts))
    part = next(part for part in inside.parts if isinstance(part, Product))
    values = np.array([4.0, -2.0, 1.0])
    side = replace(part.row, values=values, sources=part.row.sources[:1] * 3)
    shown = [
        drawn(replace(inside, parts=(Product(side, side, ("a", "b", "c"), (0, 1, 2), products),)), 120)
        for products in (values, np.array([lost, -2.0, 4.0]))
    ]
    without, beside = ([line.count("━") for line in lines if " × " in line] for lines in shown)
    assert without[1] == beside[1] > 0
    assert without[0] == beside[2]


@pytest.mark.filterwarnings("error")
async def test_a_sum_beyond_the_largest_number_is_drawn_without_a_warning():
    async with exploring(WIDE, model="question", dtype="float64", at="embedding.output") as explorer:
        await explorer.prompt("e", "1.6e308")
        await explorer.press("right")
        await explorer.prompt("e", "-1.7e308")
        for stop in ("norm", "query", "scores"):
            await explorer.go(f"encoder.0.self_attention.{stop}", 0, 0, 0)
        assert "recomputed" in explorer.text
