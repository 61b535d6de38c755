from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from rich.style import Style
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.chart import Chart, ansi_strips
from tui_transformer.explorer.widgets.chart_drawing import Inks, draw
from tui_transformer.views import charts
from tui_transformer.views.charts import BarChart, Histogram, LineChart, Series

ScreenText = Callable[[App[Any]], str]
Shows = Callable[[App[Any], str], Awaitable[None]]

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
    def __init__(self, chart: charts.Chart | None) -> None:
        super().__init__()
        self.chart = chart

    def compose(self) -> ComposeResult:
        yield Chart()

    def on_mount(self) -> None:
        self.query_one(Chart).show(self.chart)


async def shown(chart: charts.Chart | None, screen_text: ScreenText, size: tuple[int, int] = (70, 16)) -> list[str]:
    app = ChartApp(chart)
    async with app.run_test(size=size):
        strips = app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {size[0]}
        return screen_text(app).splitlines()


async def test_bars_on_a_log_scale_are_as_long_as_their_logarithms(screen_text: ScreenText) -> None:
    chart = BarChart("Norms", ("a", "b", "c", "d"), (1e-4, 1e-2, 1.0, 0.0), logarithmic=True)
    lines = await shown(chart, screen_text)
    lengths = [line.count("█") for line in lines[1:5]]
    assert lengths[1] / lengths[0] == pytest.approx(3, rel=0.15)
    assert lengths[2] / lengths[0] == pytest.approx(5, rel=0.15)
    assert lengths[3] == 0
    assert [line.split()[-1] for line in lines[1:5]] == ["0.0001", "0.01", "1", "0"]


async def test_many_bars_on_a_log_scale_have_powers_of_ten_beside_them(screen_text: ScreenText) -> None:
    values = tuple(10.0 ** -(i % 4) for i in range(60))
    lines = await shown(BarChart("Norms", tuple(map(str, range(60))), values, logarithmic=True), screen_text)
    assert any("1e0" in line for line in lines)
    assert any("1e-4" in line for line in lines)


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
    lines = re.sub(r"\x1b\[[\d;]*m", "", draw(chart, 40, height, Inks((), None, None))).splitlines()
    texts = [line.partition("┤")[0].strip() for line in lines if "┤" in line]
    assert texts == marks


@pytest.mark.parametrize("height", range(5, 16))
def test_the_marks_of_a_named_axis_are_evenly_spaced_and_have_0_among_them(height: int) -> None:
    chart = replace(WAVES, series=WAVES.series[:1])
    lines = re.sub(r"\x1b\[[\d;]*m", "", draw(chart, 60, height, Inks((), None, None))).splitlines()
    marks = [float(line.partition("┤")[0].strip().replace("−", "-")) for line in lines if "┤" in line]
    assert 0 in marks
    assert len({round(one - other, 6) for one, other in pairwise(marks)}) <= 1
    assert not any("−0.0┤" in line for line in lines)


@pytest.mark.parametrize("height", range(5, 12))
def test_no_two_marks_of_a_logarithmic_axis_share_a_line(height: int) -> None:
    series = Series("", (0.0, 9.0), (2.1, 0.003))
    chart = LineChart("", "step", "", (series,), logarithmic=True, counted=True)
    lines = re.sub(r"\x1b\[[\d;]*m", "", draw(chart, 40, height, Inks((), None, None))).splitlines()
    texts = [line.partition("┤")[0].strip() for line in lines if "┤" in line]
    assert texts == [f"{float(mark):g}" for mark in texts] != []


async def test_bars_have_labels_values_and_lengths(screen_text: ScreenText) -> None:
    lines = await shown(BARS, screen_text)
    assert lines[0].startswith("Row")
    assert lines[1].split()[0] == "the"
    assert lines[1].split()[-1] == "0.7"
    assert lines[2].split()[0] == "▸waves"
    lengths = [line.count("█") for line in lines[1:4]]
    assert lengths[0] > 2.5 * lengths[1] > 5 * lengths[2] > 0


async def test_negative_bars_go_to_the_left_of_zero(screen_text: ScreenText) -> None:
    lines = await shown(BarChart("Row", ("a", "b"), (-1.0, 1.0)), screen_text)
    assert lines[1].rindex("█") <= lines[2].index("█") + 1


async def test_masked_bars_are_named_and_zero_is_empty(screen_text: ScreenText) -> None:
    lines = await shown(BarChart("Row", ("a", "b", "c"), (math.nan, 0.0, 1.0)), screen_text)
    assert "× masked" in lines[1]
    assert "█" not in lines[1] + lines[2]


async def test_a_bar_of_less_than_half_a_column_is_empty_on_its_baseline(screen_text: ScreenText) -> None:
    lines = await shown(BarChart("Row", ("a", "b"), (1e-4, 1.0)), screen_text)
    assert "█" not in lines[1]
    assert lines[1].index("│", 1) == lines[2].index("█")
    lines = await shown(BarChart("Row", tuple(map(str, range(90))), (*[1e-4] * 89, 1.0)), screen_text)
    assert not {"▄", "▀", "█"} & set("".join(lines)[: len("".join(lines)) // 4])


def test_values_of_bars_that_are_too_small_to_be_seen_stand_below_each_other() -> None:
    chart = BarChart("Row", ("a", "b", "c", "d", "e"), (1e-4, 0.01, 0.0, 3e-7, 1.0))
    lines = re.sub(r"\x1b\[[\d;]*m", "", draw(chart, 60, 8, Inks((), None, None))).splitlines()
    values = ("0.0001", "0.01", "0", "3e-7")
    assert len({line.index(value) for line, value in zip(lines, values, strict=False)}) == 1


async def test_more_bars_than_lines_stand_upright(screen_text: ScreenText) -> None:
    values = tuple((index % 7) / 7 for index in range(200))
    lines = await shown(BarChart("Row", tuple(map(str, range(200))), values, marked=3), screen_text)
    assert any("█" in line for line in lines)
    assert "0" in lines[-1].split()


async def test_curves_have_a_legend_and_axis_labels(screen_text: ScreenText) -> None:
    lines = await shown(WAVES, screen_text)
    assert lines[0].split() == ["Waves", "──", "sine", "──", "cosine"]
    assert lines[-1].split() == ["value", "position"]


async def test_a_legend_without_room_goes_on_in_the_next_line(screen_text: ScreenText) -> None:
    lines = await shown(WAVES, screen_text, size=(24, 12))
    assert lines[0].split() == ["Waves", "──", "sine"]
    assert lines[1].split() == ["──", "cosine"]


async def test_all_curves_are_named(screen_text: ScreenText) -> None:
    series = tuple(Series(f"curve {i}", (0.0, 1.0), (float(i), 0.0)) for i in range(12))
    lines = await shown(LineChart("Many", "", "", series), screen_text, size=(50, 20))
    assert all(f"curve {i}" in "\n".join(lines[:6]) for i in range(12))


async def test_holes_in_a_curve_stay_holes(screen_text: ScreenText) -> None:
    y = tuple(math.nan if 10 <= x < 20 else 1.0 for x in range(30))
    lines = await shown(LineChart("Loss", "", "", (Series("loss", tuple(map(float, range(30))), y),)), screen_text)
    curve = next(line for line in lines[2:-3] if any("\u2800" < glyph <= "\u28ff" for glyph in line))
    assert " " * 10 in curve.strip(" │1.0┤")


async def test_histograms_leave_empty_bins_empty(screen_text: ScreenText) -> None:
    lines = await shown(COUNTS, screen_text)
    assert "mean 1.8" in lines[0]
    lowest = next(line for line in lines if "0┤" in line).split("┤")[-1].strip("│")
    third = len(lowest) // 3
    assert lowest[third + 2 : 2 * third - 1].strip() == ""
    assert lowest[:third].strip()
    assert lowest[-third:].strip()


@pytest.mark.parametrize("chart", [BARS, WAVES, COUNTS])
async def test_without_colour_curves_and_bars_are_told_apart(
    chart: charts.Chart, screen_text: ScreenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    text = "\n".join(await shown(chart, screen_text))
    assert all(glyph in text for glyph in {BARS: "▒█", WAVES: "*+", COUNTS: "▒"}[chart])


async def test_labels_are_harmless_and_never_markup(screen_text: ScreenText) -> None:
    names = ("\x1b[31mred", "[b]bold[/b]", "猫が好き", "\u202eright")
    text = "\n".join(await shown(BarChart("\x1b]0;x\x07", names, (1.0, 2.0, 3.0, 4.0)), screen_text))
    text += "\n".join(await shown(LineChart("t", names[0], names[3], (Series(names[0], (0.0,), (1.0,)),)), screen_text))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[b]bold[/b]" in text


@pytest.mark.parametrize(
    "chart",
    [
        None,
        BarChart("Nothing", (), ()),
        LineChart("Nothing", "", "", ()),
        LineChart("Point", "x", "y", (Series("one", (0.0,), (0.0,)),)),
        LineChart("Large", "x", "y", (Series("huge", (0.0, 1.0), (-1e308, 1e308)),)),
        LineChart("Masked", "x", "y", (Series("none", (0.0, 1.0), (math.nan, math.inf)),)),
        BarChart("Infinite", ("a", "b"), (math.inf, -math.inf)),
        BarChart("Equal", tuple("abcdefghijklmnopqrstuvwxyz"), (0.0,) * 26),
        Histogram("Nothing", (), ()),
        Histogram("One", (0.0, 1.0), (0,)),
    ],
)
async def test_charts_without_anything_to_scale_are_drawn(chart: charts.Chart | None, screen_text: ScreenText) -> None:
    lines = await shown(chart, screen_text)
    assert lines[0].strip().startswith("" if chart is None else chart.title)
    assert chart is not None or not "".join(lines).strip()


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (23, 9), (24, 5), (200, 50)])
async def test_any_size_of_screen(size: tuple[int, int], screen_text: ScreenText, shows: Shows) -> None:
    app = ChartApp(WAVES)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.resize_terminal(*size)
        await pilot.pause()
        assert ("needs more room" in screen_text(app)) == (size in {(23, 9)})
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await shows(app, "position")


async def test_the_colours_follow_the_theme() -> None:
    app = ChartApp(BARS)
    async with app.run_test(size=(70, 10)) as pilot:

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
