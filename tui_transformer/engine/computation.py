"""The values of a program on the device: computed in order, kept as a plan says, dropped after their last reader."""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from tui_transformer.engine.axis import Region, whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.compact import WORTH, SparseArray, dense, packed
from tui_transformer.engine.edits import Change, changed
from tui_transformer.engine.ops.base import writable
from tui_transformer.engine.parts import ACTIVE_SHARE, Parts, Plan, keep_plan
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.weights import Weights
from tui_transformer.records import dataclass, field

Watch = Callable[[Step], None]
"""Called with every step that is about to run, and before every block of one that is made in blocks.

What it raises ends the computation; what is there already stays.
"""


@dataclass(eq=False)
class Computation:
    """The values that a trace has computed, and how it computes more. Arrays have a batch axis; weights have none.

    The `base` is the same before all edits, which keeps what they do not reach. Besides the values that are held, there
    is what the last window was made from (`recent`), until another needs something else. Where the base is of one
    sentence and this is a batch of it, what lies before the edits is `shared`. Of an array that is not kept so many
    cells are computed at a time as `block` says. What is mostly 0 is held as a SparseArray; where it is not, and not
    everything fits, it is among the `refused`.
    """

    program: Program
    weights: Weights
    givens: Mapping[str, Host]
    budget: int
    edits: tuple[Change, ...]
    base: Computation | None
    block: int
    held: dict[str, Array]
    recent: dict[str, Array] = field(default_factory=dict)
    shared: dict[str, Array] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    @property
    def backend(self) -> Backend:
        """Where the values are computed."""
        return self.weights.backend

    @cached_property
    def batch(self) -> int:
        """Number of sentences that are computed together."""
        return max((array.shape[0] for array in self.givens.values()), default=1)

    @cached_property
    def plan(self) -> Plan:
        """The steps that are kept, and the memory that they take."""
        return keep_plan(self.program, self.backend.dtype.itemsize * self.batch, self.budget)

    @cached_property
    def parts(self) -> Parts:
        """How large steps are made in parts."""
        here = weakref.proxy(self)  # no circle: memory is there again as soon as nobody holds the trace
        return Parts(
            self.program,
            self.backend,
            self.batch,
            self.edits,
            lambda name: here._dropped(name),
            self.block,
        )

    # What is there

    @cached_property
    def _changed(self) -> frozenset[str]:
        return self.program.downstream(edit.name for edit in self.edits)

    def owner(self, name: str) -> Computation:
        """That which keeps a value: the base, if no edit reaches it."""
        return self if self.base is None or name in self._changed else self.base

    def _unedited(self, step: Step) -> Array | None:
        """Values of an edited step before the edit, where the base holds them and no other edit reaches it."""
        if self.base is None or not self._begins(step):
            return None
        held = self.base.held.get(step.name, self.shared.get(step.name))
        return None if held is None else dense(self._repeated(held) if self._repeats else held)

    def _begins(self, step: Step) -> bool:
        return any(edit.name == step.name for edit in self.edits) and self._changed.isdisjoint(step.inputs)

    def _keeps(self, name: str) -> bool:
        owner = self.owner(name)
        return name in owner.plan.names and name not in owner.refused

    def _dropped(self, name: str) -> bool:
        """Whether a step is not kept and comes back in windows."""
        step = self.program.by_name.get(name)
        return step is not None and step.windowed and not (self._keeps(name) or self._there(name))

    def _there(self, name: str) -> bool:
        if name in self.program.weights or name in self.program.givens or name in self.owner(name).held:
            return True
        return name in self.shared and name not in self._changed

    def _apart(self, name: str) -> bool:
        weights = self.program.weights
        return name in weights and name not in self._changed and self.weights.apart(name, self.program.shape(name))

    def _value(self, name: str, values: Mapping[str, Array]) -> Array:
        """A value that is there: just computed, kept, a weight or an input."""
        if name in values:
            return values[name]
        if name in self.program.weights and name not in self._changed:
            return self.weights.operand(name, self.program.shape(name))
        store = self.owner(name).held
        if name in self.program.weights:
            if name not in store:
                shape = self.program.shape(name)
                weight = self.weights.get(name, shape)
                store[name] = changed(self.edits, name, self.backend, weight, whole(shape))
            return store[name]
        if name in self.givens and name not in store:
            given = self.owner(name).givens[name]
            floats, booleans, integers = self.backend.floats, self.backend.booleans, self.backend.integers
            store[name] = {"b": booleans, "f": floats}.get(given.dtype.kind, integers)(given)
        held = store[name] if name in store else self.shared[name]
        return self._repeated(held) if self._repeats else held

    @cached_property
    def _repeats(self) -> bool:
        """Whether the base is of one sentence, and this of several that are the same before their edits."""
        return self.base is not None and self.base.batch != self.batch

    def _repeated(self, array: Array) -> Array:
        """A value of the base for every sentence; nothing is copied."""
        return self.backend.xp.broadcast_to(dense(array), (self.batch, *array.shape[1:]))

    def _share(self, names: Sequence[str], before: Watch | None) -> None:
        """Have the base compute what the steps that edits reach are made from, so that it is done for one sentence."""
        wanted: set[str] = set()
        waiting, seen = list(names), set(self.recent)
        while waiting:
            name = waiting.pop()
            if name in seen or name in self.program.weights or name in self.program.givens:
                continue
            seen.add(name)
            step = self.program.step(name)
            if name not in self._changed or self._begins(step):
                wanted.add(name)
            else:
                waiting += self._reads(step)
        assert self.base is not None  # noqa: S101
        missing = sorted(wanted - self.base.held.keys() - self.shared.keys(), key=self.program.places.__getitem__)
        self.shared |= self.base.compute(missing, before=before)

    # Whole steps

    @np.errstate(all="ignore")
    def compute(self, names: Sequence[str], *, discard: bool = False, before: Watch | None = None) -> dict[str, Array]:
        """Compute steps in order, keep those of the plan, and drop every other value after its last reader."""
        if self._repeats:
            self._share(names, before)
        values = dict(self.recent)
        if order := self._order(names, values):
            self.backend.expect(self.plan.bytes)
        readers = Counter(source for _, reads in order for source in reads)
        readers.update(() if discard else names)
        readers.update(list(values))  # others may be reading what there is: it is not written over
        for step, reads in order:
            if before is not None:
                before(step)
            values[step.name] = self.run(step, reads, values, readers, before)
            for name in reads:
                readers[name] -= 1
            for name in (step.name, *reads):
                if not readers[name]:
                    values.pop(name, None)
        return {} if discard else {name: self._value(name, values) for name in names}

    def pending(self, names: Sequence[str], most: float = math.inf) -> int:
        """Floating-point operations that it would take to have these steps; counted until they are more than `most`."""
        seen, waiting, count = set[str](), list(names), 0
        while waiting and count <= most:
            name = waiting.pop()
            if name in seen or name in self.recent or self._there(name):
                continue
            seen.add(name)
            step = self.program.step(name)
            count += self.batch * self.flops(step)
            waiting += self._reads(step)
        return count

    def flops(self, step: Step) -> int:
        """Of a step and of the dropped steps that are made again for it, for one sentence."""
        if self._unedited(step) is not None:
            return 0
        again = step.inputs if self.parts.in_blocks(step) else ()
        made = (self.program.step(name) for name in again if self.parts.dropped(name))
        return self.program.flops(step) + sum(map(self.flops, made))

    def _order(self, names: Sequence[str], there: Mapping[str, Array]) -> list[tuple[Step, Sequence[str]]]:
        """The steps that have to run for these, in order, with what they read; what is there stops the search."""
        needed: dict[int, tuple[Step, Sequence[str]]] = {}
        seen, waiting, places = set(there), list(names), self.program.places
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                if not self._there(name):
                    step = self.program.step(name)
                    needed[places[name]] = step, self._reads(step)
                    waiting += needed[places[name]][1]
        return [needed[place] for place in sorted(needed)]

    def _reads(self, step: Step) -> Sequence[str]:
        if self._unedited(step) is not None:
            return ()
        return self.parts.sources(step) if self.parts.in_blocks(step) else step.inputs

    def run(
        self,
        step: Step,
        reads: Sequence[str],
        values: Mapping[str, Array],
        readers: Counter[str],
        before: Watch | None,
    ) -> Array:
        """One step from what it was found to read, kept if the plan says so."""
        region, result = whole(step.shape), self._unedited(step)
        if result is None and self.parts.in_blocks(step):
            sources = {name: self._value(name, values) for name in reads}
            result = self.parts.make(step, region, sources, before)
        else:
            if result is None:
                operands = self._operands(step, values)
                result = step.op.forward(self.backend, *operands, out=self._spare(step, values, readers))
                if len(result) < self.batch:  # a weight as a step: each sentence has it
                    result = self.backend.xp.broadcast_to(result, (self.batch, *result.shape[1:]))
            result = changed(self.edits, step.name, self.backend, result, region)
        if self._keeps(step.name):
            self.owner(step.name).keep(step, result)
        return result

    def keep(self, step: Step, value: Array | SparseArray) -> None:
        """Hold a value; of what is mostly 0 the cells that are not, where that is less."""
        if step.mostly_zero:
            size, many = math.prod(value.shape) * self.backend.dtype.itemsize, WORTH * math.prod(value.shape)
            if not isinstance(value, SparseArray) and self.backend.xp.count_nonzero(value) <= many:
                value = packed(self.backend, value.shape, [((), value)])
            value = dense(value) if value.nbytes > WORTH * size else value
            if value.nbytes > size * ACTIVE_SHARE and not self.plan.everything:
                self.refused.add(step.name)
                return
        self.held[step.name] = value

    def _operands(self, step: Step, values: Mapping[str, Array]) -> tuple[Array, ...]:
        """Inputs of a step; of a large table in a file only the rows that are looked up."""
        if step.op.is_lookup and self._apart(step.inputs[1]):
            ids, table = step.inputs
            return self.weights.looked_up(table, self.program.shape(table), self._value(ids, values))
        if step.op.sparse and step.op.idle(chosen := self._value(step.inputs[-1], values)):
            return (*self.unread(step), chosen)
        return tuple([dense(self._value(name, values)) for name in step.inputs])

    def unread(self, step: Step) -> tuple[Array, ...]:
        """Zeros in place of the inputs (all but the last) of a step that reads none of them."""
        shapes = ((self.program.shape(name), name in self.program.weights) for name in step.inputs[:-1])
        sizes = (shape if weight else (self.batch, *shape) for shape, weight in shapes)
        zero = self.backend.floats(np.zeros(()))
        return tuple(self.backend.xp.broadcast_to(zero, size) for size in sizes)

    def _spare(self, step: Step, values: Mapping[str, Array], readers: Counter[str]) -> Array | None:
        """The first input, if the op may write over it: nobody keeps it and nobody else reads it."""
        if not step.op.overwrites:
            return None
        first = step.inputs[0]
        fresh = first in values and not self._keeps(first)
        if not fresh or readers[first] > 1 or step.inputs.count(first) > 1 or not writable(values[first]):
            return None
        return values[first]

    # Parts

    def needed(self, name: str) -> list[str]:
        """Steps that have to be there whole before a part of a value can be read."""
        if self._apart(name):
            return []
        return self.parts.sources(self.program.step(name)) if self._dropped(name) else [name]

    def sources_of(self, step: Step) -> list[str]:
        """Steps that have to be there whole before parts of a step can be read and explained."""
        return list(dict.fromkeys(source for name in (step.name, *step.inputs) for source in self.needed(name)))

    def ready(self, needed: Sequence[str], before: Watch | None = None) -> dict[str, Array]:
        """Values that parts are made from; what of them is not kept is there until something else is wanted."""
        values = self.compute(needed, before=before)
        fresh = {name: value for name, value in values.items() if not self._there(name)}
        if not fresh.keys() <= self.recent.keys():
            self.recent = fresh
        return values

    def part(self, name: str, region: Region) -> Array:
        """A part of a step, with all items of the batch, or of a weight; only what it needs is computed."""
        if self._apart(name):
            return self.weights.part(name, self.program.shape(name), self.program.place(name, region))
        return self.read(name, region, self.ready(self.needed(name)))

    @np.errstate(all="ignore")
    def read(self, name: str, region: Region, values: Mapping[str, Array]) -> Array:
        """A part of a value that is among these, or of a step that is made from them."""
        if name in values:
            return values[name][self.program.place(name, region)]
        return dense(self.parts.make(self.program.step(name), region, values))
