"""A row times a column, bars, curves: the inside of a cell as lines, each kind of part by one function."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from rich.style import Style
from rich.text import Text

from tui_transformer.engine.explanation import Floats, Operand
from tui_transformer.explorer.widgets.arcs import Dots
from tui_transformer.explorer.widgets.labels import Inks
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, fit_label
from tui_transformer.views.inside import parts
from tui_transformer.views.inside.cell import written
from tui_transformer.views.numbers import BarScale, share_bar
from tui_transformer.views.step_view import scale_for
from tui_transformer.views.view import around

NUMBER = 9
"""Columns of a number."""

LABEL = 14
BAR = 16
CURVE_LINES = 9
TURN_LINES = 11


@dataclass(frozen=True)
class Line:
    """A line, and the cells that following it leads to; `marked` where it is the line of the cell itself."""

    text: Text
    target: Operand | None = None
    second: Operand | None = None
    marked: bool = False


@dataclass(frozen=True)
class Paint:
    """Styles on one terminal, in so many columns."""

    inks: Inks
    surface: Surface
    page: Style
    width: int

    @cached_property
    def _colors(self) -> Palette:
        return palette("diverging", self.surface, self.page, 33)

    def heat(self, values: Floats) -> list[Style]:
        """A style for each of several numbers that are compared; plain where there is no colour."""
        if not self._colors.has_color:
            return [self.inks.plain] * len(values)
        reach = float(np.abs(np.where(np.isfinite(values), values, 0.0)).max(initial=0.0))
        scale = scale_for("diverging", -reach, reach)
        levels = self._colors.levels(values, scale).tolist()
        return [self._colors.styles[level] if level < len(self._colors.styles) else self.inks.quiet for level in levels]


def lines_of(inside: parts.Inside, paint: Paint) -> list[Line]:
    """All lines: what the parts are, from the operands down to the cell, and how exact it is."""
    plain, quiet, accent = paint.inks.plain, paint.inks.quiet, paint.inks.accent
    found, bold = inside.explanation, plain + Style(bold=True)
    edited = ("  set by hand, ablated or patched", accent) if found.edited else ("", quiet)
    heading = [(inside.cell or found.name, bold), (f"   {written(found.stored)}", accent), edited]
    lines = [Line(_line(*heading))]
    for before, part in zip((None, *inside.parts), inside.parts, strict=False):
        follows = isinstance(part, parts.Number | parts.Equation) and isinstance(before, parts.Number | parts.Equation)
        if not (follows or isinstance(part, parts.Note)):
            lines.append(Line(Text("", plain)))
        lines += _DRAW[type(part)](part, paint)
    numbers = zip(("recomputed", "stored"), (found.recomputed, found.stored), strict=True)
    exact = "   ".join(f"{name} {written(value, 9)}" for name, value in numbers)
    return [*lines, Line(Text("", plain)), Line(Text(f"{exact}   difference {written(found.difference, 2)}", quiet))]


def _words(part: parts.Note | parts.Equation, paint: Paint) -> Iterator[Line]:
    before, ink = ("", paint.inks.quiet) if isinstance(part, parts.Note) else ("  ", paint.inks.accent)
    for line in textwrap.wrap(part.text, max(paint.width - len(before) - 1, 10)):
        yield Line(Text(f"{before}{line}", ink))


def _number(part: parts.Number, paint: Paint) -> Iterator[Line]:
    name = fit_label(part.name, max(LABEL, min(cells(part.name), paint.width // 2)))
    where = f"{part.source.name.rpartition('.')[2]}{list(part.source.index)}" if part.source is not None else ""
    says = part.note or where
    value = f"{written(part.value):>{NUMBER + 2}}"
    text = _line((f"  {name} ", paint.inks.quiet), (value, paint.inks.plain), (f"  {says}", paint.inks.quiet))
    yield Line(text, part.source)


# A row times a column


def _product(part: parts.Product, paint: Paint) -> Iterator[Line]:
    """Terms at the left, the column above the cell at the right, the row before it below."""
    inks, left = paint.inks, max(paint.width - NUMBER - 6, 0)
    shown = list(part.shown)
    column, row, products = part.column.values[shown], part.row.values[shown], part.products[shown]
    name = fit_label(part.column.name, min(cells(part.column.name), paint.width - 2))
    yield Line(_line((" " * max(paint.width - cells(name) - 1, 0), inks.plain), (name, inks.plain)))
    most = float(np.abs(products[np.isfinite(products)]).max(initial=0.0)) or 1.0
    signed = bool((products < 0).any())
    head = f"{'':>6}{'row':>{NUMBER}}   {'column':>{NUMBER}}   {'product':>{NUMBER}}"
    yield Line(_with_right_side(Text(head, inks.quiet), left, ("│", inks.quiet), ("", inks.plain)))
    styles = paint.heat(column)
    for place, k in enumerate(shown):
        text = Text(f"{fit_label(part.labels[k], 5, 'right')} ", inks.quiet)
        text.append(f"{_short(row[place])} × {_short(column[place])} = ", inks.plain)
        text.append(_short(products[place]), inks.plain).append("  ")
        room = max(min(left - text.cell_len - 2, BAR), 0)
        text.append(_bar(float(products[place]), most, room, signed=signed), inks.quiet)
        text = _with_right_side(text, left, ("│ ", inks.quiet), (_short(column[place]), styles[place]))
        yield Line(text, part.row.sources[place], part.column.sources[place])
    if part.others:
        text = Text(f"{part.others:>5} others together{'':>8}{_short(part.rest):>{NUMBER + 1}}", inks.quiet)
        yield Line(_with_right_side(text, left, ("│ ", inks.quiet), ("…", inks.quiet)))
    yield Line(_with_right_side(Text(part.row.name, inks.plain), left, ("▼", inks.accent), ("", inks.plain)))
    row, text = row[: max((left - 4) // (NUMBER + 1), 1)], Text("", inks.plain)
    for value, style in zip(row, paint.heat(row), strict=True):
        text.append(_short(value), style).append(" ")
    text.append("… " if len(part.row.values) > len(row) else "", inks.quiet)
    text.append("─" * max(left - text.cell_len - 2, 0) + "▶ ", inks.accent)
    yield Line(_with_right_side(text, left, ("", inks.quiet), (f"┃ {_short(part.total)} ┃", inks.accent)))


def _with_right_side(text: Text, left: int, mark: tuple[str, Style], number: tuple[str, Style]) -> Text:
    text.truncate(left, pad=True)
    text.no_wrap = True
    return text.append(*mark).append(*number)


# Tables


def _bars(part: parts.Bars, paint: Paint) -> Iterator[Line]:
    inks = paint.inks
    labels = max((cells(bar.label) for bar in part.bars), default=0)
    width = min(max(labels, cells(part.title), 4), 22 if paint.width < 100 else 2 * LABEL)
    heads = "".join(f" {fit_label(name, NUMBER + 2, 'right')}" for name in part.columns)
    yield Line(Text(f"  {fit_label(part.title, width)}{heads}", inks.quiet))
    last = [bar.values[-1] for bar in part.bars]
    most = max((abs(value) for value in last if math.isfinite(value)), default=0.0) or 1.0
    signed = any(math.isfinite(value) and value < 0 for value in last)
    for bar in part.bars:
        style = inks.accent if bar.marked else inks.plain
        text = Text("▸ " if bar.marked else "  ", inks.accent).append(fit_label(bar.label, width), style)
        for value in bar.values:
            text.append(f" {written(value, 5):>{NUMBER + 2}}", style)
        room = max(min(paint.width - text.cell_len - 3, max(2 * BAR, paint.width // 2)), 0)
        drawn = _bar(bar.values[-1] if math.isfinite(bar.values[-1]) else 0.0, most, room, signed=signed)
        yield Line(text.append(f"  {drawn}", style if bar.marked else inks.quiet), bar.source, None, bar.marked)
    if part.others:
        rest = f", together {written(part.rest, 5)}" if math.isfinite(part.rest) and part.rest else ""
        yield Line(Text(f"  and {part.others:,} more{rest}", inks.quiet))


def _number_rows(part: parts.NumberRows, paint: Paint) -> Iterator[Line]:
    inks, room = paint.inks, max((paint.width - LABEL - 5) // (NUMBER + 1), 1)
    yield Line(Text(f"  {part.title}", inks.quiet))
    marked = next((row.marked for row in part.rows if row.marked is not None), 0)
    columns = around(marked, len(part.rows[0].values), room)
    numbers = "".join(f"{part.rows[0].first + k:>{NUMBER}} " for k in columns)
    yield Line(Text(f"{'':>{LABEL + 4}}{numbers}", inks.quiet))
    for sign, row in zip(part.signs, part.rows, strict=True):
        text = Text(f"{sign:>2} ", inks.accent).append(f"{fit_label(row.name, LABEL)} ", inks.plain)
        values = row.values[columns.start : columns.stop]
        for k, value, style in zip(columns, values, paint.heat(values), strict=True):
            here = k == row.marked
            text.append(_short(value), style + Style(bold=True, underline=True) if here else style)
            text.append("◂" if here else " ", inks.accent)
        yield Line(text, row.source)


def _weighted(part: parts.Weighted, paint: Paint) -> Iterator[Line]:
    """A line a row: its share as a bar, and what it adds to every column; below them the sums."""
    inks, head = paint.inks, LABEL + 19
    room = max((paint.width - head - 2) // (NUMBER + 1), 1)
    columns = around(part.marked, part.rows.shape[1], room)
    numbers = "".join(f"{part.first + k:>{NUMBER}} " for k in columns)
    yield Line(Text(f"  {fit_label(part.title, head - 2)}{numbers}", inks.quiet))
    added = part.shares[:, None] * part.rows[:, columns.start : columns.stop]
    styles = paint.heat(added.reshape(-1))
    for row, (label, share) in enumerate(zip(part.labels, part.shares.tolist(), strict=True)):
        text = Text(f"  {fit_label(label, LABEL)} ", inks.plain)
        text.append(f"{written(share, 3):>8} ", inks.plain).append(f"{share_bar(share, 6)} ", inks.accent)
        for place, k in enumerate(columns):
            text.append(_short(added[row, place]), styles[row * len(columns) + place])
            text.append("◂" if k == part.marked else " ", inks.accent)
        yield Line(text, *part.sources[row])
    if part.others:
        yield Line(Text(f"  and {part.others:,} more, which add {written(part.rest, 5)} to the cell", inks.quiet))
    text = Text(f"{'Σ':>{head - 1}} ", inks.accent)
    for k in columns:
        text.append(_short(part.total[k]), inks.accent).append("◂" if k == part.marked else " ", inks.accent)
    yield Line(text)


# Drawings


def _curve(part: parts.Curve, paint: Paint) -> Iterator[Line]:
    """The curve, with lines at 0 and the point."""
    inks, width = paint.inks, max(min(60, paint.width - NUMBER - 5), 8)
    finite = part.y[np.isfinite(part.y)]
    heights = [*finite.tolist(), 0.0, part.point[1]]
    low, high = min(filter(math.isfinite, heights)), max(filter(math.isfinite, heights))
    first, last = float(part.x[0]), float(part.x[-1])
    canvas = Dots(width, CURVE_LINES)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - first) / ((last - first) or 1.0) * (width - 0.5)
        return across, (high - y) / ((high - low) or 1.0) * (CURVE_LINES - 0.3)

    for start, end in (((first, 0.0), (last, 0.0)), ((0.0, low), (0.0, high))):
        canvas.line(place(*start), place(*end), inks.quiet, gap=3)
    points = [place(float(x), float(y)) for x, y in zip(part.x, part.y, strict=True)]
    for start, end in pairwise(points):
        canvas.line(start, end, inks.plain)
    canvas.letter(*place(*part.point), "●", inks.accent)
    yield Line(Text(f"  {part.name}", inks.plain))
    for line in range(CURVE_LINES):
        label = {0: written(high, 3), CURVE_LINES - 1: written(low, 3)}.get(line, "")
        yield Line(Text(f"{label:>{NUMBER}} ", inks.quiet).append_text(canvas.text(line, inks.plain)))
    ends = f"{written(first, 3)}{part.x_name:^{max(width - 2 * NUMBER, 1)}}{written(last, 3):>{NUMBER}}"
    yield Line(Text(f"{'':>{NUMBER}} {ends}", inks.quiet))
    x, y = (written(value, 4) for value in part.point)
    yield Line(Text(f"{'':>{NUMBER}} ● {part.x_name} = {x} → {y}", inks.accent))


def _turn(part: parts.Turn, paint: Paint) -> Iterator[Line]:
    """Two arrows from the origin: before, dotted, and after."""
    inks, half = paint.inks, TURN_LINES
    canvas, reach = Dots(2 * half, TURN_LINES), max(*map(abs, (*part.before, *part.after)), 1e-9) * 1.1

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return half + point[0] / reach * half, (TURN_LINES - point[1] / reach * TURN_LINES) / 2

    canvas.line(place((-reach, 0.0)), place((reach, 0.0)), inks.quiet, gap=4)
    canvas.line(place((0.0, -reach)), place((0.0, reach)), inks.quiet, gap=4)
    for point, letter, gap, style in ((part.before, "○", 2, inks.plain), (part.after, "●", 1, inks.accent)):
        canvas.line(place((0.0, 0.0)), place(point), style, gap)
        canvas.letter(*place(point), letter, style)
    pairs = [f"({written(point[0], 4)}, {written(point[1], 4)})" for point in (part.before, part.after)]
    words = {
        2: (f"{part.names[0]} across, {part.names[1]} up", inks.quiet),
        4: (f"○ before {pairs[0]}", inks.plain),
        5: (f"● after  {pairs[1]}", inks.accent),
        7: (f"θ = {written(part.angle, 4)} radians = {math.degrees(part.angle) % 360:.1f}° of a turn", inks.plain),
    }
    for line in range(TURN_LINES):
        text = Text("  ").append_text(canvas.text(line, inks.plain)).append("  ")
        yield Line(text.append(*words.get(line, ("", inks.plain))))


def _allowed(part: parts.Allowed, paint: Paint) -> Iterator[Line]:
    inks, width = paint.inks, 6
    columns = around(part.marked[1], len(part.columns), max((paint.width - LABEL - 4) // (width + 1), 1))
    heads = "".join(f"{fit_label(part.columns[k], width, 'right')} " for k in columns)
    yield Line(Text(f"  {fit_label('query ↓  key →', LABEL)} {heads}", inks.quiet))
    for row, name in enumerate(part.rows):
        text = Text(f"  {fit_label(name, LABEL)} ", inks.accent if row == part.marked[0] else inks.plain)
        for k in columns:
            here = (row, k) == part.marked
            sign = "■" if part.seen[row, k] else "−∞"
            style = inks.accent if here else inks.plain if part.seen[row, k] else inks.quiet
            text.append(f"{f'[{sign}]' if here else sign:>{width}} ", style)
        yield Line(text)
    yield Line(Text("  ■ may look   −∞ may not   [ ] this cell", inks.quiet))


def _line(*parts: tuple[str, Style]) -> Text:
    return Text.assemble(*parts, no_wrap=True)


def _bar(value: float, most: float, room: int, *, signed: bool) -> str:
    """A bar; where there are negative ones, left or right from zero in the middle."""
    return BarScale(most, signed=True).bar(value, room).ljust(room)[:room] if signed else share_bar(value / most, room)


def _short(value: Any) -> str:
    number = float(value)
    texts = (written(number, digits) for digits in (5, 4, 3, 2, 1))
    return f"{next((text for text in texts if len(text) <= NUMBER), '…'):>{NUMBER}}"


_DRAW: Mapping[type[Any], Callable[[Any, Paint], Iterator[Line]]] = {
    parts.Note: _words,
    parts.Equation: _words,
    parts.Number: _number,
    parts.Product: _product,
    parts.Bars: _bars,
    parts.NumberRows: _number_rows,
    parts.Weighted: _weighted,
    parts.Curve: _curve,
    parts.Turn: _turn,
    parts.Allowed: _allowed,
}
