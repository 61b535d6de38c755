"""The way back from one number to the words: each cell with the largest terms that made it, level after level."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Literal

import numpy as np

from tui_transformer.engine.edits import how_set
from tui_transformer.engine.explanation import Explanation, Index, Operand, Sum, Value
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass
from tui_transformer.views.step_view import Labels

Kind = Literal["step", "weight", "given"]
MOST, TERMS = 24, 2
"""Cells that are taken apart and terms of a sum that are shown, where nothing else is asked for."""

BESIDE = 0.5
"""So much of a cell is put down to the sums of its working where other cells stand in it beside them."""


@dataclass(frozen=True, eq=False)
class Term:
    """What one term adds to a cell.

    Attributes:
        contribution: What it adds, where it is one term of a sum; else the value that goes into the cell.
        share: Its size, of that of all terms.
        cells: The cells that it is made of.
    """

    contribution: float
    share: float
    cells: tuple[Cell, ...]


@dataclass(eq=False)
class Cell:
    """A cell on the way.

    Attributes:
        name: Of the step or weight.
        index: Without the batch axis.
        value: The value that the forward pass holds.
        kind: Whether it is of a step, of a weight, or given.
        place: Where that is, in words: `head 2 · query where · key ?`.
        formula: How its step is computed; "" where it is not taken apart here.
        equation: The same with its numbers.
        terms: The largest of its terms.
        rest: Number of its terms that are not shown.
        rest_total: What they add, together.
        difference: Value worked out again, in float64, less the one that is held.
        is_repeated: Whether it is taken apart elsewhere on the poster.
        edited: How it was set by an edit, and so is made of nothing; "" where it was computed.
    """

    name: str
    index: Index
    value: float
    kind: Kind
    place: str = ""
    formula: str = ""
    equation: str = ""
    terms: tuple[Term, ...] = ()
    rest: int = 0
    rest_total: float = 0.0
    difference: float = 0.0
    is_repeated: bool = False
    edited: str = ""

    def walk(self) -> Iterator[Cell]:
        """This cell, and all that it is made of."""
        yield self
        for term in self.terms:
            for cell in term.cells:
                yield from cell.walk()


def poster(
    trace: Trace,
    name: str,
    index: Index,
    labels: Labels,
    *,
    levels: int | None = None,
    terms: int = TERMS,
    most: int = MOST,
) -> Cell:
    """The way back from a cell; what adds most is taken apart first, until there are so many cells.

    Args:
        trace: Where the cell is.
        name: Of its step.
        index: Of the cell, without the batch axis.
        labels: The words of rows and columns.
        levels: How far back; None for as far as the cells reach.
        terms: Terms of a sum that are shown.
        most: Cells that are taken apart.

    Raises:
        InputError: The cell is outside the step.
    """
    program = trace.program

    def cell_of(operand: Operand) -> Cell:
        own = operand.name
        kind: Kind = "step" if own in program.by_name else "weight" if own in program.weights else "given"
        return Cell(own, operand.index, operand.value, kind)

    root = cell_of(Operand(program.named(name), index, 0.0))
    waiting, order, seen = [(-1.0, 0, 0, root)], count(1), {(root.name, index)}
    for _ in range(most):
        if not waiting:
            break
        importance, _, level, cell = heapq.heappop(waiting)
        found = trace.explain_cell(cell.name, cell.index)
        cell.value = found.stored
        if found.edited:
            continue
        cell.difference = found.difference
        cell.formula, cell.equation = found.formula, found.equation
        cell.terms, cell.rest, cell.rest_total = _terms(found, cell_of, terms)
        for term in cell.terms:
            for each in term.cells:
                where = each.name, each.index
                each.is_repeated = where in seen
                if each.kind == "step" and not each.is_repeated and level + 1 != levels:
                    seen.add(where)
                    heapq.heappush(waiting, (importance * term.share, next(order), level + 1, each))
    for cell in root.walk():
        cell.place = _place(trace, labels, cell.name, cell.index)
        cell.edited = how_set(trace.edits, cell.name, cell.index)
    return root


def _place(trace: Trace, labels: Labels, name: str, index: Index) -> str:
    """Where a cell is, in words: `head 2 · query where · key ?`; a place without words has its number."""
    axes = trace.program.axes(name) if name in trace.program.by_name or name in trace.program.weights else ()
    if not axes:
        return " · ".join(map(str, index))
    return " · ".join(f"{axis.name} {labels.of(axis)(i)}" for axis, i in zip(axes, index, strict=True))


@np.errstate(all="ignore")
def _terms(
    explanation: Explanation, cell_of: Callable[[Operand], Cell], most: int
) -> tuple[tuple[Term, ...], int, float]:
    """The largest terms of a working, the number of the others, and what these add.

    Cells that stand in it by themselves, as x in x + sublayer(x), come first, each once; of every sum the largest terms
    follow. A weight that stands by itself, as a bias, has no share: it is not taken apart.
    """
    alone = [cell_of(item.source) for item in explanation.items if isinstance(item, Value) and item.source is not None]
    steps = [abs(each.value) for each in alone if each.kind == "step" and np.isfinite(each.value)]
    shares = [abs(each.value) / (sum(steps) or 1.0) if each.kind == "step" else 0.0 for each in alone]
    made = [Term(each.value, share, (each,)) for each, share in zip(alone, shares, strict=True)]
    known, rest, rest_total = {(each.name, each.index) for each in alone}, 0, 0.0
    for item in explanation.items:
        if not isinstance(item, Sum):
            continue
        sizes = np.abs(np.nan_to_num(item.contributions))
        largest = [int(k) for k in np.argsort(-sizes, kind="stable")[:most] if sizes[k] > 0]
        rest += len(item) - len(largest)
        rest_total += float(np.delete(item.contributions, largest).sum())
        weight = (BESIDE if steps else 1.0) / (float(sizes.sum()) or 1.0)
        for k in largest:
            operands = [factor.operand(k) for factor in item.factors]
            if not all((each.name, each.index) in known for each in operands):
                cells = tuple(map(cell_of, operands))
                made.append(Term(float(item.contributions[k]), float(sizes[k]) * weight, cells))
    return tuple(made), rest, rest_total
