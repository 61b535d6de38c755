"""A view as CSV: the first row and column are labels, the numbers have full precision."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from tui_transformer.report.numbers import blocks, exact
from tui_transformer.views.view import View


def render(view: View) -> str:
    """The whole table; see `pieces`."""
    return "".join(pieces(view))


def pieces(view: View) -> Iterator[str]:
    """The table in parts. Lines end in CR LF (RFC 4180); a masked cell is `-inf`.

    A number is the shortest text that reads back as the same value in the step's precision.
    """
    labels = [view.columns.label(column) if view.columns.name else view.name for column in range(view.columns.size)]
    yield csv_text([["", *labels]])
    for rows, values in blocks(view):
        yield csv_text([view.rows.label(row), *texts] for row, texts in zip(rows, exact(values), strict=True))


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV (RFC 4180)."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
