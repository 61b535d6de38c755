"""A trace: the values of a program for one input, computed when they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Region, cells, whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.edits import Change, changed, check_index, covers
from tui_transformer.engine.equation import equation_of
from tui_transformer.engine.explanation import Explanation, Index, Source, Value, Working
from tui_transformer.engine.keep import DEFAULT_BUDGET, Plan, keep_plan
from tui_transformer.engine.parts import BLOCK_CELLS, Parts, place
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError

SHOWN_TOKENS = 12
"""Of a `repr`."""

Watch = Callable[[Step], None]
"""Called with every step that is about to run, and before every block of one that is made in blocks.

What it raises ends the computation; what is there already stays.
"""


@dataclass(eq=False, repr=False)
class Trace(Mapping[str, Host]):
    """Values of every step by name, computed on demand and read-only.

    `trace[name]` gives a host array, with a batch axis where several sentences were asked for (be it a list of one);
    `window` only a part of one. A name is whole, or the end of a single one: `0.self_attention.weights`.
    A trace with edits shares every value that no edit reaches with the trace that it was made from.
    Besides what is kept, it holds what the last window was made from, until another needs something else.

    Attributes:
        block: Cells of an array that is not kept that are computed at a time.
        title: What it is a trace of: the model's name.
        batched: Whether arrays are handed out with their batch axis; None: where the batch is not 1.
        word: The word of a token ID, for `repr`.
    """

    program: Program
    weights: Weights
    givens: Mapping[str, Host]
    budget: int = DEFAULT_BUDGET
    edits: tuple[Change, ...] = ()
    base: Trace | None = None
    block: int = BLOCK_CELLS
    title: str = ""
    batched: bool | None = None
    word: Callable[[int], str] = str
    _held: dict[str, Array] = field(default_factory=dict, repr=False)
    _recent: dict[str, Array] = field(default_factory=dict, init=False, repr=False)

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
        """The steps that are kept, and the memory that they take."""
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

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.program.by_name or name in self.program.aliases

    __eq__, __hash__ = object.__eq__, object.__hash__

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping: the default for a name that is no step's."""
        return self[name] if name in self else default  # noqa: SIM401 - `in` knows whole names alone

    def to_dict(self, names: Iterable[str] | None = None) -> dict[str, Host]:
        """Steps, by default all, computed and on the host."""
        wanted = list(self.names if names is None else names)
        return {name: self.hand_out(name, array) for name, array in zip(wanted, self.arrays(wanted), strict=True)}

    def __repr__(self) -> str:
        held, full = (f"{size / 2**20:,.1f} MiB" for size in (self.held_bytes, self._bytes))
        edits = f", {len(self.edits)} edits" if self.edits else ""
        title = self.title or "a program"
        return f"<Trace of {title}: {self._tokens()}{edits}; {len(self)} steps, {held} of {full} held>"

    @property
    def _bytes(self) -> int:
        return self.program.step_cells() * self.backend.dtype.itemsize * self.batch

    def _tokens(self) -> str:
        """The first tokens of the first sentence, and how many sentences there are."""
        ids = self.givens.get("input.ids")
        if ids is None:
            return "no tokens"
        words = " ".join(self.word(int(each)) for each in ids[0][:SHOWN_TOKENS])
        more = " …" if ids.shape[1] > SHOWN_TOKENS else ""
        several = f" ({ids.shape[0]} sentences)" if ids.shape[0] > 1 else ""
        return "".join(c if c.isprintable() else "·" for c in words) + more + several

    def array(self, name: str) -> Array:
        """A whole step, weight or input on the device, with its batch axis (weights have none)."""
        return self.arrays((name,))[0]

    def arrays(self, names: Sequence[str]) -> tuple[Array, ...]:
        """Several at once, each step on the way computed once."""
        wanted = [self.program.named(name) for name in names]
        got = self._compute(wanted)
        return tuple(got[name] for name in wanted)

    def compute(self, names: Iterable[str] | None = None, before: Watch | None = None) -> None:
        """Compute and keep steps (by default all that are to be kept, and the last) without handing them out.

        Of what is not kept and comes back in windows, only what the windows are made from is computed.
        """
        names = (*self.plan.names, self.program.steps[-1].name) if names is None else names
        wanted = [source for name in names for source in self._needed(self.program.step(name).name)]
        self._compute(wanted, discard=True, before=before)

    def prepare(self, name: str, before: Watch | None = None) -> None:
        """Compute what windows and explanations of a step are made from. `before` as in `compute`.

        What of it is not kept is there until windows of another step need something else.
        """
        step = self.program.step(name)
        self._ready(self._sources_of(step), before)

    def pending(self, names: Sequence[str]) -> int:
        """Floating-point operations that it would take to have these steps."""
        steps = self._order([self.program.named(name) for name in names], self._recent)
        return self.batch * sum(self._flops(step) for step in steps)

    def pending_part(self, name: str, share: float) -> int:
        """Floating-point operations that it would take to prepare a step, and to have this share of its cells."""
        step = self.program.step(name)
        cells = self.pending([step.name]) - self.pending(self._needed(step.name))
        return self.pending(self._sources_of(step)) + int(share * cells)

    def _flops(self, step: Step) -> int:
        """Of a step and of the dropped steps that are made again for it."""
        if self._unedited(step) is not None:
            return 0
        return self.program.flops(step) + sum(map(self._flops, self._parts.remade(step)))

    def window(self, name: str, region: Region, item: int = 0) -> Host:
        """The cells of a region (one range an axis, no batch axis) of one item of the batch, on the host."""
        name = self.program.named(name)
        part = self._part(name, region)
        return self._read_only(part if name in self.program.weights else part[item])

    def blocks(
        self, name: str, region: Region | None = None, item: int = 0, before: Watch | None = None
    ) -> Iterator[tuple[Region, Host]]:
        """As `window`, a part at a time, each with its region; by default of the whole step.

        What the parts are made from is computed once. `before` as in `compute`.
        """
        step = self.program.step(name)
        values = self._ready(self._needed(step.name), before)
        for piece in self._parts.pieces(step, whole(step.shape) if region is None else region):
            yield piece, self._read_only(self._read(step.name, piece, values)[item])

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
        name = self.program.named(name)
        check_index(self.program, name, index)
        if name in self.program.by_name:
            self.prepare(name)
        stored = self.source(name, item).cell(*index)
        edited = any(edit.name == name and covers(edit.region, index) for edit in self.edits)
        if name in self.program.weights or name in self.givens:
            found = self.weights.explain(name, index) if name in self.program.weights and not edited else None
            formula, working = found or ("given", Working((Value("value", stored),), stored))
        else:
            step = self.program.step(name)
            working = step.op.explain(index, *(self.source(source, item) for source in step.inputs))
            formula = step.op.formula
        return Explanation(name, index, formula, working.items, working.result, stored, edited, equation_of(working))

    # Editing

    def edited(self, edits: Sequence[Change], budget: int | None = None) -> Trace:
        """A trace with these edits after those that it has; what they do not reach is shared.

        Args:
            edits: Cells that are set, made in order. `base` is the trace before all of them.
            budget: Bytes that may be kept of what the edits reach; by default as many as here.

        Raises:
            InputError: An edit names no step or weight, or a cell outside it, or a value that cannot be there.
        """
        origin = self.base or self
        placed = tuple(edit.placed(self.program, self.givens) for edit in edits)
        if not placed:
            return self
        placed = (*self.edits, *placed)
        budget = origin.budget if budget is None else budget
        return replace(origin, budget=budget, edits=placed, base=origin, _held={})

    @cached_property
    def _changed(self) -> frozenset[str]:
        return self.program.downstream(edit.name for edit in self.edits)

    def _owner(self, name: str) -> Trace:
        """The trace that keeps a value: the base, if no edit reaches it."""
        return self if self.base is None or name in self._changed else self.base

    def _unedited(self, step: Step) -> Array | None:
        """Values of an edited step before the edit, where the base holds them and no other edit reaches it."""
        if self.base is None or not any(edit.name == step.name for edit in self.edits):
            return None
        return None if not self._changed.isdisjoint(step.inputs) else self.base._held.get(step.name)

    # Computing whole steps

    @np.errstate(all="ignore")
    def _compute(self, names: Sequence[str], *, discard: bool = False, before: Watch | None = None) -> dict[str, Array]:
        """Compute steps in order, keep those of the plan, and drop every other value after its last reader."""
        values = dict(self._recent)
        order = self._order(names, values)
        readers = Counter(source for step in order for source in self._reads(step))
        if not discard:
            readers.update(names)
        for step in order:
            if before is not None:
                before(step)
            values[step.name] = self._run(step, values, readers, before)
            readers.subtract(self._reads(step))
            for name in (step.name, *self._reads(step)):
                if not readers[name]:
                    values.pop(name, None)
        return {} if discard else {name: self._value(name, values) for name in names}

    def _order(self, names: Sequence[str], there: Mapping[str, Array]) -> list[Step]:
        """The steps that have to run for these, in order; those that are there already stop the search."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed and name not in there and not self._there(name):
                needed.add(name)
                waiting += self._reads(self.program.step(name))
        places = self.program.places
        return [self.program.steps[place] for place in sorted(places[name] for name in needed)]

    def _reads(self, step: Step) -> Sequence[str]:
        """Steps that have to be there before a step can run."""
        if self._unedited(step) is not None:
            return ()
        return self._parts.sources(step) if self._parts.in_blocks(step) else step.inputs

    def _run(self, step: Step, values: Mapping[str, Array], readers: Counter[str], before: Watch | None) -> Array:
        """One step, kept if the plan says so."""
        region, result = whole(step.shape), self._unedited(step)
        if result is None and self._parts.in_blocks(step):
            sources = {name: self._value(name, values) for name in self._reads(step)}
            result = self._parts.make(step, region, sources, before)
        else:
            if result is None:
                operands = self._operands(step, values)
                result = step.op.forward(self.backend, *operands, out=self._spare(step, values, readers))
            result = changed(self.edits, step.name, self.backend, result, region)
        if self._keeps(step.name):
            self._store(step.name)[step.name] = result
        return result

    def _operands(self, step: Step, values: Mapping[str, Array]) -> tuple[Array, ...]:
        """Inputs of a step; of a large table in a file only the rows that are looked up."""
        if step.op.looks_up and self._apart(step.inputs[1]):
            ids, table = step.inputs
            return self.weights.looked_up(table, self.program.shape(table), self._value(ids, values))
        if step.op.sparse and step.op.idle(chosen := self._value(step.inputs[-1], values)):
            return (*self.unread(step), chosen)
        return tuple(self._value(name, values) for name in step.inputs)

    def unread(self, step: Step) -> tuple[Array, ...]:
        """Zeros in place of the inputs (all but the last) of a step that reads none of them."""
        shapes = ((self.program.shape(name), name in self.program.weights) for name in step.inputs[:-1])
        sizes = (shape if weight else (self.batch, *shape) for shape, weight in shapes)
        zero = self.backend.floats(np.zeros(()))
        return tuple(self.backend.xp.broadcast_to(zero, size) for size in sizes)

    def _apart(self, name: str) -> bool:
        """Whether a name is of a weight that no edit reaches and of which a part can be read alone."""
        weights = self.program.weights
        return name in weights and name not in self._changed and self.weights.apart(name, self.program.shape(name))

    def _spare(self, step: Step, values: Mapping[str, Array], readers: Counter[str]) -> Array | None:
        """The first input, if the op may write over it: nobody keeps it and nobody else reads it."""
        first = step.inputs[0]
        fresh = first in values and first not in self._recent and not self._keeps(first)
        free = step.op.overwrites and fresh and readers[first] == 1
        if not free or step.inputs.count(first) > 1 or not values[first].flags.c_contiguous:
            return None
        return values[first]

    def _store(self, name: str) -> dict[str, Array]:
        """Where the value of a name is kept."""
        return self._owner(name)._held

    def _keeps(self, name: str) -> bool:
        """Whether a step is kept once it was computed."""
        return name in self._owner(name).plan.names

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
        self._held[name] = changed(self.edits, name, self.backend, weight, whole(shape))
        return self._held[name]

    def _given(self, name: str) -> Array:
        given, store = self.givens[name], self._store(name)
        convert = {"b": self.backend.booleans, "f": self.backend.floats}.get(given.dtype.kind, self.backend.integers)
        store[name] = convert(given)
        return store[name]

    # Computing parts

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.program, self.backend, self.batch, self.edits, self._holds, self.block)

    def _holds(self, name: str) -> bool:
        """Whether a value is there whole, or will be once it was computed."""
        return self._keeps(name) or self._there(name)

    def _needed(self, name: str) -> list[str]:
        """Steps that have to be there whole before a part of a value can be read."""
        if self._apart(name):
            return []
        return self._parts.sources(self.program.step(name)) if self._parts.dropped(name) else [name]

    def _sources_of(self, step: Step) -> list[str]:
        """Steps that have to be there whole before parts of a step can be read and explained."""
        return list(dict.fromkeys(source for name in (step.name, *step.inputs) for source in self._needed(name)))

    def _ready(self, needed: Sequence[str], before: Watch | None = None) -> dict[str, Array]:
        """Values that parts are made from; what of them is not kept is there until something else is wanted."""
        values = self._compute(needed, before=before)
        fresh = {name: value for name, value in values.items() if not self._there(name)}
        if not fresh.keys() <= self._recent.keys():
            self._recent = fresh
        return values

    def _part(self, name: str, region: Region) -> Array:
        """A part of a step, with all items of the batch, or of a weight; only what it needs is computed."""
        if self._apart(name):
            return self.weights.part(name, self.program.shape(name), place(self.program, name, region))
        return self._read(name, region, self._ready(self._needed(name)))

    @np.errstate(all="ignore")
    def _read(self, name: str, region: Region, values: Mapping[str, Array]) -> Array:
        """A part of a value that is among these, or of a step that is made from them."""
        if name in values:
            return values[name][place(self.program, name, region)]
        return self._parts.make(self.program.step(name), region, values)

    # Handing out

    def source(self, name: str, item: int = 0) -> Source:
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
        batched = array.shape[0] > 1 if self.batched is None else self.batched
        single = self.program.named(name) not in self.program.weights and not batched
        return self._read_only(array[0] if single else array)

    def _read_only(self, array: Array) -> Host:
        view = self.backend.to_host(array).view()
        view.flags.writeable = False
        return view
