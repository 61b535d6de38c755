"""How one cell was made: the terms, in data that the screen and the commands both show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tui_transformer.engine.axis import Region, Shape
from tui_transformer.records import dataclass

Index = tuple[int, ...]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """An input of a step, as explanations read it: only the cells that are asked for, as float64 on the host."""

    name: str
    shape: Shape
    read: Callable[[Region], Floats]

    def cell(self, *index: int) -> float:
        """One value."""
        return float(self.read(tuple(range(i, i + 1) for i in index)).reshape(()))

    def line(self, *index: int | None) -> Floats:
        """The values along the one axis whose index is None."""
        return self.factor(*index).values

    def operand(self, *index: int) -> Operand:
        """One cell with its place."""
        return Operand(self.name, index, self.cell(*index))

    def factor(self, *index: int | range | None) -> Factor:
        """Cells with their places, along the axes whose index is a range or None (all of it); the last is fastest."""
        pairs = zip(index, self.shape, strict=True)
        region = tuple(range(n) if i is None else i if isinstance(i, range) else range(i, i + 1) for i, n in pairs)
        varying = [axis for axis, i in enumerate(index) if not isinstance(i, int)]

        def place(term: int) -> Index:
            at = [part.start for part in region]
            for axis in reversed(varying):
                term, further = (0, term) if axis == varying[0] else divmod(term, len(region[axis]))
                at[axis] += further
            return tuple(at)

        return Factor(self.name, place, self.read(region).reshape(-1))


@dataclass(frozen=True)
class Operand:
    """A cell of a step, weight or input: where it is and what it holds."""

    name: str
    index: Index
    value: float

    def called(self, symbol: str, note: str = "") -> Value:
        """The cell as an item."""
        return Value(symbol, self.value, self, note)


@dataclass(frozen=True, eq=False)
class Factor:
    """One operand a term: the k-th is at `place(k)` of `name` and holds `values[k]`."""

    name: str
    place: Callable[[int], Index]
    values: Floats

    def operand(self, term: int) -> Operand:
        """The operand of one term."""
        return Operand(self.name, self.place(term), float(self.values[term]))

    def some(self, terms: npt.NDArray[np.int64]) -> Factor:
        """The operands of these terms alone."""
        return Factor(self.name, lambda term: self.place(int(terms[term])), self.values[terms])


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum written out: what each term adds, and the operands that it is made of."""

    title: str
    factors: tuple[Factor, ...]
    contributions: Floats
    unit: str = "product"

    @property
    def running(self) -> Floats:
        """The sum up to and including each term."""
        return np.cumsum(self.contributions)

    @property
    def total(self) -> float:
        """The whole sum."""
        return float(self.contributions.sum())

    def __len__(self) -> int:
        return len(self.contributions)


@dataclass(frozen=True)
class Value:
    """One named number on the way to the cell; `source` is the cell that it was read from, if it was."""

    symbol: str
    value: float
    source: Operand | None = None
    note: str = ""


Item = Sum | Value


@dataclass(frozen=True, eq=False)
class Working:
    """One cell as an op explains it: the items in reading order and the value they give.

    `equation` is how they do, with their numbers, as the left side of an equation; "" where the items, one after the
    other with the signs of their symbols, say it.
    """

    items: tuple[Item, ...]
    result: float
    equation: str = ""


@dataclass(frozen=True, eq=False)
class Explanation:
    """One cell of a step: its formula, its terms, the value worked out again in float64 and the one that is held.

    Attributes:
        name: The step.
        index: The cell, without the batch axis.
        formula: How the step is computed, in the paper's letters.
        items: Sums and values in reading order.
        recomputed: The value that the items give, in float64, from the stored operands.
        stored: The value that the forward pass holds.
        edited: The stored value was set, ablated or patched; `edits.how_set` says which.
        equation: What the working closes with: the numbers, put into the formula; "" for none.
    """

    name: str
    index: Index
    formula: str
    items: tuple[Item, ...]
    recomputed: float
    stored: float
    edited: bool = False
    equation: str = ""

    @property
    def difference(self) -> float:
        """Recomputed less stored; 0 where both are the same infinity."""
        return 0.0 if self.recomputed == self.stored else self.recomputed - self.stored


def added(title: str, factor: Factor) -> Sum:
    """The sum of a factor's values."""
    return Sum(title, (factor,), factor.values, "term")


def product(title: str, *factors: Factor) -> Sum:
    """The sum over k of the factors' products."""
    contributions = np.ones_like(factors[0].values)
    for factor in factors:
        contributions = contributions * factor.values
    return Sum(title, factors, contributions)
