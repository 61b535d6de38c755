"""Text for reading: a view as an aligned matrix, as wide as a terminal or whole, and how one cell was made."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Any

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.edits import Change, how_set
from tui_transformer.engine.explanation import Explanation, Factor, Item, Operand, Sum, Value
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass
from tui_transformer.report.numbers import NumberText, full_shape, number_text, plain_power, precise
from tui_transformer.text.display import ELLIPSIS, cells, fit
from tui_transformer.views.view import Axis, Values, View

WIDTH, ROWS = 80, 40
GAP = "  "
LABEL_CELLS, NUMBER_CELLS, NARROWEST = 14, 16, 5
SOME = 8
LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Page:
    """How much may be shown: cells of a line and rows of the matrix; None for everything."""

    width: int | None = WIDTH
    rows: int | None = ROWS


DEFAULT_PAGE, EVERYTHING = Page(), Page(None, None)


# A view


def render(view: View, page: Page = DEFAULT_PAGE) -> str:
    """Title, formula, what the step is, and the matrix."""
    words = step_text("gradient" if view.name.startswith(GRADIENT) else view.name)
    about = " ".join(filter(None, (words.what, words.why)))
    title = [view.title, shape_text(full_shape(view))]
    if view.head is not None:
        title.append(f"head {view.head}" + (f" of 0 to {view.heads - 1}" if view.heads > 1 else ""))
    heading = [" · ".join(title), view.formula, *textwrap.wrap(about, page.width or WIDTH)]
    return "\n".join([*filter(None, heading), "", *matrix(view, page)]) + "\n"


def matrix(view: View, page: Page) -> Iterator[str]:
    """The labels and numbers; where something is left out, `…` and a last line that says how much."""
    rows = range(min(view.rows.size, page.rows or view.rows.size))
    at_most = view.columns.size if page.width is None else max(1, page.width // (1 + len(GAP)))
    values = view.window(rows, range(min(view.columns.size, at_most)))
    write = number_text(values)
    labels = [_row_label(view.rows, row) for row in rows]
    side = max(map(cells, labels))
    widths, gap = _fitting(view, values, write, page, side)
    shown = range(len(widths))
    end = [ELLIPSIS] if len(shown) < view.columns.size else []

    def line(label: str, texts: Iterable[str]) -> str:
        fitted = (fit(text, width, "right") for text, width in zip(texts, widths, strict=True))
        return (label + GAP + gap.join([*fitted, *end])).rstrip()

    yield GAP.join(f"{axis.name} {arrow}" for axis, arrow in ((view.rows, "↓"), (view.columns, "→")) if axis.name)
    if view.columns.name:
        yield line(" " * side, map(str, shown))
        if any(view.columns.label(index) != str(index) for index in range(min(view.columns.size, 2))):
            yield line(" " * side, map(view.columns.label, shown))
    for label, row in zip(labels, values, strict=True):
        yield line(fit(label, side), map(write, row[: len(shown)].tolist()))
    if len(rows) < view.rows.size:
        yield ELLIPSIS
    if len(rows) < view.rows.size or len(shown) < view.columns.size:
        yield f"{len(rows)} of {view.rows.size} rows, {len(shown)} of {view.columns.size} columns"
    if view.kind == "sequential" and view.name.endswith(".weights"):
        yield from _without_keys(view, values)


def _row_label(axis: Axis, row: int) -> str:
    if not axis.name:
        return ""
    label, number = axis.label(row), f"{row:>{len(str(axis.size - 1))}}"
    return number if label == str(row) else f"{number} {fit(label, min(cells(label), LABEL_CELLS))}"


def _fitting(view: View, values: Values, write: NumberText, page: Page, side: int) -> tuple[tuple[int, ...], str]:
    """Widths of all columns, closer together where that helps, or else of as many as fit on the page; their gap."""

    def width(column: int) -> int:
        numbers = max(len(write(value)) for value in values[:, column].tolist())
        label = cells(view.columns.label(column)) if view.columns.name else 0
        return max(numbers, min(label, NARROWEST if numbers > NARROWEST else LABEL_CELLS), len(str(column)))

    widths = tuple(map(width, range(values.shape[1])))
    room = math.inf if page.width is None else page.width - side - len(GAP)
    for gap in (GAP, " "):
        if sum(widths) + len(gap) * (len(widths) - 1) <= room and len(widths) == view.columns.size:
            return widths, gap
    ends = accumulate(width + len(GAP) for width in widths)
    count = max(1, sum(1 for _ in takewhile(lambda end: end + len(ELLIPSIS) <= room, ends)))
    return widths[:count], GAP


def _without_keys(view: View, values: Values) -> Iterator[str]:
    """Why rows of attention weights have only zeros, where some have."""
    if values.shape[1] < view.columns.size:
        values = view.window(range(len(values)), range(view.columns.size))
    blank = np.flatnonzero(~values.any(axis=1))
    if blank.size:
        queries = ", ".join(map(str, blank[:SOME])) + ", …" * (blank.size > SOME)
        yield f"no key is visible to query {queries}: all weights 0"


# A cell


def cell_text(
    explanation: Explanation, labels: Sequence[str] = (), page: Page = DEFAULT_PAGE, edits: Sequence[Change] = ()
) -> str:
    """The terms in reading order, then the value worked out again, the stored one, and their difference.

    The labels are words for the cell's place, such as its tokens; the edits of the trace say how a stored value was set
    that was not computed. Of a sum as many terms are shown as a page has rows.
    """
    lines = [" · ".join([place(explanation.name, explanation.index), *labels]), explanation.formula, ""]
    width = max([NUMBER_CELLS, *(cells(item.symbol) for item in explanation.items if isinstance(item, Value))])
    for item in explanation.items:
        lines += _sum(item, page) if isinstance(item, Sum) else [_value(item, width)]
    if explanation.equation:
        lines += ["", explanation.equation]
    edited = how_set(edits, explanation.name, explanation.index) or "set by an edit"
    lines += [
        "",
        f"recomputed  {precise(explanation.recomputed)}  (in float64, from the stored operands)",
        f"stored      {precise(explanation.stored)}" + (f"  ({edited})" if explanation.edited else ""),
        f"difference  {plain_power(f'{explanation.difference:.3g}')}",
    ]
    return "\n".join(lines) + "\n"


def place(name: str, index: Sequence[int | str]) -> str:
    """A cell by name and index: `encoder.0.self_attention.scores[2, 4, 1]`."""
    return f"{name}[{', '.join(map(str, index))}]"


def _value(value: Value, width: int) -> str:
    source = place(value.source.name, value.source.index) if value.source else ""
    number = f"{precise(value.value):>{NUMBER_CELLS}}"
    return "  ".join(filter(None, (fit(value.symbol, width), number, source, value.note)))


def _sum(total: Sum, page: Page) -> Iterator[str]:
    """A table: a line a term with its operands, what it adds, and the sum so far."""

    def row(first: str, texts: list[str]) -> str:
        return f"{first:>6}" + "".join(fit(text, max(NUMBER_CELLS, cells(text) + 1), "right") for text in texts)

    letters = LETTERS[: len(total.factors)]
    yield total.title
    yield from (f"  {letter} = {_pattern(factor)}" for letter, factor in zip(LETTERS, total.factors, strict=False))
    yield row("k", [*letters, total.unit, "sum"])
    shown = min(len(total), page.rows or len(total))
    running = total.running
    for term in range(shown):
        numbers = [*(factor.values[term] for factor in total.factors), total.contributions[term], running[term]]
        yield row(str(term), [precise(float(number)) for number in numbers])
    if shown < len(total):
        yield f"{ELLIPSIS:>6}  {len(total) - shown} more terms"
    yield row("", [*([""] * len(letters)), "total", precise(total.total)])


def _pattern(factor: Factor) -> str:
    """The place of a line of operands, `k` where the index is the number of the term."""
    first, second = factor.place(0), factor.place(1)
    return place(factor.name, [i if i == j else "k" for i, j in zip(first, second, strict=True)])


def cell_data(explanation: Explanation) -> dict[str, Any]:
    """Everything about a cell, as JSON can hold it: a number that is not finite is null."""
    return {
        "name": explanation.name,
        "index": list(explanation.index),
        "formula": explanation.formula,
        "items": list(map(_item_data, explanation.items)),
        "equation": explanation.equation,
        "recomputed": finite(explanation.recomputed),
        "stored": finite(explanation.stored),
        "difference": finite(explanation.difference),
        "edited": explanation.edited,
    }


def finite(value: float) -> float | None:
    """The number, or None where it is infinite or not a number."""
    return value if math.isfinite(value) else None


def _item_data(item: Item) -> dict[str, Any]:
    if not isinstance(item, Sum):
        source = None if item.source is None else _operand_data(item.source)
        return {"symbol": item.symbol, "value": finite(item.value), "source": source, "note": item.note}
    terms = [
        {
            "operands": [_operand_data(factor.operand(term)) for factor in item.factors],
            "adds": finite(adds),
            "sum": finite(so_far),
        }
        for term, (adds, so_far) in enumerate(zip(item.contributions.tolist(), item.running.tolist(), strict=True))
    ]
    return {"title": item.title, "unit": item.unit, "terms": terms, "total": finite(item.total)}


def _operand_data(operand: Operand) -> dict[str, Any]:
    return {"name": operand.name, "index": list(operand.index), "value": finite(operand.value)}
