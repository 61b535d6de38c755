"""Charts drawn by plotext, each kind by one function: in colours, as text without, and into files."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.color_triplet import ColorTriplet

from tui_transformer.errors import InputError
from tui_transformer.files import write_whole
from tui_transformer.records import dataclass
from tui_transformer.report.svg import chart_svg
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.text.files import shown_path
from tui_transformer.views.charts import BarChart, Chart, Histogram, LineChart, marks, tick_texts, ticks
from tui_transformer.views.numbers import short_number

SERIES_GLYPHS = "*+ox#@%&ABCDEFGHIJKLMNPQRSTUVWYZ123456789"
"""Markers of the curves where there is no colour, and where there are more curves than colours; no two look alike."""

Floats = npt.NDArray[np.float64]

_VALUE_CELLS = 11
_TICK_CELLS = 9
_AXIS_LINES = 3
_LARGEST = 1e150
_ROUNDING = 1e-6

WIDTH, HEIGHT = 100, 30
SMALLEST = (24, 8)
"""Columns and lines of a chart as text: usually, and at least."""


@dataclass(frozen=True)
class Inks:
    """The colours of curves, of bars and of the marked bar; none where there is no colour."""

    series: tuple[ColorTriplet, ...]
    bar: ColorTriplet | None
    marked: ColorTriplet | None


@dataclass(frozen=True)
class _Canvas:
    """plotext's figure, its size, what it is drawn with, and whether a line names the x axis."""

    figure: Any
    width: int
    height: int
    inks: Inks
    named: bool = False


def draw(chart: Chart, width: int, height: int, inks: Inks) -> str:
    """A chart as text with escape sequences for colours, `width` columns × `height` lines.

    plotext has one figure for the whole process: call this from one thread.
    """
    import plotext

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # its remarks would be printed over the screen
        plotext.terminal.limit(width=False, height=False)
        figure = plotext.figure
        figure.clear()
        figure.plot_size(width, height)
        figure.theme("colorless")
        named = isinstance(chart, LineChart) and bool(chart.x_label)
        _DRAW[type(chart)](_Canvas(figure, width, height, inks, named), chart)
        return str(figure.build().string())


def chart_text(chart: Chart, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The title, the names of all curves or a remark, and the chart."""
    width, height = max(width, SMALLEST[0]), max(height, SMALLEST[1])
    parts = [chart.title]
    if isinstance(chart, LineChart):
        signs = (SERIES_GLYPHS[index % len(SERIES_GLYPHS)] for index in range(len(chart.series)))
        parts.append("   ".join(f"{sign} {each.label}" for sign, each in zip(signs, chart.series, strict=True)))
    elif isinstance(chart, Histogram):
        parts.append(chart.note)
    heading = [line for part in parts for line in wrap(visible(part), width)]
    drawn = draw(chart, width, max(height - len(heading), SMALLEST[1]), Inks((), None, None))
    lines = re.sub(r"\x1b\[[\d;]*m", "", drawn).splitlines()
    return "\n".join([*heading, *(line.rstrip() for line in lines)]).rstrip() + "\n"


CHART_SUFFIXES: Mapping[str, Callable[[Chart], str]] = {".svg": chart_svg, ".txt": chart_text}


def export_chart(chart: Chart, path: Path) -> None:
    """Write a chart as SVG or text, by the suffix of the path.

    Raises:
        InputError: Another suffix, or a file that cannot be written.
    """
    written = CHART_SUFFIXES.get(path.suffix.lower())
    if written is None:
        raise InputError(f"{shown_path(path)}: the name of a chart has to end in {', '.join(CHART_SUFFIXES)}")
    write_whole(path, written(chart).encode("utf-8", errors="backslashreplace"))


def _draw_lines(canvas: _Canvas, chart: LineChart) -> None:
    figure = canvas.figure
    for index, series in enumerate(chart.series):
        marker: Any = SERIES_GLYPHS[index % len(SERIES_GLYPHS)]
        if colors := canvas.inks.series:
            marker = _marker("braille" if index < len(colors) else marker, colors[index % len(colors)])
        drawn = series.logarithms if chart.logarithmic else series
        points = zip(drawn.x, drawn.y, strict=True)
        for finite, run in groupby(points, key=lambda point: math.isfinite(point[0]) and math.isfinite(point[1])):
            if finite:
                x, y = (_drawable(values).tolist() for values in zip(*run, strict=True))
                signal = figure.signal(x, y, marker=marker)
                _add(canvas, signal.lines() if len(x) > 1 else signal)
    figure.axes(style="rounded")
    if chart.logarithmic:  # of more than one value
        _mark_powers(canvas, [value for series in chart.series for value in series.y if 0 < value < math.inf])
    places = _drawable(value for series in chart.series for value in series.x if math.isfinite(value))
    if places.size:
        low, high = float(places.min()), float(places.max())
        _mark_x(canvas, low, max(high, low + 1) if chart.counted else high, whole=chart.counted)
    if not chart.logarithmic:
        _mark_values(canvas, (value for series in chart.series for value in series.y))
    for axis, label in (("x", chart.x_label), ("y", chart.y_label)):
        if label:
            figure.label(fit_label(label, cells(label)), axis=axis)


def _mark_powers(canvas: _Canvas, values: list[float]) -> None:
    """Mark a logarithmic y axis at 1, 2 and 5 of each power of ten, or at powers alone."""
    if not values:
        return
    low, high = math.log10(min(values)), math.log10(max(values))
    powers = range(math.floor(low), math.ceil(high) + 1)
    fine = [(power, digit) for power in powers for digit in (1, 2, 5) if low <= power + math.log10(digit) <= high]
    coarse = [(power, digit) for power, digit in fine if digit == 1]
    chosen = fine if 2 * len(fine) <= canvas.height else coarse[:: max(3 * len(coarse) // canvas.height, 1)]
    labels = {power + math.log10(digit): short_number(digit * 10.0**power) for power, digit in chosen}
    _mark_y(canvas, low, high if high > low else low + 1, labels)


def _mark_x(canvas: _Canvas, low: float, high: float, *, whole: bool = False) -> None:
    marked = marks(low, high, max(canvas.width // (_TICK_CELLS + 3), 1), whole=whole)
    canvas.figure.ruler("x").lim(low, high if high > low else low + 1).ticks([*marked], [*marked.values()])


def _mark_values(canvas: _Canvas, values: Iterable[float], *, whole: bool = False) -> None:
    """Mark the y axis at round values; a curve that is all of one value lies over an axis from 0."""
    drawable = _drawable(value for value in values if math.isfinite(value))
    if not drawable.size:
        return
    low, high = float(drawable.min()), float(drawable.max())
    if not 1 / _LARGEST < high - low < _LARGEST:
        low, high = min(low, 0.0), max(high, 0.0) or 1.0
    lines = canvas.height - _AXIS_LINES - canvas.named
    most = max(lines, 1) if lines < 6 else lines // 2 + 1
    fewer = (ticks(low, high, each, whole=whole) for each in range(most, 0, -1))
    places = next((each for each in fewer if len(_apart(canvas, low, high, each)) == len(each)), ())
    _mark_y(canvas, low, high, dict(zip(places, tick_texts(places), strict=True)))


def _apart(canvas: _Canvas, low: float, high: float, places: Iterable[float]) -> list[float]:
    """The places of the y axis that no two of share a line, from the lowest; plotext may round a half up or down."""
    last, kept, taken = max(canvas.height - _AXIS_LINES - canvas.named - 1, 0), list[float](), -1
    for place in sorted(places):
        line = (place - low) / (high - low) * last
        if math.ceil(line - 0.5 - _ROUNDING) > taken:
            kept.append(place)
            taken = math.floor(line + 0.5 + _ROUNDING)
    return kept


def _mark_y(canvas: _Canvas, low: float, high: float, labels: dict[float, str]) -> None:
    """Mark the y axis, with no two labels in one line: of two, plotext would make one of both."""
    places = _apart(canvas, low, high, labels)
    canvas.figure.ruler("y").lim(low, high).ticks(places, [labels[place] for place in places])


def _draw_bars(canvas: _Canvas, chart: BarChart) -> None:
    """A line a bar with its label and value, where there are so many lines."""
    if len(chart.values) > canvas.height:
        _draw_many_bars(canvas, chart)
        return
    if not chart.values:
        return
    figure, values = canvas.figure, _heights(chart).tolist()
    low, high = min([0.0, *values]), max([0.0, *values])
    labels = [
        "▸" * (index == chart.marked) + fit_label(label, min(cells(label), 16)) + " "
        for index, label in enumerate(chart.labels)
    ]
    span, room = (high - low) or 1.0, max(canvas.width - max(map(cells, labels)) - _VALUE_CELLS, 1)
    lines, beyond = range(len(values) - 1, -1, -1), span * _VALUE_CELLS / room
    cell = (span + beyond) / (room + _VALUE_CELLS - 1)
    figure.plot_size(canvas.width, len(values))
    figure.axes(active=False)
    figure.ruler("x").lim(low, high + beyond).ticks([], [])
    figure.ruler("y").lim(-0.5, len(values) - 0.5).ticks(list(lines), labels)
    figure.draw(figure.segment((0, 0), (-0.5, len(values) - 0.5), marker="│"))  # the line of 0
    for index, (line, value) in enumerate(zip(lines, values, strict=True)):
        end = round(value / cell) * cell  # a bar and its value are rounded once: they keep their distance
        if end:
            marker = _bar_marker(chart.marked == index, canvas.inks)
            figure.draw(figure.segment((0, end), (line, line), marker=marker))
        value = chart.values[index]
        written = short_number(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "∞"
        text = "× masked" if value == -math.inf else written
        figure.draw(figure.text(max(end, 0.0) + 2.25 * cell, line, text))


def _draw_many_bars(canvas: _Canvas, chart: BarChart) -> None:
    """A few columns a bar, with a label here and there."""
    figure, heights = canvas.figure, _heights(chart)
    # the least that is drawn is half a line: a bar of less than a quarter is none
    least = (max(0.0, heights.max()) - min(0.0, heights.min())) / (4 * canvas.height)
    heights[np.abs(heights) < least] = 0.0
    _draw_steps(canvas, np.arange(heights.size + 1, dtype=np.float64) - 0.5, heights, chart.marked)
    for place, value in enumerate(chart.values):
        if not math.isfinite(value):  # no bar would say 0
            figure.draw(figure.text(place, 0, "∞" if value > 0 else "×"))
    first, step = 0, max(math.ceil(len(chart.labels) * (_TICK_CELLS + 1) / canvas.width), 1)
    if chart.labels[0].isdecimal():  # round numbers
        power = 10 ** math.floor(math.log10(step))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= step)
        first = -int(chart.labels[0]) % step
    places = list(range(first, len(chart.labels), step))
    labels = [fit_label(chart.labels[place], min(cells(chart.labels[place]), _TICK_CELLS)) for place in places]
    figure.ruler("x").ticks(places, labels)
    if chart.logarithmic:
        powers = list(range(math.ceil(heights.max()) + 1))
        figure.ruler("y").ticks(powers, [f"1e{_floor(chart.values) + power}" for power in powers])
    else:
        _mark_values(canvas, (0.0, float(heights.min()), float(heights.max())))


def _heights(chart: BarChart) -> Floats:
    values = _drawable(chart.values)
    if not chart.logarithmic:
        return values
    floor = _floor(chart.values)
    return np.log10(values, out=np.full(values.shape, float(floor)), where=values > 0) - floor


def _floor(values: tuple[float, ...]) -> int:
    """The power of ten below the smallest value above 0, where bars on a log scale begin."""
    drawable = _drawable(values)
    positive = drawable[drawable > 0]
    return math.ceil(math.log10(positive.min())) - 1 if positive.size else 0


def _draw_histogram(canvas: _Canvas, chart: Histogram) -> None:
    if not chart.counts:
        return
    _draw_steps(canvas, np.array(chart.edges), np.array(chart.counts, dtype=np.float64))
    _mark_x(canvas, chart.edges[0], chart.edges[-1])
    _mark_values(canvas, (0.0, *map(float, chart.counts)), whole=True)


def _draw_steps(canvas: _Canvas, edges: Floats, heights: Floats, marked: int | None = None) -> None:
    """Bars without gaps, each from its edge to the next; plotext's own bars leave gaps between narrow ones."""
    figure, first, last = canvas.figure, float(edges[0]), float(edges[-1])
    lowest, highest = float(heights.min()), float(heights.max())
    figure.axes(style="rounded")
    figure.ruler("x").lim(first, last)
    figure.ruler("y").lim(min(0.0, lowest), max(0.0, highest) or 1.0)
    if lowest < 0:
        figure.draw(figure.segment((first, last), (0, 0), marker="─"))  # the line of 0
    samples = np.linspace(first, last, 2 * canvas.width, endpoint=False)
    bars = np.clip(np.searchsorted(edges, samples, side="right") - 1, 0, heights.size - 1)
    tops = heights[bars]
    for is_marked in (False, True):
        chosen = ((bars == marked) == is_marked) & (tops != 0)
        if chosen.any():
            marker = _bar_marker(is_marked, canvas.inks, fine=True)
            _add(canvas, figure.signal(samples[chosen].tolist(), tops[chosen].tolist(), marker=marker).fillx())


def _add(canvas: _Canvas, signal: Any) -> None:
    """Draw many points, which have their colours: plotext would look at each for those that others should not get."""
    signal._get_unique_pixels = list
    canvas.figure.draw(signal)


_DRAW: dict[type[Any], Callable[[_Canvas, Any], None]] = {
    LineChart: _draw_lines,
    BarChart: _draw_bars,
    Histogram: _draw_histogram,
}


def _drawable(values: Iterable[float]) -> Floats:
    """Heights of numbers on the chart: 0 where one is not finite, at most the largest that plotext can scale."""
    given = np.array([*values], dtype=np.float64)
    return np.clip(np.where(np.isfinite(given), given, 0.0), -_LARGEST, _LARGEST)


def _bar_marker(marked: bool, inks: Inks, *, fine: bool = False) -> Any:  # noqa: FBT001
    color = inks.marked if marked else inks.bar
    if color is None:
        return "█" if marked else "▒"
    return _marker("hd" if fine else "█", color)


def _marker(symbol: str, color: ColorTriplet) -> Any:
    import plotext

    return plotext.marker(symbol, tuple(color))
