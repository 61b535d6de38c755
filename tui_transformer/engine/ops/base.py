"""Base of every operation: how to compute, to undo, to compute in part, and to explain one cell."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of, whole
from tui_transformer.engine.backend import Array, Backend, numpy_backend
from tui_transformer.engine.explanation import Index, Item, Operand, Source, Sum, Value, Working
from tui_transformer.machine import cores, on_cores
from tui_transformer.records import dataclass

Gradients = tuple[Array | None, ...]
EXACT = numpy_backend("float64", "explanations are worked out in float64")
Along = tuple[tuple[int | None, ...], ...]
RESULT = -1
"""In `Op.undone_from`: the result of the step."""


@dataclass(frozen=True)
class Op(ABC):
    """One operation. Arrays have a batch axis in front; axes, regions and indices do not count it.

    Class attributes:
        overwrites: `forward` can write its result over its first input.
        signed: Values lie on both sides of 0, so a diverging palette fits.
        integer: Values are whole numbers.
        is_lookup: The first input names the rows of the second that are read; no others matter.
        sparse: The last input says which rows are computed; the others are 0. See `idle`.
        undone_from: Places of the inputs whose values `backward` reads, and `RESULT` where it reads the result; the
            others may be gone by then, and are None. By default it reads everything.
        chain: The gradient of every input (the last stands for all that follow), in the paper's letters; ∂y is the
            gradient of the result.
        definition: The formula, where it is the same for every instance.
        whole_rows: A row of the result is made from whole rows: a part of one cannot be had alone.
        whole_axes: The other axes of the result of which a part cannot be had alone.
        along: Where an input is read for a part of the result: for each of its axes that of the result whose indices it
            has, None for all of the axis; the last stands for all inputs that follow, and an input with fewer axes has
            the last of them. By default one with as many axes is read where the result is, any other as a whole.
        cost: Floating-point operations a cell, each elementwise function counted as one.
    """

    overwrites: ClassVar[bool] = False
    signed: ClassVar[bool] = True
    integer: ClassVar[bool] = False
    is_lookup: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    undone_from: ClassVar[tuple[int, ...] | None] = None
    chain: ClassVar[tuple[str, ...]] = ()
    definition: ClassVar[str] = ""
    whole_rows: ClassVar[bool] = False
    whole_axes: ClassVar[tuple[int, ...]] = ()
    along: ClassVar[Along] = ()
    cost: ClassVar[int] = 1

    @property
    def formula(self) -> str:
        """How the result is computed, in the paper's letters."""
        return self.definition

    def axes(self, *inputs: Axes) -> Axes:
        """The axes of the result: those of the first input, unless an op says otherwise."""
        return inputs[0]

    @abstractmethod
    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The result; written into `out` where it is given and the op can."""

    @abstractmethod
    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """The gradient of every input (None where there is none), from the gradient of the output."""

    @abstractmethod
    def explain(self, index: Index, *inputs: Source) -> Working:
        """The terms that made one cell."""

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        """The terms of one cell of the gradient of an input that has one; None where the op does not write them out."""
        return passed_on(gradient.operand(*index)) if self.gradient_formula(toward) == "∂y" else None

    def gradient_formula(self, toward: int) -> str:
        """How the gradient of an input is computed; "" where there is none."""
        return self.chain[min(toward, len(self.chain) - 1)] if self.chain else ""

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """The cells that have to be computed together to get those of `region`."""
        if self.whole_axes:
            pairs = enumerate(zip(region, shape, strict=True))
            region = tuple(range(size) if axis in self.whole_axes else part for axis, (part, size) in pairs)
        return (*region[:-1], range(shape[-1])) if self.whole_rows else region

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """For each input, the cells that `region` (already widened) is computed from."""
        if not self.along:
            return tuple(region if len(shape) == len(region) else whole(shape) for shape in inputs)
        last, read = len(self.along) - 1, list[Region]()
        for i, shape in enumerate(inputs):
            pairs = zip(self.along[min(i, last)][-len(shape) :], shape, strict=True)
            read.append(tuple([range(size) if axis is None else region[axis] for axis, size in pairs]))
        return tuple(read)

    def idle(self, chosen: Array) -> bool:
        """True if no row is computed, given the last input; the op then reads no value of its other inputs."""
        return False

    def density(self, *inputs: Axes) -> float:
        """Rows of the result that are computed, of all; the others are 0 and take no memory."""
        return 1.0

    def flops(self, *inputs: Axes) -> int:
        """Floating-point operations of one forward pass of one sentence."""
        return self.cost * math.prod(shape_of(self.axes(*inputs)))


def writable(array: Array) -> bool:
    """Whether a result can be written over an array that nobody reads any more: in one piece, and no other step's."""
    return array.flags.c_contiguous and getattr(array.flags, "writeable", True)  # CuPy locks nothing


def flat(array: Array) -> Array:
    """The array as rows × its last axis: one matrix product serves the whole batch."""
    return array.reshape(-1, array.shape[-1])


def passed_on(
    cell: Operand, factor: float = 1.0, symbol: str = "", note: str = "", read: Operand | None = None
) -> Working:
    """A gradient that reaches one cell of the input from one cell of the result, times the local derivative."""
    items: tuple[Item, ...] = (cell.called("∂y"),)
    if symbol:
        items = (*items, Value(symbol, factor, read, note))
    return Working(items, cell.value * factor)


def single(total: Sum) -> Working:
    """A sum and nothing else."""
    return Working((total,), total.total)


# Blocks: they stay in a core's cache while several passes go over them

Work = Callable[..., None]
"""Takes the same rows of every array and writes its result into one of them; rows do not depend on each other."""

SHARED = 4
"""Blocks from which cores share them, and that each then takes at a time: a thread has to wait for another's calls."""


def by_rows(backend: Backend, work: Work, *arrays: Array, columns: int | None = None) -> None:
    """Do work on all rows of these arrays: at once on a GPU and where they are one block, else block by block.

    The arrays are all of one shape, … × columns; those that are written to are contiguous. Where no cell depends on
    another, a row has one column.
    """
    size = arrays[0].size
    if backend.device != "cpu" or size <= backend.block:
        work(*arrays)
        return
    rows = [array.reshape(-1, columns or array.shape[-1]) for array in arrays]
    takers = min(cores(), 2 * size // (SHARED * backend.block))
    parts = max(takers, size // (SHARED * backend.block)) if takers > 1 else -(-size // backend.block)
    height = -(-len(rows[0]) // parts)
    starts = iter(range(0, len(rows[0]), height))  # one for all threads: each takes the next

    def blocks() -> None:
        for start in starts:
            work(*(array[start : start + height] for array in rows))

    on_cores(takers, blocks)
