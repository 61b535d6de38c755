"""How one cell was made, as text and as data for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tui_transformer.engine.edits import Change, how_set
from tui_transformer.engine.explanation import Explanation, Factor, Index, Item, Operand, Sum, Value
from tui_transformer.report.numbers import plain_power, precise
from tui_transformer.report.text import DEFAULT_PAGE, Page
from tui_transformer.text.display import ELLIPSIS, cells, fit

LETTERS = "abcdefgh"
NUMBER_CELLS = 16


def render(
    explanation: Explanation, labels: Sequence[str] = (), page: Page = DEFAULT_PAGE, edits: Sequence[Change] = ()
) -> str:
    """The terms in reading order, then the value worked out again, the stored one, and their difference.

    Args:
        explanation: One cell.
        labels: Words for the cell's place, such as its tokens.
        page: How many terms of a sum are shown.
        edits: Those of the trace; they say how a stored value was set that was not computed.
    """
    lines = [" · ".join([place(explanation.name, explanation.index), *labels]), explanation.formula, ""]
    width = max([NUMBER_CELLS, *(cells(item.symbol) for item in explanation.items if isinstance(item, Value))])
    for item in explanation.items:
        lines += _sum(item, page) if isinstance(item, Sum) else [_value(item, width)]
    equation = ["", explanation.equation] if explanation.equation else []
    return "\n".join([*lines, *equation, "", *_result(explanation, edits)]) + "\n"


def place(name: str, index: Sequence[int | str]) -> str:
    """A cell by name and index: `encoder.0.self_attention.scores[2, 4, 1]`."""
    return f"{name}[{', '.join(map(str, index))}]"


def _result(explanation: Explanation, edits: Sequence[Change]) -> Iterator[str]:
    edited = how_set(edits, explanation.name, explanation.index) or "set by an edit"
    yield f"recomputed  {precise(explanation.recomputed)}  (in float64, from the stored operands)"
    yield f"stored      {precise(explanation.stored)}" + (f"  ({edited})" if explanation.edited else "")
    yield f"difference  {plain_power(f'{explanation.difference:.3g}')}"


def _value(value: Value, width: int) -> str:
    symbol = fit(value.symbol, width)
    source = place(value.source.name, value.source.index) if value.source else ""
    return "  ".join(filter(None, (symbol, f"{precise(value.value):>{NUMBER_CELLS}}", source, value.note)))


def _sum(total: Sum, page: Page) -> Iterator[str]:
    """A table: a line a term with its operands, what it adds, and the sum so far."""
    yield total.title
    yield from (f"  {letter} = {_pattern(factor)}" for letter, factor in zip(LETTERS, total.factors, strict=False))
    letters = LETTERS[: len(total.factors)]
    yield _row("k", [*letters, total.unit, "sum"])
    shown = min(len(total), page.rows or len(total))
    running = total.running
    for term in range(shown):
        operands = [float(factor.values[term]) for factor in total.factors]
        numbers = [*operands, float(total.contributions[term]), float(running[term])]
        yield _row(str(term), list(map(precise, numbers)))
    if shown < len(total):
        yield f"{ELLIPSIS:>6}  {len(total) - shown} more terms"
    yield _row("", [*([""] * len(letters)), "total", precise(total.total)])


def _row(first: str, texts: list[str]) -> str:
    return f"{first:>6}" + "".join(fit(text, max(NUMBER_CELLS, cells(text) + 1), "right") for text in texts)


def _pattern(factor: Factor) -> str:
    """The place of a line of operands, `k` where the index is the number of the term."""
    first, second = factor.place(0), factor.place(1)
    return place(factor.name, [i if i == j else "k" for i, j in zip(first, second, strict=True)])


def data(explanation: Explanation) -> dict[str, Any]:
    """Everything, as JSON can hold it: a number that is not finite is null."""
    return {
        "name": explanation.name,
        "index": list(explanation.index),
        "formula": explanation.formula,
        "items": [_item(item) for item in explanation.items],
        "equation": explanation.equation,
        "recomputed": finite(explanation.recomputed),
        "stored": finite(explanation.stored),
        "difference": finite(explanation.difference),
        "edited": explanation.edited,
    }


def finite(value: float) -> float | None:
    """The number, or None where it is infinite or not a number."""
    return value if math.isfinite(value) else None


def _item(item: Item) -> dict[str, Any]:
    return _sum_data(item) if isinstance(item, Sum) else _value_data(item)


def _value_data(value: Value) -> dict[str, Any]:
    source = None if value.source is None else _operand(value.source)
    return {"symbol": value.symbol, "value": finite(value.value), "source": source, "note": value.note}


def _sum_data(total: Sum) -> dict[str, Any]:
    terms = zip(total.contributions.tolist(), total.running.tolist(), strict=True)
    return {
        "title": total.title,
        "unit": total.unit,
        "terms": [
            {
                "operands": [_operand(factor.operand(term)) for factor in total.factors],
                "adds": finite(adds),
                "sum": finite(so_far),
            }
            for term, (adds, so_far) in enumerate(terms)
        ],
        "total": finite(total.total),
    }


def _operand(operand: Operand) -> dict[str, Any]:
    index: Index = operand.index
    return {"name": operand.name, "index": list(index), "value": finite(operand.value)}
