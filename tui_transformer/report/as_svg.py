"""A view as a figure: a heat map with labels, numbers where they fit, and a legend, as SVG 1.1.

The ramps are monotone in lightness or symmetric around a pale 0, and need no telling of red from green.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.errors import InputError
from tui_transformer.report.numbers import NumberText, full_shape, number_text
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.views.ramps import RAMPS
from tui_transformer.views.step_view import scale_for, tile_extremes
from tui_transformer.views.view import Axis, Scale, ScaleKind, Values, View

LARGEST = 1 << 16
"""Cells of the largest figure."""

LEVELS = 65
GLYPH, LINE = 6.7, 14
"""Width of a character and height of a line, in pixels, of the 11-pixel monospaced labels."""

LABEL_CELLS = 16
MARGIN, LEGEND_WIDTH, LEGEND_BAR = 16, 96, 12
NUMBERED_CELLS, NUMBERED_HEIGHT = 1024, 24
MASKED = "#9a9a9a"


@dataclass(frozen=True)
class Layout:
    """Places in pixels: the corner of the first cell, and the size of a cell."""

    left: float
    top: float
    width: float
    height: float
    rows: int
    columns: int

    @property
    def right(self) -> float:
        """The right edge of the cells."""
        return self.left + self.width * self.columns

    @property
    def bottom(self) -> float:
        """The lower edge of the cells."""
        return self.top + self.height * self.rows


def render(view: View, scale: Scale | None = None) -> str:
    """The figure.

    Args:
        view: At most `LARGEST` cells.
        scale: What the colours stand for; by default the range of these values.

    Raises:
        InputError: There are too many cells for a figure.
    """
    if math.prod(view.shape) > LARGEST:
        raise InputError(
            f"{view.name} is {shape_text(view.shape)}: a figure has at most {LARGEST:,} cells, use CSV or NPZ instead"
        )
    values = view.window(range(view.rows.size), range(view.columns.size))
    scale = scale or scale_for(view.kind, *tile_extremes(values))
    write = number_text(values)
    numbered = values.size <= NUMBERED_CELLS and values.shape[1] <= 32
    layout = _layout(view, max(len(write(value)) for value in values.ravel().tolist()) if numbered else 0)
    parts = [*_title(view), *_axes(view, layout), *_cells(values, scale, layout)]
    if numbered:
        parts += _numbers(values, scale, write, layout)
    return _document([*parts, *_legend(values, scale, layout)], layout)


def _layout(view: View, number: int) -> Layout:
    """Cells as large as their numbers, or as a figure of about 900 pixels allows."""
    rows, columns = view.shape
    width, height = (number * GLYPH + 8, NUMBERED_HEIGHT) if number else (_side(columns, rows), _side(rows, columns))
    left = MARGIN + LINE + GLYPH * (_label_cells(view.rows) + 1)
    top = MARGIN + 4 * LINE + GLYPH * (_label_cells(view.columns) + 1)
    return Layout(left, top, width, height, rows, columns)


def _side(count: int, other: int) -> float:
    """A square cell's side, or the height of a line where there are few in this direction."""
    return max(min(max(900 / max(count, other), 2), 24), min(LINE, 300 / count))


def _label_cells(axis: Axis) -> int:
    return min(LABEL_CELLS, max(cells(axis.label(index)) for index in range(axis.size))) if axis.name else 0


def _document(parts: list[str], layout: Layout) -> str:
    width = max(layout.right + LEGEND_WIDTH + MARGIN, 420)
    height = max(layout.bottom, layout.top + 8 * LINE) + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="11" fill="#1a1a1a">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def _text(x: float, y: float, text: str, *, anchor: str = "start", turn: int = 0, more: str = "") -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    words = html.escape(visible(text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}{more}>{words}</text>'


def _title(view: View) -> Iterator[str]:
    head = "" if view.head is None else f" · head {view.head}"
    title = f"{view.title}{head} · {shape_text(full_shape(view))}"
    yield f"<title>{html.escape(visible(title))}</title>"
    yield _text(MARGIN, MARGIN + LINE / 2, title, more=' font-weight="bold"')
    if view.formula:
        yield _text(MARGIN, MARGIN + LINE * 1.5, view.formula)


def _axes(view: View, layout: Layout) -> Iterator[str]:
    """The names of the axes, and the labels that have room."""
    if view.rows.name:
        middle = (layout.top + layout.bottom) / 2
        yield _text(MARGIN + LINE / 2, middle, view.rows.name, anchor="middle", turn=-90)
    if view.columns.name:
        yield _text(layout.left, MARGIN + LINE * 3, f"{view.columns.name} →")
    for row in _labelled(view.rows, layout.height):
        y = layout.top + (row + 0.5) * layout.height + 4
        yield _text(layout.left - 6, y, fit(view.rows.label(row), LABEL_CELLS).strip(), anchor="end")
    for column in _labelled(view.columns, layout.width):
        x = layout.left + (column + 0.5) * layout.width + 4
        yield _text(x, layout.top - 6, fit(view.columns.label(column), LABEL_CELLS).strip(), turn=-90)


def _labelled(axis: Axis, size: float) -> range:
    """The indices that get a label: all where a line fits into a cell, else every so many."""
    return range(0, axis.size, max(1, math.ceil(LINE / size))) if axis.name else range(0)


def _cells(values: Values, scale: Scale, layout: Layout) -> Iterator[str]:
    """One path for all the cells of a colour."""
    levels = _levels(values, scale)
    for level in np.unique(levels).tolist():
        places = np.argwhere(levels == level).tolist()
        fill = MASKED if level < 0 else color(scale.kind, level / (LEVELS - 1))
        yield f'<path fill="{fill}" shape-rendering="crispEdges" d="{_squares(places, layout)}"/>'


def _squares(places: list[list[int]], layout: Layout) -> str:
    box = f"h{layout.width:.2f}v{layout.height:.2f}h{-layout.width:.2f}z"
    return "".join(
        f"M{layout.left + column * layout.width:.2f} {layout.top + row * layout.height:.2f}{box}"
        for row, column in places
    )


def _levels(values: Values, scale: Scale) -> Values:
    position = scale.position(np.where(np.isfinite(values), values, 0.0).astype(np.float64))
    return np.where(np.isfinite(values), np.rint(position * (LEVELS - 1)), -1).astype(np.int64)


def color(kind: ScaleKind, position: float) -> str:
    """The colour at a position from 0 to 1 of a ramp, between its two nearest colours."""
    ramp = RAMPS[kind]
    place = position * (len(ramp) - 1)
    low = min(int(place), len(ramp) - 2)
    pairs = zip(_channels(ramp[low]), _channels(ramp[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def _channels(code: str) -> tuple[int, int, int]:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


def _ink(fill: str) -> str:
    """Black or white, whichever is easier to read (relative luminance, WCAG 2)."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in _channels(fill))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


def _numbers(values: Values, scale: Scale, write: NumberText, layout: Layout) -> Iterator[str]:
    levels = _levels(values, scale)
    for (row, column), value in np.ndenumerate(values):
        level = int(levels[row, column])
        fill = MASKED if level < 0 else color(scale.kind, level / (LEVELS - 1))
        x = layout.left + (column + 0.5) * layout.width
        y = layout.top + (row + 0.5) * layout.height + 4
        yield _text(x, y, write(value), anchor="middle", more=f' fill="{_ink(fill)}"')


def _legend(values: Values, scale: Scale, layout: Layout) -> Iterator[str]:
    """A bar with the ends and the middle of the scale, and the colour of masked cells where there are any."""
    x, height, steps = layout.right + MARGIN, 5 * LINE, 30
    for step in range(steps):
        y = layout.top + height * step / steps
        fill = color(scale.kind, 1 - step / (steps - 1))
        yield f'<rect x="{x:.1f}" y="{y:.2f}" width="{LEGEND_BAR}" height="{height / steps + 0.3:.2f}" fill="{fill}"/>'
    for share in (0.0, 0.5, 1.0):
        value = scale.high + (scale.low - scale.high) * share
        yield _text(x + LEGEND_BAR + 6, layout.top + height * share + 4, f"{value:.4g}")
    if not np.isfinite(values).all():
        y = layout.top + height + LINE
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{LEGEND_BAR}" height="{LEGEND_BAR}" fill="{MASKED}"/>'
        yield _text(x + LEGEND_BAR + 6, y + 10, "masked")
