"""A larger terminal shows at least the numbers of a smaller one."""

from __future__ import annotations

from itertools import product

import pytest
from driving import Explorer, exploring
from textual.geometry import Size

from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.session.pane_fit import NARROW_MOST, given_way, layout_of, lines_below

SIZES = ((80, 24), (80, 60), (96, 26), (100, 30), (119, 35), (119, 60), (120, 36), (120, 60), (160, 45), (200, 60))
LONG = "Once there was a small girl called Mira , who lived by the sea with a dog . One day Mira found a red kite ."


def numbers(explorer: Explorer) -> int:
    """Cells of the matrix that are shown with their numbers."""
    drawn = explorer.main.query_one("#matrix").query_one(HeatMap)
    rows, columns = drawn.shown
    return len(rows) * len(columns) if drawn.grid.cell_width >= 5 else 0


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
                counts[stop][size] = numbers(explorer)
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
