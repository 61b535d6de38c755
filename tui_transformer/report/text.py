"""A view as aligned text, as wide as a terminal or whole."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tui_transformer.engine.axis import shape_text
from tui_transformer.guide.texts import step_text
from tui_transformer.report.numbers import NumberText, full_shape, number_text
from tui_transformer.text.display import ELLIPSIS, cells, fit
from tui_transformer.views.view import Axis, Values, View

WIDTH, ROWS = 80, 40
GAP = "  "
LABEL_CELLS = 14
NARROWEST = 5


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
    words = step_text(view.name)
    about = " ".join(filter(None, (words.what, words.why)))
    parts = [view.title, shape_text(full_shape(view))]
    if view.head is not None:
        parts.append(f"head {view.head} of 0 to {view.heads - 1}")
    lines = [" · ".join(parts), view.formula, *textwrap.wrap(about, page.width or WIDTH)]
    return [line for line in lines if line]


def matrix(view: View, page: Page) -> Iterator[str]:
    """The labels and numbers; where something is left out, `…` and a last line that says how much."""
    rows = range(min(view.rows.size, page.rows or view.rows.size))
    values = view.window(rows, range(_columns_at_most(view, page)))
    write = number_text(values)
    side = _side(view, rows)
    shown = _fitting(view, values, write, page, cells(side[0]))
    yield _axes(view)
    yield from _header(view, shown, side[: _header_lines(view)])
    for label, row in zip(side[_header_lines(view) :], values, strict=True):
        numbers = [fit(write(value), width, "right") for value, width in zip(row.tolist(), shown, strict=False)]
        yield _line(label, numbers, cut=len(shown) < view.columns.size)
    yield from _left_out(view, len(rows), len(shown))


def _axes(view: View) -> str:
    named = ((view.rows.name, "↓"), (view.columns.name, "→"))
    return "  ".join(f"{name} {arrow}" for name, arrow in named if name)


def _columns_at_most(view: View, page: Page) -> int:
    """No more columns than could ever fit are computed."""
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


def _fitting(view: View, values: Values, write: NumberText, page: Page, side: int) -> list[int]:
    """The widths of the columns that fit on the page, at least one."""
    widths = [_width(view, values, write, column) for column in range(values.shape[1])]
    if page.width is None:
        return widths
    room = page.width - side
    if sum(widths) + len(GAP) * len(widths) <= room and len(widths) == view.columns.size:
        return widths
    count, used = 0, len(GAP) + len(ELLIPSIS)
    while count < len(widths) and (used := used + len(GAP) + widths[count]) <= room:
        count += 1
    return widths[: max(1, count)]


def _width(view: View, values: Values, write: NumberText, column: int) -> int:
    numbers = max(len(write(value)) for value in values[:, column].tolist())
    label = cells(view.columns.label(column)) if view.columns.name else 0
    return max(numbers, min(label, NARROWEST if numbers > NARROWEST else LABEL_CELLS), len(str(column)))


def _header(view: View, shown: list[int], side: list[str]) -> Iterator[str]:
    cut = len(shown) < view.columns.size
    if side:
        indices = [fit(str(column), width, "right") for column, width in enumerate(shown)]
        yield _line(side[0], indices, cut=cut)
    if len(side) > 1:
        words = [fit(view.columns.label(column), width, "right") for column, width in enumerate(shown)]
        yield _line(side[1], words, cut=cut)


def _line(label: str, numbers: list[str], *, cut: bool) -> str:
    return GAP.join([label, *numbers, *([ELLIPSIS] if cut else [])]).rstrip()


def _left_out(view: View, rows: int, columns: int) -> Iterator[str]:
    if rows < view.rows.size:
        yield ELLIPSIS
    if rows < view.rows.size or columns < view.columns.size:
        yield f"{rows} of {view.rows.size} rows, {columns} of {view.columns.size} columns"
