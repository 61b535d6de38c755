"""Figures in SVG 1.1: a view as a heat map with a legend, a chart with round marks and the names of its curves.

The ramps are monotone in lightness or symmetric around a pale 0, and need no telling of red from green.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError
from tui_transformer.files import write_whole
from tui_transformer.records import dataclass
from tui_transformer.report.numbers import full_shape, number_text
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.views.charts import BarChart, Chart, Histogram, LineChart, Series, marks, powers
from tui_transformer.views.numbers import digits_apart
from tui_transformer.views.step_view import Labels, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Axis, Scale, ScaleKind, Values, View, color, contrast

LARGEST = 1 << 16
"""Cells of the largest heat map."""

LEVELS, LABEL_CELLS = 65, 16
GLYPH, LINE = 6.7, 14
"""Width of a character and height of a line, in pixels, of the 11-pixel monospaced labels."""

MARGIN, LEGEND_WIDTH, LEGEND_BAR = 16, 96, 12
NUMBERED_CELLS, NUMBERED_HEIGHT, MASKED = 1024, 24, "#9a9a9a"
FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11"'
BACKGROUND = '<rect width="100%" height="100%" fill="#ffffff"/>'
SEQUENCES = {"tokens": "input.ids", "decoder tokens": "decoder.input.ids"}
"""The inputs that token sequences are."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A matrix of a trace as a heat map with labels, numbers where they fit, and a legend; notebooks show it."""

    view: View

    @property
    def svg(self) -> str:
        """As SVG 1.1; texts are escaped."""
        return view_svg(self.view)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        rows, columns = self.view.shape
        return f"<Figure of {visible(self.view.title)}: {rows} × {columns}>"

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file; InputError where it cannot be, and the old file is as it was."""
        write_whole(Path(path), self.svg.encode())


def figure(trace: Trace, name: str, head: int = 0, *, item: int | None = None) -> Figure:
    """A step or weight (of one head, where it has heads) of one sentence as a heat map.

    Raises:
        InputError: There is no such step or head, or it has too many cells for a figure.
    """
    item = item_of(trace, item)
    words = dict(zip(SEQUENCES, (trace.word, trace.target_word), strict=True))
    sequences = {
        sequence: tuple(words[sequence](int(token)) for token in trace.givens[given][item])
        for sequence, given in SEQUENCES.items()
        if given in trace.givens
    }
    labels = Labels(sequences, trace.target_word, trace.word)
    return Figure(view_of(trace, trace.program.named(name), labels, head=head, item=item))


def document(width: float, height: float, parts: Iterable[str], ink: str = "#1a1a1a") -> str:
    """A whole SVG of these parts."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT} fill="{ink}">', *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, *, anchor: str = "start", turn: int = 0, more: str = "") -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}{more}>{html.escape(visible(text))}</text>'


def end_of(x: float, *texts: str, glyph: float = GLYPH) -> float:
    """The width of a figure in which the longest of some texts that begin at a place ends."""
    return x + glyph * max(cells(visible(text)) for text in texts) + MARGIN


# Heat maps


@dataclass(frozen=True)
class _Layout:
    """Places in pixels: the corner of the first cell, and the size of a cell."""

    left: float
    top: float
    width: float
    height: float
    rows: int
    columns: int

    @property
    def right(self) -> float:
        return self.left + self.width * self.columns

    @property
    def bottom(self) -> float:
        return self.top + self.height * self.rows


def view_svg(view: View) -> str:
    """A view as a heat map in the colours of the range of its values; InputError where it has too many cells."""
    if math.prod(view.shape) > LARGEST:
        raise InputError(
            f"{view.name} is {shape_text(view.shape)}: a figure has at most {LARGEST:,} cells, use CSV or NPZ instead"
        )
    values = view.window(range(view.rows.size), range(view.columns.size))
    scale = scale_for(view.kind, *tile_extremes(values, shares=view.shares))
    numbered = values.size <= NUMBERED_CELLS and values.shape[1] <= 32
    write = number_text(values)
    layout = _layout(view, max(len(write(value)) for value in values.ravel().tolist()) if numbered else 0)
    shown = np.isfinite(values)
    position = scale.position(np.where(shown, values, 0.0).astype(np.float64))
    levels = np.where(shown, np.rint(position * (LEVELS - 1)), -1).astype(np.int64)
    parts = [BACKGROUND, *_heading(view, layout), *_squares(levels, scale.kind, layout)]
    if numbered:
        for (row, column), value in np.ndenumerate(values):
            x, y = layout.left + (column + 0.5) * layout.width, layout.top + (row + 0.5) * layout.height + 4
            ink = f' fill="{contrast(_fill(scale.kind, int(levels[row, column])))}"'
            parts.append(_text(x, y, write(value), anchor="middle", more=ink))
    absent = view.absent_in(values), "∞" * bool(np.isposinf(values).any())
    said, beyond = ", ".join(filter(None, absent)), f"beyond: to {scale.farthest:.4g}" if scale.farthest else ""
    marked = scale.high, (scale.high + scale.low) / 2, scale.low
    ends = [f"{value:.{digits_apart(marked, 4)}g}" for value in marked]
    parts += _legend(scale, layout, ends, said, beyond)
    legend = max(end_of(LEGEND_BAR + 6, said, *ends), end_of(0, beyond), LEGEND_WIDTH)
    width = max(layout.right + MARGIN + legend, end_of(MARGIN, _title(view), view.formula), 420)
    return document(width, max(layout.bottom, layout.top + 8 * LINE) + MARGIN, parts)


def _layout(view: View, number: int) -> _Layout:
    """Cells as large as their numbers, or as a figure of about 900 pixels allows."""

    def side(count: int, other: int) -> float:
        """A square cell's side, or the height of a line where there are few in this direction."""
        return max(min(max(900 / max(count, other), 2), 24), min(LINE, 300 / count))

    def label_cells(axis: Axis) -> int:
        return min(LABEL_CELLS, max(cells(axis.label(index)) for index in range(axis.size))) if axis.name else 0

    rows, columns = view.shape
    width, height = (number * GLYPH + 8, NUMBERED_HEIGHT) if number else (side(columns, rows), side(rows, columns))
    left = MARGIN + LINE + GLYPH * (label_cells(view.rows) + 1)
    top = MARGIN + 4 * LINE + GLYPH * (label_cells(view.columns) + 1)
    return _Layout(left, top, width, height, rows, columns)


def _title(view: View) -> str:
    head = "" if view.head is None else f" · head {view.head}"
    return f"{view.title}{head} · {shape_text(full_shape(view))}"


def _heading(view: View, layout: _Layout) -> Iterator[str]:
    """Title, formula, the names of the axes, and the labels that have room: all, or every so many."""
    yield f"<title>{html.escape(visible(_title(view)))}</title>"
    yield _text(MARGIN, MARGIN + LINE / 2, _title(view), more=' font-weight="bold"')
    if view.formula:
        yield _text(MARGIN, MARGIN + LINE * 1.5, view.formula)
    if view.rows.name:
        yield _text(MARGIN + LINE / 2, (layout.top + layout.bottom) / 2, view.rows.name, anchor="middle", turn=-90)
        for row in range(0, view.rows.size, max(1, math.ceil(LINE / layout.height))):
            y = layout.top + (row + 0.5) * layout.height + 4
            yield _text(layout.left - 6, y, fit_label(view.rows.label(row), LABEL_CELLS).strip(), anchor="end")
    if view.columns.name:
        yield _text(layout.left, MARGIN + LINE * 3, f"{view.columns.name} →")
        for column in range(0, view.columns.size, max(1, math.ceil(LINE / layout.width))):
            x = layout.left + (column + 0.5) * layout.width + 4
            yield _text(x, layout.top - 6, fit_label(view.columns.label(column), LABEL_CELLS).strip(), turn=-90)


def _squares(levels: Values, kind: ScaleKind, layout: _Layout) -> Iterator[str]:
    """One path for all the cells of a colour."""
    box = f"h{layout.width:.2f}v{layout.height:.2f}h{-layout.width:.2f}z"
    for level in np.unique(levels).tolist():
        squares = "".join(
            f"M{layout.left + column * layout.width:.2f} {layout.top + row * layout.height:.2f}{box}"
            for row, column in np.argwhere(levels == level).tolist()
        )
        yield f'<path fill="{_fill(kind, level)}" shape-rendering="crispEdges" d="{squares}"/>'


def _fill(kind: ScaleKind, level: int) -> str:
    return MASKED if level < 0 else color(kind, level / (LEVELS - 1))


def _legend(scale: Scale, layout: _Layout, ends: Sequence[str], absent: str, beyond: str) -> Iterator[str]:
    """A bar with the ends and the middle of the scale, and the colour of absent cells where there are any."""
    x, height, steps = layout.right + MARGIN, 5 * LINE, 30
    for step in range(steps):
        y = layout.top + height * step / steps
        ink = color(scale.kind, 1 - step / (steps - 1))
        yield f'<rect x="{x:.1f}" y="{y:.2f}" width="{LEGEND_BAR}" height="{height / steps + 0.3:.2f}" fill="{ink}"/>'
    for place, text in enumerate(ends):
        yield _text(x + LEGEND_BAR + 6, layout.top + height * place / 2 + 4, text)
    if absent:
        y = layout.top + height + LINE
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{LEGEND_BAR}" height="{LEGEND_BAR}" fill="{MASKED}"/>'
        yield _text(x + LEGEND_BAR + 6, y + 10, absent)
    if beyond:
        yield _text(x, layout.top + height + LINE * (2 + bool(absent)), beyond)


# Charts

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 56, 64
NAMES_LINE, MOST_LABELS = 15, 40
INKS = ("#2f6bb3", "#b8640f", "#1b7f5c", "#8a3f9a", "#a33232", "#4a5a6a", "#6b7a0f", "#0f6f7a")
"""Colours that are told apart in grey, too; after them curves are dashed."""

MARKED, BAR, AXIS, GRID = "#b8640f", "#2f6bb3", "#1a1a1a", "#e4e4e4"
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class _Plane:
    """The rectangle of a chart: from values to pixels."""

    low: float
    high: float
    bottom: float
    top: float

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.low) / ((self.high - self.low) or 1.0)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.bottom) / ((self.top - self.bottom) or 1.0)


def chart_svg(chart: Chart) -> str:
    """The figure of a chart."""
    places = _name_places(chart.series) if isinstance(chart, LineChart) and chart.series else [(0, 0.0)]
    title = f"<title>{html.escape(visible(chart.title))}</title>"
    heading = _text(LEFT, 24, chart.title, more=' font-weight="bold"')
    height, ends = float(HEIGHT + NAMES_LINE * places[-1][0]), [end_of(LEFT, chart.title), float(WIDTH)]
    if isinstance(chart, BarChart):  # whose names lean: the longest ends lowest
        longest = max(map(cells, _bar_labels(chart).values()), default=0)
        height = max(HEIGHT, HEIGHT - BOTTOM + 20 + math.sqrt(0.5) * GLYPH * longest)
    elif isinstance(chart, Histogram):
        ends.append(end_of(LEFT, chart.note))
    else:
        ends += end_of(MARGIN, chart.x_label), *(end_of(LEFT + 24, each.label) for each in chart.series)
    return document(max(ends), height, [title, BACKGROUND, heading, *_DRAW[type(chart)](chart)])


def _line(x: float, y: float, to_x: float, to_y: float, ink: str = AXIS) -> str:
    return f'<path d="M{x:.2f} {y:.2f}L{to_x:.2f} {to_y:.2f}" stroke="{ink}" fill="none"/>'


def _y_axis(plane: _Plane, texts: dict[float, str], label: str = "") -> Iterator[str]:
    for place, text in texts.items():
        y = plane.y(place)
        yield _line(LEFT, y, WIDTH - RIGHT, y, GRID)
        yield _text(LEFT - 6, y + 4, text, anchor="end")
    yield _line(LEFT, TOP, LEFT, HEIGHT - BOTTOM)
    if label:
        yield _text(18, (TOP + HEIGHT - BOTTOM) / 2, label, anchor="middle", turn=-90)


def _x_axis(plane: _Plane, texts: dict[float, str], label: str = "") -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for place, text in texts.items():
        x = plane.x(place)
        yield _line(x, bottom, x, bottom + 4)
        yield _text(x, bottom + 17, text, anchor="middle")
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom)
    if label:
        half = GLYPH * cells(visible(label)) / 2
        middle = max(min((LEFT + WIDTH - RIGHT) / 2, WIDTH - MARGIN - half), MARGIN + half)
        yield _text(middle, bottom + 34, label, anchor="middle")


def _ends(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    return (low, high) if high > low else (min(low, 0.0), max(high, 0.0) or 1.0)


def _curves(chart: LineChart) -> Iterator[str]:
    series = [each.logarithms for each in chart.series] if chart.logarithmic else list(chart.series)
    low, high = _ends([x for each in series for x in each.x])
    bottom, top = _ends([y for each in series for y in each.y])
    plane = _Plane(low, high, bottom, top)
    yield from _y_axis(plane, powers(bottom, top) if chart.logarithmic else marks(bottom, top, 8), chart.y_label)
    yield from _x_axis(plane, marks(low, high, 10, whole=chart.counted), chart.x_label)
    if not chart.logarithmic and bottom < 0 < top:
        yield _line(LEFT, plane.y(0.0), WIDTH - RIGHT, plane.y(0.0), "#9a9a9a")
    for index, each in enumerate(series):
        yield from _curve(each, plane, _stroke(index, 'stroke-width="1.5" fill="none"'))
    for index, (line, x) in enumerate(_name_places(chart.series)):
        y, stroke = HEIGHT - 12 + line * NAMES_LINE, _stroke(index, 'stroke-width="2"')
        sample = f'<path d="M{x:.1f} {y - 4}h18" {stroke}/>'
        dot = f'<circle cx="{x + 9:.1f}" cy="{y - 4}" r="4" fill="{MARKED}"/>'
        yield dot if len(chart.series[index].x) == 1 else sample
        yield _text(x + 24, y, chart.series[index].label)


def _curve(series: Series, plane: _Plane, stroke: str) -> Iterator[str]:
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
        yield f'<path d="{path}" {stroke}/>'


def _stroke(index: int, more: str) -> str:
    dash = DASHES[index // len(INKS) % len(DASHES)]
    return f'stroke="{INKS[index % len(INKS)]}" {more}' + (f' stroke-dasharray="{dash}"' if dash else "")


def _name_places(series: Sequence[Series]) -> list[tuple[int, float]]:
    """Line and x of the name of every curve, in as many lines as it takes."""
    places, line, x = list[tuple[int, float]](), 0, float(LEFT)
    for each in series:
        width = 44 + GLYPH * cells(visible(each.label))
        if x + width > WIDTH - RIGHT and x > LEFT:
            line, x = line + 1, float(LEFT)
        places.append((line, x))
        x += width
    return places


def _bars(chart: BarChart) -> Iterator[str]:
    values, floor = list(chart.values), 0.0
    if chart.logarithmic:
        values = [math.log10(value) if value > 0 else math.nan for value in values]
        floor = math.ceil(min((value for value in values if math.isfinite(value)), default=1.0)) - 1.0
    bottom, top = _ends([*values, floor])
    plane = _Plane(-0.5, len(values) - 0.5, bottom, top)
    yield from _y_axis(plane, powers(bottom, top) if chart.logarithmic else marks(bottom, top, 8))
    for index, value in enumerate(values):
        yield _bar(plane, index - 0.42, index + 0.42, value, floor, MARKED if index == chart.marked else BAR)
    yield _line(LEFT, plane.y(floor), WIDTH - RIGHT, plane.y(floor))
    for index, label in _bar_labels(chart).items():
        yield _text(plane.x(index) + 4, HEIGHT - BOTTOM + 10, label, anchor="end", turn=-45)


def _bar_labels(chart: BarChart) -> dict[int, str]:
    """Those that have room, by the number of their bar."""
    shown = range(0, len(chart.labels), max(math.ceil(len(chart.labels) / MOST_LABELS), 1))
    return {index: fit_label(chart.labels[index], LABEL_CELLS).strip() for index in shown}


def _bar(plane: _Plane, left: float, right: float, value: float, floor: float, fill: str = BAR) -> str:
    if not math.isfinite(value):
        return _text(plane.x((left + right) / 2), plane.y(floor) - 4, "∞" if value > 0 else "×", anchor="middle")
    x, width = plane.x(left), plane.x(right) - plane.x(left)
    y, height = min(plane.y(value), plane.y(floor)), abs(plane.y(value) - plane.y(floor))
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{fill}"/>'


def _histogram(chart: Histogram) -> Iterator[str]:
    if not chart.counts:
        return
    plane = _Plane(*_ends(chart.edges), *_ends([0.0, *map(float, chart.counts)]))
    yield from _y_axis(plane, marks(plane.bottom, plane.top, 8, whole=True), "count")
    for left, right, count in zip(chart.edges, chart.edges[1:], chart.counts, strict=False):
        yield _bar(plane, left, right, float(count), 0.0)
    yield from _x_axis(plane, marks(plane.low, plane.high, 10), "value")
    yield _text(LEFT, 42, chart.note)


_DRAW: dict[type[Any], Callable[[Any], Iterator[str]]] = {LineChart: _curves, BarChart: _bars, Histogram: _histogram}
