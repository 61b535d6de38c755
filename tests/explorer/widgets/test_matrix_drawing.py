"""The drawing of a matrix: its grid, its lines of cells, their numbers, labels and colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.geometry import Offset, Size
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.labels import Written
from tui_transformer.explorer.widgets.matrix_drawing import NARROW, CellTable, Drawing, Header, choose_grid
from tui_transformer.explorer.widgets.palette import FEW, LEVELS, Depth, Surface, palette, ramp, small_picture
from tui_transformer.text.display import fit_label
from tui_transformer.views.numbers import NumberFormat, number_format, short_number, shortest_width
from tui_transformer.views.view import Scale, ScaleKind, Tile, contrast_ratio, luminance


def grid_of(rows: int, columns: int, width: int, height: int, cell_width: int | None = None) -> Grid:
    return choose_grid((rows, columns), Size(width, height), label_width=6, number_width=5, cell_width=cell_width)


def test_cells_take_the_room_that_there_is_and_leave_numbers_out_where_there_is_none() -> None:
    small, without_numbers = grid_of(8, 8, 120, 30), grid_of(6, 18, 80, 15)
    assert (small.cell_width, small.cell_height) == (10, 3)
    assert (without_numbers.cell_width, without_numbers.cell_height) == (4, 2)
    assert grid_of(11, 24, 80, 15).cell_width == 3
    assert grid_of(8, 128, 160, 40).cell_width == NARROW
    assert grid_of(8, 128, 160, 40, cell_width=9).cell_width == 9, "as wanted"
    assert grid_of(3, 100, 50, 10, cell_width=9).scroll_to_show((0, 50), Offset(0, 0), Size(50, 10)).x % 9 == 0
    # labels are no cell
    grid = grid_of(8, 8, 80, 24)
    assert grid.cell_at(Offset(grid.gutter, 0), Offset(0, 0)) is None
    assert grid.cell_at(Offset(0, 3), Offset(0, 0)) is None


@pytest.mark.parametrize("shape", [(1, 1), (10, 10), (8, 128), (4096, 4096)])
def test_every_cell_can_be_scrolled_into_view(shape: tuple[int, int]) -> None:
    for size in [(1, 1), (2, 2), (5, 3), (12, 4), (80, 24), (200, 60)]:
        grid = grid_of(*shape, *size)
        for cell in ((0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, shape[1] // 2)):
            scroll = grid.scroll_to_show(cell, Offset(0, 0), Size(*size))
            assert all(at in seen for at, seen in zip(cell, grid.visible(scroll, Size(*size)), strict=True)), size
            assert grid.cell_at(grid.cell_region(cell, scroll).offset, scroll) == cell, size


# Lines of cells

PLAIN, PAGE, MISSING = Style(), Style(bgcolor="#101010"), Style(bgcolor="#202020")
COLORS = palette("sequential", Surface("truecolor", dark=True), PLAIN)


def drawing(
    values: Sequence[Sequence[float]], row: int = 0, column: int = 0, width: int = 7, height: int = 1
) -> Drawing:
    """A matrix of 200 × 20 without labels, of which some values are known; a number has four columns."""
    header = Header(str, Grid(200, 20, width, height, gutter=0, header=0), PLAIN, PLAIN)
    table = CellTable(COLORS, width, NumberFormat(5, 4, 2), masked=PLAIN, missing=MISSING, cursor=PLAIN)
    return Drawing(header, str, table, Tile(row, column, np.array(values)), Scale("sequential", 0.0, 1.0), PAGE)


def line(drawn: Drawing, row: int = 0, *, x: int = 0, width: int) -> Strip:
    return drawn.line(0, Offset(x, row), width, (-1, -1))


def test_numbers_are_in_line_at_the_right() -> None:
    drawn = drawing([[0.5, 0.0, 1.0, -1.0, 10.0]])
    texts = [segment.text for segment in line(drawn, width=35) if segment.text]
    assert texts == ["  .50  ", "    0  ", " 1.00  ", " −1.00 ", " 10.00 "]


def test_a_line_is_cut_or_filled_to_its_width_however_often_it_is_drawn() -> None:
    drawn = drawing([[0.25] * 20])
    for _ in range(2):
        for width in (3, 5, 7, 9, 14, 140, 150):
            strip = line(drawn, width=width)
            whole = "  .25  " * min((width + 2) // 7, 20)
            assert strip.text == whole.ljust(width)[:width]
            behind = [segment.text for segment in strip if segment.style == PAGE and segment.text]
            assert behind == [" " * 10] * (width > 140)
    drawn = drawing([[0.25] * 20], height=2)
    for width in (9, 14, 8, 12, 140, 139):
        below = drawn.line(1, Offset(0, 0), width, (-1, -1))
        assert below.cell_length == sum(segment.cell_length for segment in below if segment.style != PAGE) == width


def test_a_number_that_an_edge_cuts_is_left_out() -> None:
    drawn = drawing([[-1.75] * 4])
    assert line(drawn, width=14).text == " −1.75  −1.75 "
    for x, width, says in ((0, 11, " −1.75     "), (1, 13, "−1.75  −1.75 "), (2, 12, "      −1.75 "), (9, 4, "    ")):
        assert line(drawn, x=x, width=width).text == says


def test_every_row_has_its_own_cells_in_whatever_order_they_are_drawn() -> None:
    drawn = drawing([[row / 100] * 4 for row in range(90)], row=10, column=5, width=5)
    colors = [[segment.style for segment in line(drawn, row, x=25, width=5)] for row in range(10, 100)]
    for row in (70, 20, 99, 10, 45, 44):
        strip = line(drawn, row, x=25, width=5)
        assert [segment.style for segment in strip] == colors[row - 10]
        assert float(strip.text) == (row - 10) / 100
    # nothing is known around them
    for row, x in ((9, 25), (100, 25), (50, 0), (50, 45), (50, 60)):
        assert line(drawn, row, x=x, width=15).text == "  ·  " * 3
    assert line(drawn, 50, x=20, width=30).text == "  ·  " + " .40 " * 4 + "  ·  "


UNIT = Scale("sequential", 0.0, 1.0)
SIGNED, SMALL = Scale("diverging", -4.0, 4.0), Scale("diverging", -0.0005, 0.0005)


@pytest.mark.parametrize(
    ("write", "numbers", "texts"),
    [
        (number_format(SIGNED, 5, integer=False), (0.72, 0.004, 0.0, 1.0), [".72", ".00", "0", "1.00"]),
        (number_format(SIGNED, 5, integer=False), (-1.2345, -0.001), ["−1.23", ".00"]),
        (number_format(SIGNED, 4, integer=False), (-1.27, 12.345, 123.4), ["−1.3", "12.3", "123"]),
        (number_format(SIGNED, 4, integer=False), (12345.678, -1e30), ["1e4", "−1e…"]),
        (number_format(UNIT, 7, integer=False, exact=True), (0.123456,), [".12346"]),
        (number_format(SMALL, 5, integer=False), (0.00031, -0.00031, 3e-300), ["3e-4", "−3e-4", "0"]),
        (number_format(SMALL, 5, integer=False), (0.0, math.inf), ["0", "inf"]),
        (number_format(Scale("sequential", 0, 30522), 5, integer=True), (2003, -0.3), ["2003", "0"]),
        (short_number, (0, -0.0, 0.98765, -1234.5, 0.00001), ["0", "0", "0.988", "−1.23e3", "1e-5"]),
    ],
)
def test_decimals_have_no_leading_zero_and_give_way_to_the_width(write, numbers, texts) -> None:
    assert [*map(write, numbers)] == texts


def test_a_number_with_a_long_power_of_ten_is_not_0_unless_it_is_beside_the_others() -> None:
    for low in (-3e-12, 0.0):
        scale = Scale("diverging" if low else "sequential", low, 3e-12)
        write = number_format(scale, shortest_width(scale, integer=False), integer=False)
        assert [*map(write, (3e-12, low, 2e-14))] == ["3e-12", "−3e-12" if low else "0", "2e-14"]
        narrow = number_format(scale, 4, integer=False)
        assert [*map(narrow, (3e-12, -3e-12, 0.0, 1e-15))] == ["3e-…", "−3e…", "0", "0"]


@pytest.mark.parametrize("value", [12345.678, -98765.4, 1e12, -1e-30, 1e300])
def test_numbers_outside_the_scale_keep_to_the_width(value: float) -> None:
    for width in (3, 4, 7):
        assert len(number_format(SIGNED, width, integer=False)(value)) <= width


def test_every_number_of_a_scale_fits_the_shortest_width() -> None:
    for high in (4e-31, 0.0004, 0.05, 0.9, 1.0, 4.0, 12.5, 250.0):
        for low in (0.0, -high):
            scale = Scale("diverging" if low else "sequential", low, high)
            width = shortest_width(scale, integer=False)
            write = number_format(scale, width, integer=False)
            texts = [write(low + (high - low) * step / 50) for step in range(51)]
            assert max(map(len, texts)) <= width
            assert not any("…" in text for text in texts)


@pytest.mark.parametrize("text", ["shore", "猫が好き", "\x1b[31mred\x1b[0m", "[b]x[/b]", "👩‍👩‍👧", "é" * 9, ""])
def test_labels_take_exactly_their_cells_and_are_harmless(text: str) -> None:
    for width, align in product((0, 1, 2, 3, 5, 20), ("left", "right", "center")):
        fitted = fit_label(text, width, align)  # type: ignore[arg-type]
        assert cell_len(fitted) == width, (width, align)
        assert "\x1b" not in fitted, (width, align)


def test_cut_labels_say_so_and_the_position_of_a_token_stays_where_there_is_room_for_a_character_before_it():
    assert fit_label("forcefully", 5) == "forc…"
    assert fit_label("the", 5, "right") == "  the"
    assert fit_label("!", 5, "center") == "  !  "
    cut = [fit_label("the @2", width) for width in (7, 6, 5, 4, 3, 1)]
    assert cut == ["the @2 ", "the @2", "the@2", "t…@2", "th…", "…"]
    assert fit_label("世界 @12", 6) == "世…@12"
    assert fit_label("世界 @12", 5) == "…@12 "


@pytest.mark.parametrize("name", ["statement", "question", "猫が好きな人", "?", "x" * 40])
def test_the_label_under_the_cursor_is_whole_and_the_columns_stay(name):
    grid = Grid(1, 12, 5, 1, gutter=0, header=1)
    for cursor in range(12):
        header = Header(lambda at: name if at == cursor else "carried", grid, Style(), Style(bold=True))  # noqa: B023
        line = "".join(segment.text for segment in header.segments(range(12), cursor, range(2, 57)))
        assert cell_len(line) == 60, cursor
        assert name[:20] in line, cursor
        assert all(word == "car…" for word in line.replace(name, " ").split() if "x" not in word), cursor


@pytest.mark.parametrize("name", ["a", "日本", "海が好き", "é", ""])
def test_every_label_is_as_wide_as_its_column_however_wide_its_characters_are(name):
    header = Header(lambda _: name, Grid(1, 6, 7, 1, gutter=0, header=1), Style(), Style(bold=True))
    assert [segment.cell_length for segment in header.segments(range(6), 9, range(42))] == [7] * 6


def test_a_line_in_another_look_is_another_line() -> None:
    written = Written(Widget())
    for style, is_new in (("green", True), ("green", False), ("magenta", True)):
        assert written.is_new("title", Text(" title", style).append(" name", "dim")) is is_new


DEPTHS: tuple[Depth, ...] = ("truecolor", "256", "standard")
KINDS: tuple[ScaleKind, ...] = ("sequential", "diverging")


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
def test_text_is_readable_on_ramps_that_are_monotone_or_have_a_neutral_middle(depth: Depth, dark: bool) -> None:
    surface = Surface(depth, dark)
    lightness = [luminance(color.get_truecolor()) for color in ramp("sequential", surface)]
    steps = np.diff(lightness)
    assert (steps > 0).all() if dark else (steps < 0).all()
    # the signed one: ends apart
    colors = [color.get_truecolor() for color in ramp("diverging", surface)]
    middle = colors[len(colors) // 2]
    assert len(colors) % 2 == 1
    assert max(middle) - min(middle) < 30
    assert colors[0].blue > colors[0].red
    assert colors[-1].red > colors[-1].blue
    for kind in KINDS:
        for style in palette(kind, surface, Style()).styles:
            assert style.color is not None
            assert style.bgcolor is not None
            assert contrast_ratio(style.color.get_truecolor(), style.bgcolor.get_truecolor()) >= 4.5


def test_without_colour_signed_glyphs_tell_minus_from_plus() -> None:
    colors = palette("diverging", Surface("none", dark=True), Style())
    assert not colors.has_color
    assert len(set(colors.glyphs)) == len(colors.glyphs)
    assert colors.glyphs[len(colors.glyphs) // 2] == "  "
    negative, positive = colors.glyphs[:4], colors.glyphs[5:]
    assert not set("".join(negative)) & set("".join(positive)) - {" "}


def test_masked_values_have_their_own_level() -> None:
    colors = palette("sequential", Surface("truecolor", dark=True), Style())
    levels = colors.levels(np.array([0.0, 1.0, 5.0, np.nan, -np.inf, np.inf]), Scale("sequential", 0.0, 1.0))
    top = len(colors.styles) - 1
    assert levels.tolist() == [0, top, top, colors.masked, colors.masked, top]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [*DEPTHS, "none"])
def test_no_value_that_is_not_nearly_zero_looks_like_zero(kind: ScaleKind, depth: Depth) -> None:
    scale = Scale(kind, -2.0 if kind == "diverging" else 0.0, 2.0)
    sizes = 2.0 * np.array([1, 1 / 2, 1 / 4, 1 / 8, 1 / 15])
    values = np.concatenate([sizes, -sizes]) if kind == "diverging" else sizes
    for levels in (65, LEVELS, FEW):
        colors = palette(kind, Surface(depth, dark=True), Style(), levels)
        zero = colors.levels(np.zeros(1), scale)[0]
        drawn = colors.levels(values, scale)
        assert (drawn != zero).all(), levels
        assert (np.sign(drawn - zero) == np.sign(values)).all(), levels
        looks = list(zip(colors.styles, colors.glyphs, strict=True))
        assert all(looks[level] != looks[zero] for level in drawn), levels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [*DEPTHS, "none"])
def test_small_pictures_draw_half_of_the_largest_value_unlike_zero(kind: ScaleKind, depth: Depth) -> None:
    scale = Scale(kind, -1.0 if kind == "diverging" else 0.0, 1.0)
    [line] = small_picture(np.array([[0.0, 0.5, 0.125]]), scale, Surface(depth, dark=True), Style(bgcolor="black"), FEW)
    zero, half, eighth = ((segment.text, segment.style) for segment in line)
    assert zero not in (half, eighth)


@pytest.mark.filterwarnings("error")
def test_a_scale_wider_than_any_number_has_a_colour_for_every_value() -> None:
    colors, largest = palette("diverging", Surface("truecolor", dark=True), Style()), np.finfo(np.float64).max
    scale = Scale("diverging", -1.6e308, 1.6e308)
    levels = colors.levels(np.array([-largest, -0.8e308, 0.0, 0.8e308, largest, np.nan]), scale).tolist()
    assert levels == [0, 16, 32, 48, 64, colors.masked]
    assert Scale("sequential", -1.0, largest).position(np.array([-largest, largest])).tolist() == [0, 1]
