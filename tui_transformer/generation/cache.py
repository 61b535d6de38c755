"""The cache of keys and values: what an attention needs of the tokens before, kept instead of computed again.

One more token with it needs no record, and is as fast as the weights can be read: a `Trace` plans, names and keeps what
may be looked at; for a single row that takes longer than computing it. In `OneToken` the same steps run in the same
order, once worked out for a model, whatever the length. `Writer.trace` gives the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tui_transformer.engine.axis import Shape, shape_of, whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.changes import OPEN, Add, Place, Scale, Set, of_pass, places
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Change, changed
from tui_transformer.engine.ops import Context, Extend, Linear, Mask, Op, Project, Scores
from tui_transformer.engine.ops.base import writable
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights, side_by_side
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field

KEY, VALUE = "key_kept", "value_kept"
LOGITS = "output.logits"


@dataclass(frozen=True, eq=False)
class Cache:
    """Keys and values of the first `length` tokens (Pope et al. 2022, §3.1). Never changed, only replaced.

    `arrays`: `<attention>.key_kept` and `.value_kept` → B × g × tokens × d_k, on the device.
    """

    arrays: Mapping[str, Array] = field(default_factory=dict)
    length: int = 0

    @property
    def bytes(self) -> int:
        """Bytes that it takes."""
        return sum(int(array.nbytes) for array in self.arrays.values())

    def cut(self, length: int) -> Cache:
        """Of the first `length` tokens only; what is kept of an encoder's output stays."""
        if length >= self.length:
            return self
        if length <= 0:
            return Cache()
        arrays = {name: array if is_cross(name) else array[:, :, :length].copy() for name, array in self.arrays.items()}
        return Cache(arrays, length)


def is_cross(name: str) -> bool:
    """True if keys or values are those of an encoder's output, which do not grow."""
    return ".cross_attention." in name


@by_program
def writes(program: Program) -> bool:
    """True if a model can write on: an attention of it is causal, and it has logits of words for the next token."""
    causal = any(isinstance(step.op, Mask) and step.op.causal for step in program.steps)
    return causal and bool(program.logits)


@by_program
def products_of_one(program: Program) -> tuple[tuple[Step, ...], ...]:
    """Steps of a sublayer that multiply one input with weights: query, key and value; gate and hidden."""
    groups: dict[tuple[str, str, int], list[Step]] = {}
    for step in program.steps:
        if type(step.op) in (Linear, Project) and step.inputs[1] in program.weights:
            groups.setdefault((step.sublayer, step.inputs[0], len(step.inputs)), []).append(step)
    weights = {key: {step.inputs[1] for step in group} for key, group in groups.items()}
    return tuple(tuple(group) for key, group in groups.items() if 1 < len(group) == len(weights[key]))


def kept_steps(program: Program) -> dict[str, str]:
    """Arrays that have to be kept for the next token → the step or input that it is in.

    The attention of every layer that writes: causal self-attention, and attention to an encoder's output. InputError
    where none is causal, so that the model cannot write on, or it has no logits.
    """
    if not writes(program):
        raise InputError("this model does not write: only a decoder, with logits for the next token, does")
    kept, causal = {}, {step.sublayer for step in program.steps if isinstance(step.op, Mask) and step.op.causal}
    kinds: dict[type[Op], str] = {Scores: KEY, Context: VALUE}
    for step in program.steps:
        kind = kinds.get(type(step.op))
        if kind is not None and (step.sublayer in causal or is_cross(step.name)):
            kept[f"{step.sublayer}.{kind}"] = step.inputs[1]
    return kept


def seen_ahead(changes: tuple[Change, ...], program: Program) -> dict[str, int]:
    """Steps that changes let tokens see later ones in → how many tokens have to be there until nothing new is seen.

    What is kept of fewer is not what the whole text has: its earlier tokens have changed with those that came. Only
    attention with a mask is meant, behind it, and not the last, of which nothing is kept.
    """
    masks = {each.sublayer: each.name for each in program.steps if isinstance(each.op, Mask) and each.op.causal}
    order, ahead = program.places, dict[str, int]()
    last = max(order.get(step, -1) for name, step in kept_steps(program).items() if not is_cross(name))
    for change, place in places(changes, program):
        step = program.by_name.get(change.name)
        mask = None if step is None else masks.get(step.sublayer)
        if step is None or mask is None or not (place.grows and place.keys) or hides(change, step):
            continue
        _, rows, columns = change.parts  # type: ignore[attr-defined]
        first, stop = 0 if rows is None else rows.start, OPEN if columns is None else columns.stop
        if order[mask] <= order[step.name] < last and stop - 1 > first:
            ahead[step.name] = max(stop, ahead.get(step.name, 0))
    return ahead


def hides(change: Change, step: Step) -> bool:
    """Whether a change leaves what a mask hid as it is: −∞ among scores, 0 among weights."""
    weighs = not isinstance(step.op, Mask)
    if isinstance(change, Set):
        return bool(np.all(np.asarray(change.values) == (0 if weighs else -np.inf)))
    return isinstance(change, Scale) or (isinstance(change, Add) and (not weighs or not np.any(change.values)))


@np.errstate(all="ignore")
def last_logits(trace: Trace, before: Watch | None = None) -> tuple[Array, Mapping[str, Array]]:
    """The logits of the last token (B × 1 × v), and what is kept for the next; `before` is called with every step."""
    steps, head = kept_steps(trace.program), trace.program.step(LOGITS)
    wanted = [trace.program.aliases.get(name, name) for name in (head.inputs[0], *steps.values())]
    trace.keep(wanted)
    trace.compute(trace.plan.names, before)
    states, *arrays = trace.arrays(wanted)
    weights = trace.arrays(head.inputs[1:])
    logits = _edited(trace, head, head.op.forward(trace.backend, states[:, -1:], *weights))  # B × n × d → B × 1 × v
    first, last = (trace.program.places[name] + 1 for name in (LOGITS, trace.program.logits))
    for step in trace.program.steps[first:last]:
        logits = _edited(trace, step, step.op.forward(trace.backend, logits))  # capped, where the model does so
    return logits, dict(zip(steps, arrays, strict=True))


def _edited(trace: Trace, step: Step, last: Array) -> Array:
    rows, columns = step.shape
    return changed(trace.edits, step.name, trace.backend, last, (range(rows - 1, rows), range(columns)))


# One more token


class _Line(NamedTuple):
    """A step as it runs here, its inputs and its result by their places among the values.

    A `spare` result may be written over the first input, which nothing else reads; rows that are kept grow. Masks that
    hide the same have one number, other steps −1; `edits` change the result in every pass.
    """

    step: Step
    forward: Callable[..., Array]
    inputs: tuple[int, ...]
    place: int
    spare: bool
    grows: bool
    mask: int
    edits: Sequence[tuple[Change, Place]]


@dataclass(frozen=True, eq=False)
class OneToken:
    """The steps from a token to its logits, with what they read that is the same for every token.

    `names`: weights, inputs, what is kept, and steps → their places among the values. `start`: the values before a
    pass, the weights on the device and None for all else. `kept`: what is kept for the next token → the step or input
    that it is in. `logits`: the step that the choice of a token reads.
    """

    backend: Backend
    lines: tuple[_Line, ...]
    names: Mapping[str, int]
    start: tuple[Array, ...]
    kept: Mapping[str, str]
    logits: str

    @classmethod
    def of(cls, program: Program, weights: Weights, edits: tuple[Change, ...] = ()) -> OneToken:
        """From the program of any length with tokens before, with edits that are made in every pass."""
        kept = kept_steps(program)
        wanted, steps = {program.logits, *kept.values()}, list[Step]()
        for step in reversed(program.steps):  # those that lead to what is wanted
            if step.name in wanted:
                steps.append(step)
                wanted.update(step.inputs)
        steps.reverse()
        every = dict.fromkeys(name for step in steps for name in (*step.inputs, step.name))
        names = {name: place for place, name in enumerate((*every, *(kept.keys() - every.keys())))}
        start: list[Array] = [None] * len(names)
        shapes = {name: shape_of(axes) for name, axes in program.weights.items() if name in every}
        weights.check_room(shapes)
        of_weights = of_pass(tuple(edit for edit in edits if edit.name in program.weights), program, 1)
        for name, shape in shapes.items():
            is_changed = any(change.name == name for change in of_weights)
            weight = weights.get(name, shape) if is_changed else weights.operand(name, shape)
            start[names[name]] = changed(of_weights, name, weights.backend, weight, whole(shape))
        changes: dict[str, list[tuple[Change, Place]]] = {}
        for change, place in places(edits, program):
            changes.setdefault(place.name, []).append((change, place))
        readers = Counter((*kept.values(), *(name for step in steps for name in step.inputs)))
        made = {step.name for step in steps}
        masks: dict[object, int] = {}
        lines = {
            step.name: _Line(
                step,
                partial(step.op.forward, weights.backend),
                tuple(names[name] for name in step.inputs),
                names[step.name],
                step.op.overwrites and step.inputs[0] in made and readers[step.inputs[0]] == 1,
                isinstance(step.op, Extend),
                masks.setdefault((step.op, step.inputs[1:]), len(masks)) if isinstance(step.op, Mask) else -1,
                changes.get(step.name, ()),
            )
            for step in steps
        }
        joined = _joined(lines, products_of_one(program), start, weights.backend)
        return cls(weights.backend, joined, names, tuple(start), kept, program.logits)

    @np.errstate(all="ignore")
    def run(
        self, givens: Mapping[str, Host], kept: Mapping[str, Array], rooms: Rooms, before: Watch | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """The logits (B × 1 × v) and what is kept, from the inputs for one token and what was kept before it.

        `before` is called with every step that is about to run, and may raise to end it.
        """
        values = list(self.start)
        kinds = {"b": self.backend.booleans, "f": self.backend.floats}
        for name, given in givens.items():
            if name in self.names:
                values[self.names[name]] = kinds.get(given.dtype.kind, self.backend.integers)(given)
        for name, array in kept.items():
            if name in self.names:
                values[self.names[name]] = array
        past = next(array.shape[2] for name, array in kept.items() if not is_cross(name))
        hiding: dict[int, bool] = {}
        for step, forward, inputs, place, spare, grows, mask, edits in self.lines:
            if before is not None:
                before(step)
            operands = [values[each] for each in inputs]
            if grows:
                result = rooms.extended(step.name, *operands)
            elif not spare or not writable(operands[0]):
                result = forward(*operands)
            elif mask < 0 or _hides(step.op, operands, mask, hiding):
                result = forward(*operands, out=operands[0])
            else:
                result = operands[0]
            if edits:
                shape = result.shape[1:]
                moved = (at.changed(change, shape, past) for change, at in edits)
                made = [each for each in moved if each is not None]
                result = changed(made, step.name, self.backend, result, whole(shape))
            values[place] = result
        return values[self.names[self.logits]], {name: values[self.names[place]] for name, place in self.kept.items()}


def _joined(
    lines: dict[str, _Line], groups: Sequence[Sequence[Step]], start: list[Array], backend: Backend
) -> tuple[_Line, ...]:
    """The lines, with one product where matrices are side by side in memory; it is a line of its own, and a value.

    One product takes less than several of the same size: BLAS hands a part of each to every core, and waits.
    """
    before: dict[str, _Line] = {}
    for group in groups:
        own = [lines[step.name] for step in group if step.name in lines]
        matrix = side_by_side([start[line.inputs[1]] for line in own]) if own else None
        if matrix is None:
            continue
        biases = [backend.xp.concatenate([start[line.inputs[2]] for line in own])] if len(own[0].inputs) > 2 else []
        places = range(len(start), len(start) + 1 + len(biases))
        start += [matrix, *biases, None]
        product = partial(Linear().forward, backend)
        before[own[0].step.name] = own[0]._replace(
            forward=product, inputs=(own[0].inputs[0], *places), place=places.stop, edits=()
        )
        end = 0
        for line in own:
            columns = slice(end, end + start[line.inputs[1]].shape[1])
            cut = partial(_cut, line.step.op, columns)
            lines[line.step.name], end = line._replace(forward=cut, inputs=(places.stop,)), columns.stop
    return tuple(line for name, own in lines.items() for line in (before.get(name), own) if line is not None)


def _cut(op: Op, columns: slice, product: Array) -> Array:
    part = product[..., columns]
    return op.dealt(part) if isinstance(op, Project) else part


def _hides(op: Op, operands: Sequence[Array], mask: int, hiding: dict[int, bool]) -> bool:
    """Whether a mask hides anything; `hiding` says it of those that there were, by their numbers."""
    if mask not in hiding:
        hiding[mask] = bool(op.hidden(*operands[1:]).any())  # type: ignore[attr-defined]
    return hiding[mask]


SMALLEST_ROOM = 64


class Room(NamedTuple):
    """Memory for rows of keys or values (B × g × space × d_k), and those in use. A written row never changes."""

    memory: Array
    rows: Array


@dataclass(eq=False)
class Rooms:
    """The memory of a cache that grows: copied when it is full, or when one has gone back.

    There is space for more than the `most` tokens that the model reads only where a prompt is longer. So many arrays of
    one shape as grow together (`alike`) are taken from the system in one piece, whose large pages are read faster than
    many small ones.
    """

    backend: Backend
    most: int
    alike: int = 1
    rooms: dict[str, Room] = field(default_factory=dict)
    _free: dict[Shape, list[Array]] = field(default_factory=dict)

    def extended(self, name: str, kept: Array, new: Array) -> Array:
        """Kept rows and new ones behind them: B × g × (p + n) × d_k."""
        room, past, end = self.rooms.get(name), kept.shape[2], kept.shape[2] + new.shape[2]
        if room is not None and room.rows is kept and end <= room.memory.shape[2]:
            memory = room.memory
        else:
            size = max(min(max(SMALLEST_ROOM, 2 * end), self.most), end)
            shape = (*kept.shape[:2], size, kept.shape[3])
            if not self._free.get(shape):
                piece = self.backend.xp.empty((self.alike, *shape), dtype=new.dtype)
                self._free = {shape: [piece[i] for i in range(self.alike)]}
            memory = self._free[shape].pop()
            memory[:, :, :past] = kept
        memory[:, :, past:end] = new
        self.rooms[name] = Room(memory, memory[:, :, :end])
        return self.rooms[name].rows
