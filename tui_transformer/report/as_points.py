"""A view as points, `row column value` a line: what gnuplot's `splot "sin.dat"` draws as a surface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui_transformer.report.numbers import blocks, exact
from tui_transformer.views.view import Axis, View


def render(view: View) -> str:
    """All points; see `pieces`."""
    return "".join(pieces(view))


def pieces(view: View) -> Iterator[str]:
    """The points in parts, with a blank line behind every row, where gnuplot begins another line of the surface.

    The first line says what the numbers are, behind a # as a remark. A row or column is its number: the one that it is
    called by (the dimensions 0, 2, 4 of the sines), else its place. A value is the shortest text that reads back as the
    same; a masked cell is `-inf`.
    """
    yield f"# {view.rows.name or 'row'} {view.columns.name or 'column'} {view.name}\n"
    names, columns = _numbers(view.rows), _numbers(view.columns)
    for rows, values in blocks(view):
        for row, texts in zip(rows, exact(values), strict=True):
            yield "".join(f"{names[row]} {column} {text}\n" for column, text in zip(columns, texts, strict=True)) + "\n"


def _numbers(axis: Axis) -> Sequence[int]:
    """What rows or columns are called, where these are numbers that rise; else their places."""
    places, called = range(axis.size), list[int]()
    for place in places:
        label = axis.label(place)
        if not re.fullmatch("[0-9]{1,9}", label) or (called and int(label) <= called[-1]):
            return places
        called.append(int(label))
    return called
