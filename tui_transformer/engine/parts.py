"""Parts of steps: a region is computed from regions of what the step reads, so that a large array need not be whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tui_transformer.engine.axis import Region, slices, within
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.edits import Change, changed, widened
from tui_transformer.engine.program import Program, Step

BLOCK_CELLS = 1 << 22
"""Cells of a dropped array that are computed at a time, unless a trace is told otherwise (16 MiB in float32)."""

Values = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Parts:
    """How steps of a program are made in parts.

    Attributes:
        held: Whether a step is kept whole, or will be once it is computed.
        block: Cells of a dropped array that are computed at a time.
    """

    program: Program
    backend: Backend
    batch: int
    edits: tuple[Change, ...]
    held: Callable[[str], bool]
    block: int = BLOCK_CELLS

    def dropped(self, name: str) -> bool:
        """Whether a step is not kept and comes back in windows."""
        step = self.program.by_name.get(name)
        return step is not None and step.windowed and not self.held(name)

    def large(self, name: str) -> bool:
        """Whether a step is never made whole on the way to others: it is dropped, and more than a block."""
        return name in self._over_a_block and self.dropped(name)

    @cached_property
    def _over_a_block(self) -> frozenset[str]:
        steps = (step for step in self.program.steps if step.windowed)
        return frozenset(step.name for step in steps if math.prod(step.shape) * self.batch > self.block)

    def in_blocks(self, step: Step) -> bool:
        """Whether a step reads something that is too large to be made at once."""
        few = self._over_a_block.isdisjoint(step.inputs)
        return not few and len(step.axes) > 1 and any(self.large(source) for source in step.inputs)

    def remade(self, step: Step) -> list[Step]:
        """The inputs that are computed, and let go, while a step is made in blocks."""
        return [self.program.step(name) for name in step.inputs if self.dropped(name)] if self.in_blocks(step) else []

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
        result = self.backend.empty((self.batch, *map(len, region)))
        for piece in pieces:
            if before is not None:
                before(step)
            result[within(piece, region)] = self.make_piece(step, piece, values)
        return result

    def pieces(self, step: Step, region: Region) -> Iterator[Region]:
        """The region, or a few rows of one head at a time where that is more than a block; the same in every trace."""
        if len(region) < 2:
            yield region
            return
        *heads, rows, columns = region
        height = self.block // max(1, self._width(step, region) * self.batch)
        if math.prod(map(len, heads)) * len(rows) <= height:
            yield region
            return
        for head in heads[0] if heads else (0,):
            for start in range(rows.start, rows.stop, max(1, height)):
                part = range(start, min(start + max(1, height), rows.stop))
                yield (*(range(head, head + 1) for _ in heads), part, columns)

    def _width(self, step: Step, region: Region) -> int:
        """Cells a row of the region takes, in the step or in what it is made from that comes back in windows."""
        wide, reads = self._reads(step, region)
        steps = map(self.program.by_name.get, step.inputs)
        parts = (part for maker, part in zip(steps, reads, strict=True) if maker is not None and maker.windowed)
        return max(len(wide[-1]), *(len(part[-1]) for part in parts), 1)

    def _reads(self, step: Step, region: Region) -> tuple[Region, tuple[Region, ...]]:
        """The cells that are computed together to get a region, and what they are computed from in every input."""
        shapes = [self.program.shape(source) for source in step.inputs]
        wide = step.op.widen(region, shapes, step.shape)
        wide = step.op.widen(widened(self.edits, step.name, wide), shapes, step.shape)
        return wide, step.op.reads(wide, shapes)

    def make_piece(self, step: Step, region: Region, values: Values) -> Array:
        """A region of a step from regions of its inputs, edits included."""
        wide, reads = self._reads(step, region)
        parts = [self._part(source, part, values) for source, part in zip(step.inputs, reads, strict=True)]
        result = step.op.forward(self.backend, *parts)
        return changed(self.edits, step.name, self.backend, result, wide)[within(region, wide)]

    def _part(self, name: str, region: Region, values: Values) -> Array:
        if name not in values:
            return self.make_piece(self.program.step(name), region, values)
        return values[name][place(self.program, name, region)]


def place(program: Program, name: str, region: Region) -> tuple[slice, ...]:
    """Where a region is in a whole array: behind the batch axis, which weights do not have."""
    return slices(region)[1:] if name in program.weights else slices(region)
