"""Tables of numbers and words, as text, JSON or CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tui_transformer.report.export import csv_text
from tui_transformer.text.display import cells, fit, visible

Format = Literal["text", "json", "csv"]
Value = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows of values under the names of their columns; NaN and None are values that are not there.

    Attributes:
        columns: Their names.
        rows: As many values each.
        digits: Digits behind the point in text.
        note: What is to be known of all rows, in text under them.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    digits: int = 3
    note: str = ""


def written(table: Table, form: Format) -> Iterator[str]:
    """The table in a format; JSON is a list of objects, numbers are exact in JSON and CSV."""
    return _WRITERS[form](table)


def by_size(value: Value, sign: int = -1) -> tuple[bool, float]:
    """What rows are sorted by for the largest value first, or with the sign 1 the smallest; those without it last."""
    number = float(value) if isinstance(value, int | float) else math.nan
    return math.isnan(number), 0.0 if math.isnan(number) else sign * number


def _text(table: Table) -> Iterator[str]:
    """Columns side by side, numbers at the right."""
    lines = [[_shown(value, table.digits) for value in row] for row in table.rows]
    widths = [max(map(cells, column)) for column in zip(table.columns, *lines, strict=True)]
    right = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(table.columns))]
    for line in (table.columns, *lines):
        yield "  ".join(map(_cell, line, widths, right)).rstrip() + "\n"
    if table.note:
        yield f"\n{visible(table.note)}\n"


def _cell(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - called by map
    return fit(text, width, "right" if right else "left")


def _shown(value: Value, digits: int) -> str:
    if _absent(value):
        return "–"
    return f"{value:.{digits}f}" if isinstance(value, float) else visible(str(value))


def _absent(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _present(row: Iterable[Value]) -> Iterator[Value]:
    return (None if _absent(value) else value for value in row)


def _json(table: Table) -> Iterator[str]:
    objects = [dict(zip(table.columns, _present(row), strict=True)) for row in table.rows]
    yield json.dumps(objects, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _csv(table: Table) -> Iterator[str]:
    rows = (["" if value is None else value for value in _present(row)] for row in table.rows)
    yield csv_text([table.columns, *rows])


_WRITERS = {"text": _text, "json": _json, "csv": _csv}
