"""A trace: the values of a program for one input, computed when they are asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Region, cells, whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.compact import StoredMatrix, dense, some_of
from tui_transformer.engine.computation import Computation, Watch
from tui_transformer.engine.edits import Change, OfSentence, covers, of_sentence, single, with_means
from tui_transformer.engine.explanation import Explanation, Index, Source, Value, Working
from tui_transformer.engine.export import html_of, write_arrays
from tui_transformer.engine.names import find
from tui_transformer.engine.number_format import equation_of
from tui_transformer.engine.parts import BLOCK_CELLS, DEFAULT_BUDGET, Plan
from tui_transformer.engine.program import Program, Step, check_index
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field, fields, replace

SHOWN_TOKENS = 12
"""Of a `repr`."""


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
        word: The word of a token ID that is read.
        target_word: The word of one that is written: of a logit.
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
    target_word: Callable[[int], str] = str
    _held: dict[str, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def _values(self) -> Computation:
        base = None if self.base is None else self.base._values
        return Computation(
            self.program, self.weights, self.givens, self.budget, self.edits, base, self.block, self._held
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickled, it has its inputs and edits, and its weights by reference; values are computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"_held": {}}

    # What there is

    @cached_property
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
        return self._values.batch

    @property
    def plan(self) -> Plan:
        """The steps that are kept, and the memory that they take."""
        return self._values.plan

    def keep(self, names: Iterable[str]) -> None:
        """Keep these steps and no others, whatever the budget is."""
        self._values.plan = replace(self.plan, names=frozenset(names) & self.program.by_name.keys())

    @property
    def held(self) -> frozenset[str]:
        """The steps whose values are there already."""
        return frozenset(name for name in self.program.by_name if name in self._values.owner(name).held)

    def held_value(self, name: str) -> Array | None:
        """The value of a step that is there already, on the device, with its batch axis; None where it is not."""
        return dense(self._values.owner(name).held.get(name))

    @property
    def held_bytes(self) -> int:
        """Bytes that values take: those that are kept, and what the last window was made from; what two share, once."""
        there = {**self._values.shared, **self._values.recent, **self._held}
        own = [array for name, array in there.items() if name not in self.givens]
        owners = [array if (base := getattr(array, "base", None)) is None else base for array in own]
        return sum({id(each): int(getattr(each, "nbytes", 0)) for each in owners}.values())

    # Reading

    def __getitem__(self, name: str) -> Host:
        if not isinstance(name, str):
            raise UsageError("one name of a step is meant here: trace.to_dict([…]) gives several")
        return self.hand_out(name, self.array(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        """Whether `trace[name]` gives something: a whole name, or the end of a single one."""
        return self.program.knows(name)

    __eq__, __hash__ = object.__eq__, object.__hash__

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping: the default for a name that is no step's, and for the end of several."""
        return self[name] if name in self else default  # noqa: SIM401 - this is what it calls

    def to_dict(self, names: Iterable[str] | None = None) -> dict[str, Host]:
        """Steps, by default all, computed and on the host; a name may be a pattern, as `*.output`."""
        wanted = list(self.names if names is None else self._named(names))
        return {name: self.hand_out(name, array) for name, array in zip(wanted, self.arrays(wanted), strict=True)}

    def save(self, path: str | Path, names: Iterable[str] | None = None) -> None:
        """Write steps, by default all, under their names: as safetensors, or as NPZ where the file's name ends so.

        They are in memory together while they are written; `tui-transformer trace` writes them one at a time.

        Raises:
            InputError: There is no such step, or the file cannot be written; then there is none.
        """
        given = self.program.by_name if names is None else self._named(names)
        wanted = list(dict.fromkeys(self.program.step(name).name for name in given))
        write_arrays(Path(path), self.to_dict(wanted))

    def _repr_html_(self) -> str:
        """In a notebook: what it is, and the steps that are there already as small pictures; nothing is computed."""
        values = ((step, self.held_value(step.name)) for step in self.program.steps)
        return html_of(
            repr(self), [(step, None if value is None else self.backend.to_host(value)) for step, value in values]
        )

    def _ipython_key_completions_(self) -> list[str]:
        """The names of steps, and their ends that are of a single one."""
        parts = [name.split(".") for name in (*self.names, *self.program.weights)]
        ends = Counter(".".join(each[at:]) for each in parts for at in range(1, len(each)))
        own = (name.partition(".")[2] for name in self.names)
        return [*self.names, *(end for end in own if ends[end] == 1 and end not in self.program.by_name)]

    def __repr__(self) -> str:
        size = self.program.step_cells() * self.backend.dtype.itemsize * self.batch
        held, full = (f"{each / 2**20:,.1f} MiB" for each in (self.held_bytes, size))
        said, ids = "no tokens", self.givens.get("input.ids")
        if ids is not None:
            words = " ".join(self.word(int(each)) for each in ids[0][:SHOWN_TOKENS])
            said = "".join(c if c.isprintable() else "·" for c in words) + " …" * (ids.shape[1] > SHOWN_TOKENS)
            said += f" ({ids.shape[0]} sentences)" if ids.shape[0] > 1 else ""
        said += f", {len(self.edits)} edits" if self.edits else ""
        return f"<Trace of {self.title or 'a program'}: {said}; {len(self)} steps, {held} of {full} held>"

    def array(self, name: str) -> Array:
        """A whole step, weight or input on the device, with its batch axis (weights have none)."""
        return self.arrays((name,))[0]

    def arrays(self, names: Sequence[str], before: Watch | None = None) -> tuple[Array, ...]:
        """Several at once, each step on the way computed once. `before` as in `compute`."""
        read = zip(map(self.program.named, names), self.operands(names, before), strict=True)
        return tuple(
            self.weights.get(name, each.shape) if isinstance(each, StoredMatrix) else each for name, each in read
        )

    def operands(self, names: Sequence[str], before: Watch | None = None) -> tuple[Array | StoredMatrix, ...]:
        """As `arrays`, weights as products read them: a matrix that is too large to be held is not read."""
        wanted = [self.program.named(name) for name in names]
        got = self._values.compute(wanted, before=before)
        return tuple(each if isinstance(each := got[name], np.ndarray) else dense(each) for name in wanted)

    def unread(self, step: Step) -> tuple[Array, ...]:
        """Zeros in place of the inputs (all but the last) of a step that reads none of them."""
        return self._values.unread(step)

    def compute(self, names: Iterable[str] | None = None, before: Watch | None = None) -> None:
        """Compute and keep steps (by default all that are to be kept, and the last) without handing them out.

        Of what is not kept and comes back in windows, only what the windows are made from is computed.
        """
        names = (*self.plan.names, self.program.steps[-1].name) if names is None else names
        wanted = [source for name in names for source in self._values.needed(self.program.step(name).name)]
        self._values.compute(wanted, discard=True, before=before)

    def prepare(self, name: str, before: Watch | None = None) -> None:
        """Compute what windows and explanations of a step are made from. `before` as in `compute`.

        What of it is not kept is there until windows of another step need something else.
        """
        step = self.program.step(name)
        self._values.ready(self._values.sources_of(step), before)

    def pending(self, names: Sequence[str], most: float = math.inf) -> int:
        """Floating-point operations that it would take to have these steps.

        Where they are more than `most`, so many that this is known: the rest is not counted.
        """
        return self._values.pending([self.program.named(name) for name in names], most)

    def pending_part(self, name: str, share: float, most: float = math.inf) -> int:
        """The same of what prepares a step, and of this share of its cells."""
        step = self.program.step(name)
        prepared = self._values.pending(self._values.sources_of(step), most)
        if prepared > most:
            return prepared
        cells = self.pending([step.name]) - self.pending(self._values.needed(step.name))
        return prepared + int(share * cells)

    def window(self, name: str, region: Region, item: int | None = None) -> Host:
        """The cells of a region (one range an axis, no batch axis) of one item of the batch, on the host."""
        for each in region:
            if isinstance(each, range) and len(each) and (each.step != 1 or each.start < 0):
                raise UsageError(f"{each} is no region: write neighbouring cells, counted from 0, as range(2, 5)")
        part = self._values.part(name := self.program.named(name), region)
        return self._read_only(part if name in self.program.weights else part[item_of(self, item)])

    def blocks(
        self,
        name: str,
        region: Region | None = None,
        item: int | EllipsisType | None = ...,
        before: Watch | None = None,
    ) -> Iterator[tuple[Region, Host]]:
        """As `window`, a part at a time, each with its region; by default of the whole step.

        What the parts are made from is computed once. `before` as in `compute`. An item of None stands for all of the
        batch, whose axis is then in front; left out, for the only one.
        """
        step, of = self.program.step(name), None if item is None else item_of(self, None if item is ... else item)
        values = self._values.ready(self._values.needed(step.name), before)
        for piece in self._values.parts.pieces(step, whole(step.shape) if region is None else region):
            part = self._values.read(step.name, piece, values)
            yield piece, self._read_only(part if of is None else part[of])

    def explain(
        self, name: str, *, head: int | None = None, row: int = 0, column: int = 0, item: int | None = None
    ) -> Explanation:
        """How one cell was made: see `explain_cell`. `head` only where the step has heads."""
        axes = len(self.program.axes(self.program.named(name)))
        return self.explain_cell(name, {1: (row,), 2: (row, column), 3: (head or 0, row, column)}[axes], item)

    @np.errstate(all="ignore")
    def explain_cell(self, name: str, index: Index, item: int | None = None) -> Explanation:
        """The terms that made one cell of a step or weight, and its value worked out again in float64.

        Raises:
            InputError: The cell is outside the step.
        """
        name, item = self.program.named(name), item_of(self, item)
        check_index(self.program, name, index)
        if name in self.program.by_name:
            self.prepare(name)
        stored = self.source(name, item).cell(*index)
        own = (each for each in self.edits if getattr(each, "item", item) == item)
        edited = any(edit.name == name and covers(edit.region, index) for edit in own)
        if name in self.program.weights or name in self.givens:
            explained = self.weights.explain(name, index) if name in self.program.weights and not edited else None
            formula, working = explained or ("given", Working((Value("value", stored),), stored))
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
        made = tuple(single(edits, self.program))
        return self._with(made, self.givens, budget) if made else self

    def edited_each(self, edits: Sequence[Sequence[Change]], budget: int | None = None) -> Trace:
        """As `edited`, several experiments in one: a batch with this sentence once for every list of edits.

        What no edit reaches is computed for one sentence alone.

        Raises:
            InputError: As `edited`, or an edit of a weight: all sentences have the same.
            UsageError: This is a trace of several sentences, or there is no list.
        """
        if self.batch != 1 or not edits:
            raise UsageError("edited_each is of a single sentence, and of a list of edits or more: [[…], […]]")
        changes = [OfSentence(change, item) for item, own in enumerate(edits) for change in single(own, self.program)]
        repeated = {name: np.broadcast_to(each, (len(edits), *each.shape[1:])) for name, each in self.givens.items()}
        before = self.sentence(0) if self.edits else self  # edits of an only experiment are of all of these
        return replace(before._with(changes, repeated, budget), batched=True, _held={})

    def sentence(self, item: int) -> Trace:
        """One sentence of a batch as a trace of it alone; what is held of it is shared, and nothing is computed.

        Raises:
            InputError: There is no such sentence.
        """
        if not 0 <= item < self.batch:
            raise InputError(f"there is no sentence {item}: use 0 to {self.batch - 1}")
        if self.batch == 1 and not self.batched:
            return self
        one = slice(item, item + 1)
        edits = tuple(own for edit in self.edits if (own := of_sentence(edit, item)) is not None)
        held = {name: each if name in self.program.weights else some_of(each, one) for name, each in self._held.items()}
        givens = {name: each[one] for name, each in self.givens.items()}
        base = self.base.sentence(item) if self.base is not None and self.base.batch > 1 else self.base
        return replace(self, givens=givens, edits=edits, base=base, batched=None, _held=held)

    def _with(self, edits: Iterable[Change], givens: Mapping[str, Host], budget: int | None) -> Trace:
        origin = self.base or self
        placed = (*self.edits, *(edit.placed(self.program, self.givens) for edit in edits))
        budget = origin.budget if budget is None else budget
        edits = tuple(with_means(placed, origin))
        return replace(origin, givens=givens, budget=budget, edits=edits, base=origin, batched=self.batched, _held={})

    # Handing out

    def source(self, name: str, item: int = 0, most: float = BLOCK_CELLS) -> Source:
        """An input of an explanation, of which no more cells than that are read at once."""

        def read(region: Region) -> Host:
            if cells(region) > most:
                raise InputError(f"a line of {name} is too long to be explained")
            part = self._values.part(name, region)
            own = part if name in self.program.weights else part[item_of(self, item)]
            return self.backend.to_host(own).astype(np.float64)

        return Source(name, self.program.shape(name), read)

    def hand_out(self, name: str, array: Array) -> Host:
        """A device array of the step or weight `name`: on the host, without a batch axis of one, read-only."""
        batched = array.shape[0] > 1 if self.batched is None else self.batched
        single = self.program.named(name) not in self.program.weights and not batched
        return self._read_only(array[0] if single else array)

    def _named(self, names: Iterable[str]) -> Iterator[str]:
        """Names as they are, those of a pattern whole."""
        if isinstance(names, str):
            raise UsageError(f"names are a list: [{names!r}]")
        for name in names:
            yield from (name,) if self.program.knows(name) else find((*self.names, *self.program.weights), name)

    def _read_only(self, array: Array) -> Host:
        view = self.backend.to_host(array).view()
        view.flags.writeable = False
        return view


def item_of(trace: Trace, item: int | None) -> int:
    """A sentence of a batch, counted from 0; where none is named, the only one.

    Raises:
        UsageError: There are several, or no such one.
    """
    if item is None and trace.batch > 1:
        raise UsageError(f"this is a trace of {trace.batch} sentences: name one, as item=0 (to {trace.batch - 1})")
    if item is not None and not -trace.batch <= item < trace.batch:
        raise UsageError(f"there is no sentence {item}: items are 0 to {trace.batch - 1}")
    return (item or 0) % trace.batch
