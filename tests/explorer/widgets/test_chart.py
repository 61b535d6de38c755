from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.style import Style
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.chart import Chart, ansi_strips
from tui_transformer.explorer.widgets.chart_drawing import SERIES_GLYPHS, Inks, draw
from tui_transformer.views import charts
from tui_transformer.views.charts import BarChart, Histogram, LineChart, Series

BARS = BarChart("Row", ("the", "waves", "shore"), (0.7, 0.25, 0.05), marked=1)
WAVES = LineChart(
    "Waves",
    "position",
    "value",
    (
        Series("sine", tuple(map(float, range(30))), tuple(math.sin(x / 4) for x in range(30))),
        Series("cosine", tuple(map(float, range(30))), tuple(math.cos(x / 4) for x in range(30))),
    ),
)
COUNTS = Histogram("Activations", (0.0, 1.0, 2.0, 3.0), (4, 0, 9), note="mean 1.8")


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Chart()


Draw = Callable[..., Awaitable[list[list[str]]]]


@pytest.fixture
def shown(screen_text) -> Draw:
    """A function that gives the lines of the screen for each of some charts."""

    async def lines_of(*shown: charts.Chart | None, size: tuple[int, int] = (70, 16)) -> list[list[str]]:
        lines, app = [], ChartApp()
        async with app.run_test(size=size) as pilot:
            for chart in shown:
                app.query_one(Chart).show(chart)
                await pilot.pause()
                assert {strip.cell_length for strip in app.screen._compositor.render_strips()} == {size[0]}
                lines.append(screen_text(app).splitlines())
        return lines

    return lines_of


def drawn(chart: charts.Chart, width: int, height: int) -> list[str]:
    return re.sub(r"\x1b\[[\d;]*m", "", draw(chart, width, height, Inks((), None, None))).splitlines()


async def test_bars_on_a_log_scale_are_as_long_as_their_logarithms_and_many_have_powers_of_ten(shown: Draw) -> None:
    powers = tuple(10.0 ** -(i % 4) for i in range(60))
    lines, many = await shown(
        BarChart("Norms", ("a", "b", "c", "d"), (1e-4, 1e-2, 1.0, 0.0), logarithmic=True),
        BarChart("Norms", tuple(map(str, range(60))), powers, logarithmic=True),
    )
    lengths = [line.count("█") for line in lines[1:5]]
    assert lengths[1] / lengths[0] == pytest.approx(3, rel=0.15)
    assert lengths[2] / lengths[0] == pytest.approx(5, rel=0.15)
    assert lengths[3] == 0
    assert [line.split()[-1] for line in lines[1:5]] == ["0.0001", "0.01", "1", "0"]
    assert any("1e0" in line for line in many)
    assert any("1e-4" in line for line in many)


@pytest.mark.parametrize(
    ("low", "high", "height", "marks"),
    [
        (0.01, 0.87, 8, ["0.8", "0.6", "0.4", "0.2"]),
        (0.01, 0.87, 14, ["0.8", "0.6", "0.4", "0.2"]),
        (2.7, 4.7, 5, ["4", "3"]),
        (0.0, 0.9, 4, ["0"]),
        (-1e-7, 3e-7, 8, ["3e-7", "2e-7", "1e-7", "0", "−1e-7"]),
        (1e-320, 2e-320, 8, ["2e-320", "1.5e-320", "1e-320", "5e-321", "0"]),
    ],
)
def test_curves_by_step_are_marked_at_round_values(low: float, high: float, height: int, marks: list[str]) -> None:
    chart = LineChart("", "", "", (Series("", (0.0, 9.0), (low, high)),), counted=True)
    lines = drawn(chart, 40, height)
    texts = [line.partition("┤")[0].strip() for line in lines if "┤" in line]
    assert texts == marks


def test_marks_of_an_axis_are_evenly_spaced_with_0_among_them_and_on_lines_of_their_own() -> None:
    chart = replace(WAVES, series=WAVES.series[:1])
    for height in range(5, 16):
        lines = drawn(chart, 60, height)
        marks = [float(line.partition("┤")[0].strip().replace("−", "-")) for line in lines if "┤" in line]
        assert 0 in marks, height
        assert len({round(one - other, 6) for one, other in pairwise(marks)}) <= 1, height
        assert not any("−0.0┤" in line for line in lines), height
    # of a logarithmic one
    series = Series("", (0.0, 9.0), (2.1, 0.003))
    chart = LineChart("", "step", "", (series,), logarithmic=True, counted=True)
    for height in range(5, 12):
        texts = [line.partition("┤")[0].strip() for line in drawn(chart, 40, height) if "┤" in line]
        assert texts == [f"{float(mark):g}" for mark in texts] != [], height


async def test_bars_have_labels_values_and_lengths(shown: Draw) -> None:
    lines, signed, masked, short, many_short = await shown(
        BARS,
        BarChart("Row", ("a", "b"), (-1.0, 1.0)),
        BarChart("Row", ("a", "b", "c"), (-math.inf, 0.0, 1.0)),
        BarChart("Row", ("a", "b"), (1e-4, 1.0)),
        BarChart("Row", tuple(map(str, range(90))), (*[1e-4] * 89, 1.0)),
    )
    assert lines[0].startswith("Row")
    assert lines[1].split()[0] == "the"
    assert lines[1].split()[-1] == "0.7"
    assert lines[2].split()[0] == "▸waves"
    lengths = [line.count("█") for line in lines[1:4]]
    assert lengths[0] > 2.5 * lengths[1] > 5 * lengths[2] > 0
    # negative ones go to the left of zero
    assert signed[1].rindex("█") <= signed[2].index("█") + 1
    # masked ones are named and zero is empty
    assert "× masked" in masked[1]
    assert "█" not in masked[1] + masked[2]
    # one of less than half a column is empty on its baseline
    assert "█" not in short[1]
    assert short[1].index("│", 1) == short[2].index("█")
    assert not {"▄", "▀", "█"} & set("".join(many_short)[: len("".join(many_short)) // 4])


def test_values_of_bars_that_are_too_small_to_be_seen_stand_below_each_other() -> None:
    chart = BarChart("Row", ("a", "b", "c", "d", "e"), (1e-4, 0.01, 0.0, 3e-7, 1.0))
    values = ("0.0001", "0.01", "0", "3e-7")
    assert len({line.index(value) for line, value in zip(drawn(chart, 60, 8), values, strict=False)}) == 1


async def test_more_bars_than_lines_stand_upright_and_empty_bins_of_histograms_are_empty(shown: Draw) -> None:
    values = tuple((index % 7) / 7 for index in range(200))
    upright, bins = await shown(BarChart("Row", tuple(map(str, range(200))), values, marked=3), COUNTS)
    assert any("█" in line for line in upright)
    assert "0" in upright[-1].split()
    assert "mean 1.8" in bins[0]
    lowest = next(line for line in bins if "0┤" in line).split("┤")[-1].strip("│")
    third = len(lowest) // 3
    assert lowest[third + 2 : 2 * third - 1].strip() == ""
    assert lowest[:third].strip()
    assert lowest[-third:].strip()


async def test_curves_have_a_legend_and_axis_labels_and_their_holes_stay_holes(shown: Draw) -> None:
    y = tuple(math.nan if 10 <= x < 20 else 1.0 for x in range(30))
    lines, holes = await shown(WAVES, LineChart("Loss", "", "", (Series("loss", tuple(map(float, range(30))), y),)))
    assert lines[0].split() == ["Waves", "──", "sine", "──", "cosine"]
    assert lines[-1].split() == ["value", "position"]
    curve = next(line for line in holes[2:-3] if any("\u2800" < glyph <= "\u28ff" for glyph in line))
    assert " " * 10 in curve.strip(" │1.0┤")


async def test_a_legend_without_room_goes_on_in_the_next_line_until_all_curves_are_named(shown: Draw) -> None:
    many = tuple(Series(f"curve {i}", (0.0, 1.0), (float(i), 0.0)) for i in range(12))
    (two,) = await shown(WAVES, size=(24, 12))
    assert two[0].split() == ["Waves", "──", "sine"]
    assert two[1].split() == ["──", "cosine"]
    (twelve,) = await shown(LineChart("Many", "", "", many), size=(50, 20))
    assert all(f"curve {i}" in "\n".join(twelve[:6]) for i in range(12))


async def test_no_two_of_many_curves_are_drawn_alike(shown: Draw, colors) -> None:
    many = tuple(Series(str(i), (0.0, 1.0), (float(i), float(i))) for i in range(33))
    (lines,) = await shown(LineChart("Many", "", "", many), size=(100, 60))
    words = " ".join(line for line in lines if "╭" not in line and "│" not in line).split()
    signs = {name: sign for sign, name in pairwise(words[1:67]) if sign in SERIES_GLYPHS}
    later = [signs[str(i)] for i in range(8, 33)]
    assert len(set(later)) == 25
    assert all(later[i - 8] * 50 in "".join(lines) for i in range(8, 33))


async def test_without_colour_curves_and_bars_are_told_apart(shown: Draw, no_colors) -> None:
    for lines, glyphs in zip(await shown(BARS, WAVES, COUNTS), ("▒█", "*+", "▒"), strict=True):
        assert set(glyphs) <= set("".join(lines))


async def test_labels_are_harmless_and_never_markup(shown: Draw) -> None:
    names = ("\x1b[31mred", "[b]bold[/b]", "猫が好き", "\u202eright")
    bars, curves = await shown(
        BarChart("\x1b]0;x\x07", names, (1.0, 2.0, 3.0, 4.0)),
        LineChart("t", names[0], names[3], (Series(names[0], (0.0,), (1.0,)),)),
    )
    text = "\n".join(bars + curves)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[b]bold[/b]" in text


async def test_charts_without_anything_to_scale_are_drawn(shown: Draw) -> None:
    given = (
        BarChart("Nothing", (), ()),
        LineChart("Nothing", "", "", ()),
        LineChart("Point", "x", "y", (Series("one", (0.0,), (0.0,)),)),
        LineChart("Large", "x", "y", (Series("huge", (0.0, 1.0), (-1e308, 1e308)),)),
        LineChart("Masked", "x", "y", (Series("none", (0.0, 1.0), (math.nan, math.inf)),)),
        BarChart("Infinite", ("a", "b"), (math.inf, -math.inf)),
        BarChart("Equal", tuple("abcdefghijklmnopqrstuvwxyz"), (0.0,) * 26),
        Histogram("Nothing", (), ()),
        Histogram("One", (0.0, 1.0), (0,)),
    )
    none, *others = await shown(None, *given)
    assert not "".join(none).strip()
    for chart, lines in zip(given, others, strict=True):
        assert lines[0].strip().startswith(chart.title)


async def test_many_bars_say_where_there_is_no_number(shown: Draw) -> None:
    heights = [1.0] * 40
    heights[10], heights[20], heights[30] = math.inf, math.nan, -math.inf
    (lines,) = await shown(BarChart("Row", tuple(map(str, range(40))), tuple(heights)))
    text = "".join(lines)
    assert [sign for sign in text if sign in "∞×"] == ["∞", "×", "×"]
    assert text.index("∞") < text.index("×")


async def test_any_size_of_screen(screen_text, shows) -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(Chart).show(WAVES)
        for size in [(1, 1), (10, 3), (23, 9), (24, 5), (200, 50)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert ("needs more room" in screen_text(app)) == (size in {(23, 9)}), size
            await pilot.resize_terminal(80, 24)
            await pilot.pause()
            await shows(app, "position")


async def test_the_colours_follow_the_theme() -> None:
    app = ChartApp()
    async with app.run_test(size=(70, 10)) as pilot:
        app.query_one(Chart).show(BARS)
        await pilot.pause()

        def colors() -> set[str]:
            strip = app.screen._compositor.render_strips()[1]
            return {str(segment.style.color) for segment in strip if segment.style and "█" in segment.text}

        dark = colors()
        app.theme = "textual-light"
        await pilot.pause()
        assert dark
        assert colors() != dark


def test_escape_sequences_become_styles() -> None:
    base = Style(color="red")
    (strip,) = ansi_strips("a\x1b[38;2;1;2;3mb\x1b[1mc\x1b[0md\x1b[48;5;4me\x1b[7mf", base)
    styles = {segment.text: segment.style for segment in strip}
    assert "".join(styles) == "abcdef"
    assert styles["a"] == styles["d"] == base
    assert styles["b"] == base + Style(color="#010203")
    assert styles["c"] == base + Style(color="#010203", bold=True)
    assert styles["e"] == styles["f"] == base + Style(bgcolor="color(4)")


def test_remarks_of_the_chart_library_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    flat = BarChart("flat", tuple("ab"), (1.0, 1.0 + 1e-15))
    draw(flat, 60, 10, Inks((), None, None))
    draw(Histogram("flat", (1.0, 1.0 + 1e-16), (3,)), 60, 10, Inks((), None, None))
    draw(LineChart("flat", "x", "y", (Series("s", (0.0, 1.0), (1e300, 1e300)),)), 60, 10, Inks((), None, None))
    assert capfd.readouterr() == ("", "")
