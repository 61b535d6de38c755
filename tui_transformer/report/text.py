"""A view as aligned text, as wide as a terminal or whole."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.guide.texts import step_text
from tui_transformer.report.numbers import NumberText, full_shape, number_text
from tui_transformer.text.display import ELLIPSIS, cells, fit
from tui_transformer.views.view import Axis, Values, View

WIDTH, ROWS = 80, 40
GAP = "  "
LABEL_CELLS = 14
NARROWEST = 5
SOME = 8


@dataclass(frozen=True)
class Page:
    """How much may be shown: cells of a line and rows of the matrix; None for everything."""

    width: int | None = WIDTH
    rows: int | None = ROWS


DEFAULT_PAGE, EVERYTHING = Page(), Page(None, None)


def render(view: View, page: Page = DEFAULT_PAGE) -> str:
    """Title, formula, what the step is, and the matrix."""
    return "\n".join([*heading(view, page), "", *matrix(view, page)]) + "\n"


def heading(view: View, page: Page) -> list[str]:
    """The title line, the formula, and the plain words for the step, wrapped to the page."""
    words = step_text("gradient" if view.name.startswith(GRADIENT) else view.name)
    about = " ".join(filter(None, (words.what, words.why)))
    parts = [view.title, shape_text(full_shape(view))]
    if view.head is not None:
        parts.append(f"head {view.head}" + (f" of 0 to {view.heads - 1}" if view.heads > 1 else ""))
    lines = [" · ".join(parts), view.formula, *textwrap.wrap(about, page.width or WIDTH)]
    return [line for line in lines if line]


def matrix(view: View, page: Page) -> Iterator[str]:
    """The labels and numbers; where something is left out, `…` and a last line that says how much."""
    rows = range(min(view.rows.size, page.rows or view.rows.size))
    values = view.window(rows, range(_columns_at_most(view, page)))
    write = number_text(values)
    side = _side(view, rows)
    columns = _columns(view, values, write, page, cells(side[0]))
    header = _header_lines(view)
    yield _axes(view)
    yield from (columns.line(*line) for line in zip(side, _heads(view, columns)[:header], strict=False))
    for label, row in zip(side[header:], values, strict=True):
        yield columns.line(label, list(map(write, row[: len(columns.widths)].tolist())))
    yield from _left_out(view, len(rows), len(columns.widths))
    yield from _without_keys(view, values)


@dataclass(frozen=True)
class Columns:
    """The columns that fit: their widths, what stands between them, and whether there are more."""

    widths: tuple[int, ...]
    gap: str
    cut: bool

    def line(self, label: str, texts: list[str]) -> str:
        """A line of the matrix."""
        fitted = (fit(text, width, "right") for text, width in zip(texts, self.widths, strict=True))
        return (label + GAP + self.gap.join([*fitted, *([ELLIPSIS] if self.cut else [])])).rstrip()


def _axes(view: View) -> str:
    named = ((view.rows.name, "↓"), (view.columns.name, "→"))
    return GAP.join(f"{name} {arrow}" for name, arrow in named if name)


def _columns_at_most(view: View, page: Page) -> int:
    if page.width is None:
        return view.columns.size
    return min(view.columns.size, max(1, page.width // (1 + len(GAP))))


def _header_lines(view: View) -> int:
    """A line for the indices, and one for the words of the columns where they have any."""
    if not view.columns.name:
        return 0
    return 2 if _worded(view.columns) else 1


def _worded(axis: Axis) -> bool:
    return any(axis.label(index) != str(index) for index in range(min(axis.size, 2)))


def _side(view: View, rows: range) -> list[str]:
    """The left column: blank beside the header, then the labels of the rows, all equally wide."""
    labels = [_row_label(view.rows, row) for row in rows]
    width = max(map(cells, labels))
    return [fit(text, width) for text in [*([""] * _header_lines(view)), *labels]]


def _row_label(axis: Axis, row: int) -> str:
    if not axis.name:
        return ""
    digits = len(str(axis.size - 1))
    label = axis.label(row)
    number = f"{row:>{digits}}"
    return number if label == str(row) else f"{number} {fit(label, min(cells(label), LABEL_CELLS))}"


def _columns(view: View, values: Values, write: NumberText, page: Page, side: int) -> Columns:
    """All columns, closer together where that helps, or else as many as fit on the page, at least one."""
    widths = tuple(_width(view, values, write, column) for column in range(values.shape[1]))
    room = math.inf if page.width is None else page.width - side - len(GAP)
    for gap in (GAP, " "):
        if sum(widths) + len(gap) * (len(widths) - 1) <= room and len(widths) == view.columns.size:
            return Columns(widths, gap, cut=False)
    ends = accumulate(width + len(GAP) for width in widths)
    count = sum(1 for _ in takewhile(lambda end: end + len(ELLIPSIS) <= room, ends))
    return Columns(widths[: max(1, count)], GAP, cut=max(1, count) < view.columns.size)


def _width(view: View, values: Values, write: NumberText, column: int) -> int:
    numbers = max(len(write(value)) for value in values[:, column].tolist())
    label = cells(view.columns.label(column)) if view.columns.name else 0
    return max(numbers, min(label, NARROWEST if numbers > NARROWEST else LABEL_CELLS), len(str(column)))


def _heads(view: View, columns: Columns) -> tuple[list[str], list[str]]:
    shown = range(len(columns.widths))
    return list(map(str, shown)), [view.columns.label(column) for column in shown]


def _left_out(view: View, rows: int, columns: int) -> Iterator[str]:
    if rows < view.rows.size:
        yield ELLIPSIS
    if rows < view.rows.size or columns < view.columns.size:
        yield f"{rows} of {view.rows.size} rows, {columns} of {view.columns.size} columns"


def _without_keys(view: View, values: Values) -> Iterator[str]:
    """Why rows of attention weights have only zeros, where some have."""
    if view.kind != "sequential" or not view.name.endswith(".weights"):
        return
    whole = (
        values if values.shape[1] == view.columns.size else view.window(range(len(values)), range(view.columns.size))
    )
    blank = np.flatnonzero(~whole.any(axis=1))
    if blank.size:
        queries = ", ".join(map(str, blank[:SOME])) + ", …" * (blank.size > SOME)
        yield f"no key is visible to query {queries}: all weights 0"
