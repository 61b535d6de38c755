"""Numbers as text: alike and aligned for reading, or exact for other programs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from tui_transformer.text.display import cells, fit
from tui_transformer.views.view import Values, View

BLOCK_CELLS = 1 << 16
NumberText = Callable[[float], str]


def number_text(values: Values) -> NumberText:
    """One way to write all of these numbers, so that their points stand below each other.

    About five digits of the largest number; powers of ten where it is very large or very small.
    """
    if values.dtype.kind in "iub":
        return lambda value: str(int(value))
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max()) if finite.size else 0.0
    if largest and not 1e-2 <= largest < 1e5:
        return lambda value: _text(value, ".3e")
    pattern = f".{4 - (max(0, math.floor(math.log10(largest))) if largest else 0)}f"
    return lambda value: _text(value, pattern)


def _text(value: float, pattern: str) -> str:
    if math.isfinite(value):
        return format(value, pattern)
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def plain_power(text: str) -> str:
    """A number as the program writes it, without zeros in its power of ten: `1.1e-5`."""
    return re.sub(r"e([+-])0*(?=[0-9])", lambda match: f"e{match[1]}".removesuffix("+"), text)


def precise(value: float) -> str:
    """A number to nine digits, enough to tell any two float32 values apart."""
    return plain_power(_text(value, ".9g"))


def exact(values: Values) -> list[list[str]]:
    """Every number as the shortest text that reads back as the same value in the same precision."""
    return [list(map(str, row)) for row in values.astype(str).tolist()]


def blocks(view: View) -> Iterator[tuple[range, Values]]:
    """The whole view, a few rows at a time."""
    height = max(1, BLOCK_CELLS // max(1, view.columns.size))
    for start in range(0, view.rows.size, height):
        rows = range(start, min(start + height, view.rows.size))
        yield rows, view.window(rows, range(view.columns.size))


def full_shape(view: View) -> tuple[int, ...]:
    """The step's own shape: the heads in front, and no axis for the single column of a vector."""
    heads = (view.heads,) if view.head is not None else ()
    return (*heads, *(axis.size for axis in (view.rows, view.columns) if axis.name))


def clock(seconds: float) -> str:
    """Time as people read it: `4:05`, `2:03:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def aligned(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """A table whose columns stand below each other, some at the right; every row has as many texts, safe to show."""
    rows = list(rows)
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (fit(text, widths[i], "right" if i in right else "left") for i, text in enumerate(row))
        yield "  ".join(padded).rstrip() + "\n"
