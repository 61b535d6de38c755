"""A chart as a figure in SVG 1.1: axes with round marks, a baseline, and the names of all curves."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tui_transformer.text.display import fit, visible
from tui_transformer.views.charts import BarChart, Chart, Histogram, LineChart, Series
from tui_transformer.views.ticks import tick_texts, ticks

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 56, 64
LINE, GLYPH, LABEL_CELLS, MOST_LABELS = 15, 6.7, 16, 40
INKS = ("#2f6bb3", "#b8640f", "#1b7f5c", "#8a3f9a", "#a33232", "#4a5a6a", "#6b7a0f", "#0f6f7a")
"""Colours that are told apart in grey, too; after them curves are dashed."""

MARKED, BAR, AXIS, GRID = "#b8640f", "#2f6bb3", "#1a1a1a", "#e4e4e4"
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Plane:
    """The rectangle of a chart: from values to pixels."""

    low: float
    high: float
    bottom: float
    top: float

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.low) / ((self.high - self.low) or 1.0)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.bottom) / ((self.top - self.bottom) or 1.0)


def render(chart: Chart) -> str:
    """The figure of a chart."""
    parts = list(_DRAW[type(chart)](chart))
    lines = max(_legend_lines(chart), 1)
    height = HEIGHT + LINE * (lines - 1)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11" fill="#1a1a1a">\n'
        f'<title>{html.escape(visible(chart.title))}</title>\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
    )
    title = _text(LEFT, 24, chart.title, more=' font-weight="bold"')
    return head + "\n".join([title, *parts]) + "\n</svg>\n"


def _text(x: float, y: float, text: str, *, anchor: str = "start", turn: int = 0, more: str = "") -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}{more}>{html.escape(visible(text))}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, ink: str = AXIS) -> str:
    return f'<path d="M{x:.2f} {y:.2f}L{to_x:.2f} {to_y:.2f}" stroke="{ink}" fill="none"/>'


# Axes


def _y_axis(plane: Plane, texts: dict[float, str], label: str = "") -> Iterator[str]:
    for place, text in texts.items():
        y = plane.y(place)
        yield _line(LEFT, y, WIDTH - RIGHT, y, GRID)
        yield _text(LEFT - 6, y + 4, text, anchor="end")
    yield _line(LEFT, TOP, LEFT, HEIGHT - BOTTOM)
    if label:
        yield _text(18, (TOP + HEIGHT - BOTTOM) / 2, label, anchor="middle", turn=-90)


def _x_axis(plane: Plane, texts: dict[float, str], label: str = "") -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for place, text in texts.items():
        x = plane.x(place)
        yield _line(x, bottom, x, bottom + 4)
        yield _text(x, bottom + 17, text, anchor="middle")
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom)
    if label:
        yield _text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, label, anchor="middle")


def _marks(low: float, high: float, most: int, *, whole: bool = False) -> dict[float, str]:
    places = ticks(low, high, most, whole=whole)
    return dict(zip(places, tick_texts(places), strict=True))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    return (low, high) if high > low else (min(low, 0.0), max(high, 0.0) or 1.0)


# Curves


def _lines(chart: LineChart) -> Iterator[str]:
    series = [each.logarithms for each in chart.series] if chart.logarithmic else list(chart.series)
    low, high = _ends([x for each in series for x in each.x])
    bottom, top = _ends([y for each in series for y in each.y])
    plane = Plane(low, high, bottom, top)
    y = _powers(bottom, top) if chart.logarithmic else _marks(bottom, top, 8)
    yield from _y_axis(plane, y, chart.y_label)
    yield from _x_axis(plane, _marks(low, high, 10, whole=chart.counted), chart.x_label)
    if not chart.logarithmic and bottom < 0 < top:
        yield _line(LEFT, plane.y(0.0), WIDTH - RIGHT, plane.y(0.0), "#9a9a9a")
    for index, each in enumerate(series):
        yield from _curve(each, plane, index)
    yield from _legend(chart)


def _powers(bottom: float, top: float) -> dict[float, str]:
    return {float(power): f"1e{power}" for power in range(math.ceil(bottom), math.floor(top) + 1)}


def _curve(series: Series, plane: Plane, index: int) -> Iterator[str]:
    """Its points joined, with holes where a value is not finite; a single point is a dot."""
    path, pen = "", "M"
    for x, y in zip(series.x, series.y, strict=True):
        if math.isfinite(x) and math.isfinite(y):
            path, pen = f"{path}{pen}{plane.x(x):.2f} {plane.y(y):.2f}", "L"
        else:
            pen = "M"
    if len(series.x) == 1 and path:
        yield f'<circle cx="{plane.x(series.x[0]):.2f}" cy="{plane.y(series.y[0]):.2f}" r="4" fill="{MARKED}"/>'
    elif path:
        yield f'<path d="{path}" stroke="{_ink(index)}" stroke-width="1.5" fill="none"{_dash(index)}/>'


def _ink(index: int) -> str:
    return INKS[index % len(INKS)]


def _dash(index: int) -> str:
    dash = DASHES[index // len(INKS) % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _legend(chart: LineChart) -> Iterator[str]:
    """The name of every curve, in as many lines as it takes."""
    for index, (line, x) in enumerate(_legend_places(chart)):
        series, y = chart.series[index], HEIGHT - 12 + line * LINE
        sample = f'<path d="M{x:.1f} {y - 4}h18" stroke="{_ink(index)}" stroke-width="2"{_dash(index)}/>'
        dot = f'<circle cx="{x + 9:.1f}" cy="{y - 4}" r="4" fill="{MARKED}"/>'
        yield dot if len(series.x) == 1 else sample
        yield _text(x + 24, y, series.label)


def _legend_places(chart: LineChart) -> Iterator[tuple[int, float]]:
    line, x = 0, float(LEFT)
    for series in chart.series:
        width = 44 + GLYPH * len(visible(series.label))
        if x + width > WIDTH - RIGHT and x > LEFT:
            line, x = line + 1, float(LEFT)
        yield line, x
        x += width


def _legend_lines(chart: Chart) -> int:
    places = list(_legend_places(chart)) if isinstance(chart, LineChart) else []
    return places[-1][0] + 1 if places else 1


# Bars


def _bars(chart: BarChart) -> Iterator[str]:
    count = len(chart.values)
    values = [value if math.isfinite(value) else math.nan for value in chart.values]
    floor = 0.0
    if chart.logarithmic:
        values = [math.log10(value) if value > 0 else math.nan for value in values]
        floor = float(math.floor(min((value for value in values if math.isfinite(value)), default=0.0)))
    bottom, top = _ends([*values, floor])
    plane = Plane(-0.5, count - 0.5, bottom, top)
    yield from _y_axis(plane, _powers(bottom, top) if chart.logarithmic else _marks(bottom, top, 8))
    for index, value in enumerate(values):
        yield from _bar(plane, index - 0.42, index + 0.42, value, floor, marked=index == chart.marked)
    yield _line(LEFT, plane.y(floor), WIDTH - RIGHT, plane.y(floor))
    every = max(math.ceil(count / MOST_LABELS), 1)
    for index in range(0, count, every):
        label = fit(chart.labels[index], LABEL_CELLS).strip()
        yield _text(plane.x(index) + 4, HEIGHT - BOTTOM + 10, label, anchor="end", turn=-45)


def _bar(plane: Plane, left: float, right: float, value: float, floor: float, *, marked: bool = False) -> Iterator[str]:
    if not math.isfinite(value):
        yield _text(plane.x((left + right) / 2), plane.y(floor) - 4, "×", anchor="middle")
        return
    x, width = plane.x(left), plane.x(right) - plane.x(left)
    y, height = min(plane.y(value), plane.y(floor)), abs(plane.y(value) - plane.y(floor))
    fill = MARKED if marked else BAR
    yield f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{fill}"/>'


def _histogram(chart: Histogram) -> Iterator[str]:
    if not chart.counts:
        return
    plane = Plane(*_ends(chart.edges), *_ends([0.0, *map(float, chart.counts)]))
    yield from _y_axis(plane, _marks(plane.bottom, plane.top, 8, whole=True), "count")
    for left, right, count in zip(chart.edges, chart.edges[1:], chart.counts, strict=False):
        yield from _bar(plane, left, right, float(count), 0.0)
    yield from _x_axis(plane, _marks(plane.low, plane.high, 10), "value")
    yield _text(LEFT, 42, chart.note)


_DRAW: dict[type[Any], Callable[[Any], Iterator[str]]] = {LineChart: _lines, BarChart: _bars, Histogram: _histogram}
