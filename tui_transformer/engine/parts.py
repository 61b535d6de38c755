"""What a trace keeps, decided from shapes before anything is computed, and how the rest is made again in parts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tui_transformer.engine.axis import Region, slices, whole, within
from tui_transformer.engine.backend import POOL, Array, Backend
from tui_transformer.engine.compact import SparseArray, packed
from tui_transformer.engine.edits import Change, changed, widened
from tui_transformer.engine.program import Program, Step
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import available_memory, readable
from tui_transformer.records import dataclass

MEBIBYTE = 1 << 20
DEFAULT_BUDGET = 512 * MEBIBYTE
RESIDUAL = frozenset({"output", "residual", "norm", "query", "key", "value", "tokens", "positions"})
"""Last parts of the names of steps that are kept long: the residual stream, q, k and v."""
PROJECTIONS = frozenset({"query", "key", "value"})
"""Last parts of the names of steps that windows of attention weights and context are made from."""
ACTIVE_SHARE = 1 / 16
"""Of what is mostly 0: the memory that it may take of that of all cells, where not everything fits."""


@dataclass(frozen=True)
class Plan:
    """Names of the steps that are kept, the bytes that they take, and those that everything would take."""

    names: frozenset[str]
    bytes: int
    total: int

    @property
    def everything(self) -> bool:
        """Nothing is dropped."""
        return self.bytes == self.total


def keep_plan(program: Program, bytes_per_cell: int, budget: int = DEFAULT_BUDGET) -> Plan:
    """Keep everything while it fits the budget, else less, down to what leaves some of the layers.

    First what is made again from few numbers goes: tokens × vocabulary, then queries × keys, then both. Of the rest,
    the residual stream, q, k and v stay longest; last of all what leaves every k-th layer, from which the layers after
    it are computed again. Active features are few, and stay as long as the stream.

    Args:
        program: The steps.
        bytes_per_cell: Bytes of one number, times the batch.
        budget: Bytes that may be kept. 0 keeps nothing.

    Raises:
        UsageError: The budget is below 0.
    """
    if not budget >= 0:
        raise UsageError(f"a budget is bytes that may be kept: 0 or more, not {budget}")
    total = program.step_cells() * bytes_per_cell
    sizes = ((steps, _cells(program, steps) * bytes_per_cell) for steps in _choices(program))
    return next(Plan(frozenset(step.name for step in steps), size, total) for steps, size in sizes if size <= budget)


def _cells(program: Program, steps: Sequence[Step]) -> int:
    few = 0 if len(steps) == len(program.steps) else sum(math.prod(each.shape) for each in steps if each.mostly_zero)
    return program.step_cells(steps) - int(few * (1 - ACTIVE_SHARE))


def _choices(program: Program) -> Iterator[tuple[Step, ...]]:
    """Sets of steps that may be kept, from all to nothing."""
    layers = layer_outputs(program)
    yield program.steps
    yield tuple(step for step in program.steps if step.square or step.mostly_zero or not step.windowed)
    yield tuple(step for step in program.steps if not step.square)
    yield tuple(step for step in program.steps if step.mostly_zero or not step.windowed)
    yield tuple(step for step in program.steps if step.mostly_zero or _last_part(step) in RESIDUAL)
    yield tuple(step for step in program.steps if step.name in layers or _last_part(step) in PROJECTIONS)
    stacks: dict[str, list[Step]] = {}
    for name in layers:
        stacks.setdefault(name.partition(".")[0], []).append(program.step(name))
    for stride in range(1, len(layers) + 1):  # the last layer of each stack, and every so many layers before it
        yield tuple(step for stack in stacks.values() for step in stack[::-1][::stride])
    yield ()


def _last_part(step: Step) -> str:
    return step.name.rpartition(".")[2]


def layer_outputs(program: Program) -> tuple[str, ...]:
    """The own names of what leaves each layer, in order."""
    own = re.compile(r"[^.]+\.\d+\.output")
    return tuple(program.aliases[name] for name in program.names if name in program.aliases and own.fullmatch(name))


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise InputError where more memory is needed than is free; what lies idle is given back before that."""
    if needed > available_memory():
        POOL.clear()
    free = available_memory()
    if needed > free:
        raise InputError(f"{what} {readable(needed)} of memory and {readable(free)} are free: {advice}")


BLOCK_CELLS = 1 << 22
"""Cells of a dropped array that are computed at a time, unless a trace is told otherwise (16 MiB in float32)."""

Values = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Parts:
    """How steps of a program are made in parts.

    Attributes:
        dropped: Whether a step is not kept, and comes back in windows.
        block: Cells of a dropped array that are computed at a time.
    """

    program: Program
    backend: Backend
    batch: int
    edits: tuple[Change, ...]
    dropped: Callable[[str], bool]
    block: int = BLOCK_CELLS

    def large(self, name: str) -> bool:
        """Whether a step is never made whole on the way to others: more than a block, and dropped or mostly 0."""
        return name in self._over_a_block and (self.program.step(name).mostly_zero or self.dropped(name))

    @cached_property
    def _over_a_block(self) -> frozenset[str]:
        steps = (step for step in self.program.steps if step.windowed)
        return frozenset(step.name for step in steps if math.prod(step.shape) * self.batch > self.block)

    def in_blocks(self, step: Step) -> bool:
        """Whether a step reads something that is too large to be made at once."""
        few = self._over_a_block.isdisjoint(step.inputs)
        return not few and len(step.axes) > 1 and any(self.large(source) for source in step.inputs)

    def sources(self, step: Step) -> list[str]:
        """Steps that have to be there whole before parts of a step can be made."""
        names: list[str] = []
        for source in step.inputs:
            names += self.sources(self.program.step(source)) if self.dropped(source) else [source]
        return names

    def make(self, step: Step, region: Region, values: Values, before: Callable[[Step], None] | None = None) -> Array:
        """A region of a step, piece by piece, from the values of its `sources`; `before` is called with each piece."""
        pieces = list(self.pieces(step, region))
        if len(pieces) == 1:
            return self.make_piece(step, region, values)
        if step.mostly_zero and region == whole(step.shape):
            return self._active(step, pieces, values, before)
        result = self.backend.empty((self.batch, *map(len, region)))
        for piece in pieces:
            if before is not None:
                before(step)
            result[within(piece, region)] = self.make_piece(step, piece, values)
        return result

    def _active(
        self, step: Step, pieces: Sequence[Region], values: Values, before: Callable[[Step], None] | None
    ) -> SparseArray:
        """What is active of a dictionary, from a piece at a time.

        Features that do not depend on each other are made some columns at a time: so a matrix in a file is read once.
        """
        if not step.op.whole_rows:
            rows, width = step.shape[:-1], max(1, self.block // (self.batch * math.prod(step.shape[:-1])))
            starts = range(0, step.shape[-1], width)
            pieces = [(*whole(rows), range(start, min(start + width, step.shape[-1]))) for start in starts]

        def parts() -> Iterator[tuple[tuple[slice, ...], Array]]:
            for piece in pieces:
                if before is not None:
                    before(step)
                yield slices(piece), self.make_piece(step, piece, values)

        return packed(self.backend, (self.batch, *step.shape), parts())

    def pieces(self, step: Step, region: Region) -> Iterator[Region]:
        """The region, or a few rows of one head at a time where that is more than a block; the same in every trace."""
        if len(region) < 2:
            yield region
            return
        *heads, rows, columns = region
        lines = math.prod(map(len, heads)) * len(rows)
        makers = [self.program.by_name.get(name) for name in step.inputs]  # what is windowed itself may be wider
        if lines * max(each.shape[-1] for each in (step, *filter(None, makers))) * self.batch <= self.block:
            yield region  # it is small, whatever part of the inputs is read
            return
        wide, reads = self._reads(step, region)
        widths = (len(part[-1]) for maker, part in zip(makers, reads, strict=True) if maker and maker.windowed)
        height = self.block // max(1, max(len(wide[-1]), *widths, 1) * self.batch)
        if lines <= height:
            yield region
            return
        for head in heads[0] if heads else (0,):
            for start in range(rows.start, rows.stop, max(1, height)):
                part = range(start, min(start + max(1, height), rows.stop))
                yield (*(range(head, head + 1) for _ in heads), part, columns)

    def _reads(self, step: Step, region: Region) -> tuple[Region, tuple[Region, ...]]:
        """The cells that are computed together to get a region, and what they are computed from in every input."""
        shapes = [self.program.shape(source) for source in step.inputs]
        wide = step.op.widen(region, shapes, step.shape)
        wide = step.op.widen(widened(self.edits, step.name, wide), shapes, step.shape)
        return wide, step.op.reads(wide, shapes)

    def make_piece(self, step: Step, region: Region, values: Values) -> Array:
        """A region of a step from regions of its inputs, edits included."""
        wide, reads = self._reads(step, region)
        parts = [
            values[name][self.program.place(name, part)]
            if name in values
            else self.make_piece(self.program.step(name), part, values)
            for name, part in zip(step.inputs, reads, strict=True)
        ]
        result = step.op.forward(self.backend, *parts)
        return changed(self.edits, step.name, self.backend, result, wide)[within(region, wide)]
