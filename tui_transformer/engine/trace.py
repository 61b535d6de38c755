"""A trace: the values of a program for one input, computed when they are asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tui_transformer.engine.axis import Region, cells, shape_text, slices, whole, within
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.explanation import Explanation, Index, Source, Value, Working
from tui_transformer.engine.keep import DEFAULT_BUDGET, Plan, keep_plan
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError

BLOCK_CELLS = 1 << 22
"""Cells of a dropped array that are computed at a time (16 MiB in float32)."""


@dataclass(frozen=True)
class Edit:
    """A value set by hand: one cell of a step or of a weight. The index does not count the batch axis."""

    name: str
    index: Index
    value: float


@dataclass(eq=False)
class Trace:
    """Values of every step, computed on demand and read-only.

    `trace[name]` gives a host array (the batch axis is left out where the batch is 1); `window` only a part of one.
    A trace with edits shares every value that no edit reaches with the trace that it was made from.
    """

    program: Program
    weights: Weights
    givens: Mapping[str, Host]
    budget: int = DEFAULT_BUDGET
    edits: tuple[Edit, ...] = ()
    base: Trace | None = None
    _held: dict[str, Array] = field(default_factory=dict, repr=False)

    # What there is

    @property
    def backend(self) -> Backend:
        """Where the values are computed."""
        return self.weights.backend

    @property
    def names(self) -> tuple[str, ...]:
        """Every step and alias in order."""
        return self.program.names

    @cached_property
    def batch(self) -> int:
        """How many sentences are computed together."""
        return max((array.shape[0] for array in self.givens.values()), default=1)

    @cached_property
    def plan(self) -> Plan:
        """What is kept, and the memory that it takes."""
        return keep_plan(self.program, self.backend.dtype.itemsize * self.batch, self.budget)

    @property
    def held(self) -> frozenset[str]:
        """The steps whose values are there already."""
        return frozenset(name for name in self.program.by_name if name in self._store(name))

    @property
    def held_bytes(self) -> int:
        """Bytes that the kept values take."""
        return sum(int(array.nbytes) for name, array in self._held.items() if name not in self.givens)

    # Reading

    def __getitem__(self, name: str) -> Host:
        """A whole step or weight on the host, read-only."""
        return self.hand_out(name, self.array(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.program.by_name or name in self.program.aliases

    def array(self, name: str) -> Array:
        """A whole step, weight or input on the device, with its batch axis (weights have none)."""
        return self.arrays((name,))[0]

    @np.errstate(all="ignore")
    def arrays(self, names: Sequence[str]) -> tuple[Array, ...]:
        """Several at once, each step on the way computed once."""
        wanted = [self.program.aliases.get(name, name) for name in names]
        got = self._compute(wanted)
        return tuple(got[name] for name in wanted)

    @np.errstate(all="ignore")
    def compute(self, names: Iterable[str] | None = None, before: Callable[[Step], None] | None = None) -> None:
        """Compute and keep steps (by default all that are to be kept, and the last) without handing them out.

        `before` is called with every step that is about to run; what it raises ends the computation, and the values
        that are there already stay.
        """
        names = (*self.plan.names, self.program.steps[-1].name) if names is None else names
        self._compute([self.program.step(name).name for name in names], discard=True, before=before)

    def pending(self, names: Sequence[str]) -> int:
        """Floating-point operations that it would take to have these steps."""
        steps = self._order([self.program.aliases.get(name, name) for name in names])
        return self.batch * sum(self._flops(step) for step in steps)

    def _flops(self, step: Step) -> int:
        """Of a step and of the dropped steps that are made again for it."""
        dropped = (self.program.step(name) for name in step.inputs if self._dropped(name))
        return self.program.flops(step) + sum(map(self._flops, dropped))

    @np.errstate(all="ignore")
    def window(self, name: str, region: Region, item: int = 0) -> Host:
        """The cells of a region (one range an axis, no batch axis) of one item of the batch, on the host."""
        name = self.program.aliases.get(name, name)
        part = self._part(name, region)
        return self._read_only(part if name in self.program.weights else part[item])

    def explain(
        self, name: str, *, head: int | None = None, row: int = 0, column: int = 0, item: int = 0
    ) -> Explanation:
        """How one cell was made: see `explain_cell`. `head` only where the step has heads."""
        axes = len(self.program.axes(name))
        if axes == 3 and head is None:
            head = 0
        index = {1: (row,), 2: (row, column), 3: (head or 0, row, column)}[axes]
        return self.explain_cell(name, index, item)

    @np.errstate(all="ignore")
    def explain_cell(self, name: str, index: Index, item: int = 0) -> Explanation:
        """The terms that made one cell of a step or weight, and its value worked out again in float64.

        Raises:
            InputError: The cell is outside the step.
        """
        name = self.program.aliases.get(name, name)
        self._check_index(name, index)
        stored = self._source(name, item).cell(*index)
        edited = any(edit.name == name and edit.index == index for edit in self.edits)
        if name in self.program.weights or name in self.givens:
            working, formula = Working((Value("value", stored),), stored), "given"
        else:
            step = self.program.step(name)
            working = step.op.explain(index, *(self._source(source, item) for source in step.inputs))
            formula = step.op.formula
        return Explanation(name, index, formula, working.items, working.result, stored, edited)

    # Editing

    def edited(self, edits: Sequence[Edit]) -> Trace:
        """A trace with these edits in place of any earlier ones; what they do not reach is shared.

        Raises:
            InputError: An edit names no step or weight, or a cell outside it, or a value that cannot be there.
        """
        origin = self.base or self
        edits = tuple(replace(edit, name=self.program.aliases.get(edit.name, edit.name)) for edit in edits)
        for edit in edits:
            self._check_index(edit.name, edit.index)
            self._check_value(edit)
        if not edits:
            return origin
        return Trace(origin.program, origin.weights, origin.givens, origin.budget, edits, origin)

    @cached_property
    def _changed(self) -> frozenset[str]:
        return self.program.downstream(edit.name for edit in self.edits)

    def _check_index(self, name: str, index: Index) -> None:
        shape = self.program.shape(name)
        if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=True)):
            raise InputError(f"{name} has no cell [{', '.join(map(str, index))}]: it is {shape_text(shape)}")

    def _check_value(self, edit: Edit) -> None:
        if edit.name in self.givens:
            raise InputError(f"{edit.name} is an input: set a step or a weight")
        if math.isnan(edit.value):
            raise InputError(f"{edit.name} can be set to a number, not to NaN")
        step = self.program.by_name.get(edit.name)
        if step is not None and step.op.integer:
            limit = min(self.program.shape(reader.inputs[1])[0] for reader in self.program.readers(edit.name))
            if not (0 <= edit.value < limit and float(edit.value).is_integer()):
                raise InputError(f"{edit.name} holds whole numbers from 0 to {limit - 1}, not {edit.value:g}")

    def _apply_edits(self, name: str, array: Array, region: Region, *, batched: bool) -> Array:
        """The array of a region with the edits of that name that lie inside it."""
        inside = [
            edit
            for edit in self.edits
            if edit.name == name and all(i in part for i, part in zip(edit.index, region, strict=True))
        ]
        if not inside:
            return array
        array = array.copy()
        for edit in inside:
            place = tuple(i - part.start for i, part in zip(edit.index, region, strict=True))
            array[(slice(None), *place) if batched else place] = edit.value
        return array

    # Computing whole steps

    def _compute(
        self, names: Sequence[str], *, discard: bool = False, before: Callable[[Step], None] | None = None
    ) -> dict[str, Array]:
        """Compute steps in order, keep those of the plan, and drop every other value after its last reader."""
        values: dict[str, Array] = {}
        order = self._order(names)
        readers = Counter(source for step in order for source in self._reads(step))
        if not discard:
            readers.update(names)
        for step in order:
            if before is not None:
                before(step)
            values[step.name] = self._run(step, values, readers)
            readers.subtract(self._reads(step))
            for name in (step.name, *self._reads(step)):
                if not readers[name]:
                    values.pop(name, None)
        return {} if discard else {name: self._value(name, values) for name in names}

    def _order(self, names: Sequence[str]) -> list[Step]:
        """The steps that have to run for these, in order; those that are there already stop the search."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed and not self._there(name):
                needed.add(name)
                waiting += self._reads(self.program.step(name))
        places = self.program.places
        return [self.program.steps[place] for place in sorted(places[name] for name in needed)]

    def _reads(self, step: Step) -> Sequence[str]:
        """What has to be there before a step can run."""
        return self._kept_sources(step) if self._in_blocks(step) else step.inputs

    def _run(self, step: Step, values: Mapping[str, Array], readers: Counter[str]) -> Array:
        """One step, kept if the plan says so."""
        if self._in_blocks(step):
            result = self._blocks(step, values)
        else:
            inputs = [self._value(name, values) for name in step.inputs]
            result = step.op.forward(self.backend, *inputs, out=self._spare(step, values, readers))
        result = self._apply_edits(step.name, result, whole(step.shape), batched=True)
        if step.name in self.plan.names:
            self._store(step.name)[step.name] = result
        return result

    def _spare(self, step: Step, values: Mapping[str, Array], readers: Counter[str]) -> Array | None:
        """The first input, if the op may write over it: nobody keeps it and nobody else reads it."""
        first = step.inputs[0]
        free = step.op.overwrites and first in values and first not in self.plan.names and readers[first] == 1
        return values[first] if free and step.inputs.count(first) == 1 else None

    def _store(self, name: str) -> dict[str, Array]:
        """Where the value of a name is kept: in the base, if no edit reaches it."""
        return self._held if self.base is None or name in self._changed else self.base._held

    def _there(self, name: str) -> bool:
        """Whether no step has to run for a value."""
        return name in self._store(name) or name in self.program.weights or name in self.program.givens

    def _value(self, name: str, values: Mapping[str, Array]) -> Array:
        """A value that is there: just computed, kept, a weight or an input."""
        if name in values:
            return values[name]
        store = self._store(name)
        if name in store:
            return store[name]
        return self._weight(name) if name in self.program.weights else self._given(name)

    def _weight(self, name: str) -> Array:
        shape = self.program.shape(name)
        weight = self.weights.get(name, shape)
        if name not in self._changed:
            return weight
        self._held[name] = self._apply_edits(name, weight, whole(shape), batched=False)
        return self._held[name]

    def _given(self, name: str) -> Array:
        given, store = self.givens[name], self._store(name)
        convert = self.backend.booleans if given.dtype == np.bool_ else self.backend.integers
        store[name] = convert(given)
        return store[name]

    # Computing parts

    def _in_blocks(self, step: Step) -> bool:
        """Whether a step reads queries × keys that are too large to be made at once."""
        return any(self._dropped(source) for source in step.inputs) and step.axes[0].name == "head"

    def _dropped(self, name: str) -> bool:
        step = self.program.by_name.get(name)
        return step is not None and step.square and name not in self.plan.names and self._cells(step) > BLOCK_CELLS

    def _cells(self, step: Step) -> int:
        return math.prod(step.shape) * self.batch

    def _kept_sources(self, step: Step) -> list[str]:
        """What the windows of a step will read that is not itself a window."""
        found: list[str] = []
        for source in step.inputs:
            found += self._kept_sources(self.program.step(source)) if self._dropped(source) else [source]
        return found

    def _blocks(self, step: Step, values: Mapping[str, Array]) -> Array:
        """A step that reads a dropped array, a few rows of one head at a time."""
        heads, rows, width = step.shape
        keys = max(self.program.shape(source)[-1] for source in step.inputs)
        height = max(1, BLOCK_CELLS // (keys * self.batch))
        result = self.backend.empty((self.batch, *step.shape))
        for head in range(heads):
            for row in range(0, rows, height):
                region = (range(head, head + 1), range(row, min(row + height, rows)), range(width))
                result[slices(region)] = self._made(step, region, values)
        return result

    def _part(self, name: str, region: Region) -> Array:
        """A part of a step, with all items of the batch, or of a weight; only what it needs is computed."""
        sources = self._kept_sources(self.program.step(name)) if self._dropped(name) else [name]
        return self._window(name, region, self._compute(sources))

    def _window(self, name: str, region: Region, values: Mapping[str, Array]) -> Array:
        """A part of a value that is there, or of a dropped step."""
        if name not in values and self._dropped(name):
            return self._made(self.program.step(name), region, values)
        place = slices(region)
        return self._value(name, values)[place[1:] if name in self.program.weights else place]

    def _made(self, step: Step, region: Region, values: Mapping[str, Array]) -> Array:
        """A part of a step from the parts of its inputs."""
        shapes = [self.program.shape(source) for source in step.inputs]
        wide = step.op.widen(region, shapes, step.shape)
        reads = step.op.reads(wide, shapes)
        parts = [self._window(source, part, values) for source, part in zip(step.inputs, reads, strict=True)]
        result = self._apply_edits(step.name, step.op.forward(self.backend, *parts), wide, batched=True)
        return result[within(region, wide)]

    # Handing out

    def _source(self, name: str, item: int) -> Source:
        """An input of an explanation."""
        shape = self.program.shape(name)

        def read(region: Region) -> Host:
            if cells(region) > BLOCK_CELLS:
                raise InputError(f"a line of {name} is too long to be explained")
            window = self._part(name, region)
            return self.backend.to_host(window if name in self.program.weights else window[item]).astype(np.float64)

        return Source(name, shape, read)

    def hand_out(self, name: str, array: Array) -> Host:
        """A device array of the step or weight `name`: on the host, without a batch axis of one, read-only."""
        single = name not in self.program.weights and array.shape[0] == 1
        return self._read_only(array[0] if single else array)

    def _read_only(self, array: Array) -> Host:
        view = self.backend.to_host(array).view()
        view.flags.writeable = False
        return view
