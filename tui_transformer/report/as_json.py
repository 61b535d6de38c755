"""A view as JSON, strict: what is not a number is null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tui_transformer.report.numbers import blocks, exact, full_shape
from tui_transformer.views.view import Axis, Values, View

NULL_NOTE = "null is a cell without a finite number: -infinity where a query may not look"


def render(view: View) -> str:
    """The view as one JSON object; see `pieces`."""
    return "".join(pieces(view))


def pieces(view: View) -> Iterator[str]:
    """The object in parts: name, shape, axes with labels, formula, and the rows of numbers.

    A number is the shortest text that reads back as the same value in the step's precision.
    """
    yield json.dumps(_head(view), ensure_ascii=False)[:-1] + ', "values": [\n'
    for rows, values in blocks(view):
        last = rows.stop == view.rows.size
        yield ",\n".join(_rows(values)) + ("\n]" if last else ",\n")
    yield "}\n"


def _head(view: View) -> dict[str, Any]:
    return {
        "name": view.name,
        "formula": view.formula,
        "shape": list(full_shape(view)),
        "head": view.head,
        "rows": _axis(view.rows),
        "columns": _axis(view.columns),
        "note": NULL_NOTE,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {"axis": axis.name, "labels": [axis.label(index) for index in range(axis.size)]}


def _rows(values: Values) -> Iterator[str]:
    for texts, known in zip(exact(values), np.isfinite(values).tolist(), strict=True):
        yield "[" + ", ".join(text if ok else "null" for text, ok in zip(texts, known, strict=True)) + "]"
