"""The way back through a model that is linear: attention patterns, the divisors of norms and gates are held fast.

So is Ameisen et al. 2025, "Circuit Tracing", §"Attribution graphs" (transformer-circuits.pub). Every step on the way is
then y = J x + b with a fixed J, and is what it is in the forward pass: the products of a direction with all that is
written, and with the biases, sum to the product with what is read.

- attention: the weights are held; only values are followed, not queries and keys;
- norms: the divisor σ is held, the mean is linear and is followed;
- a gated product f(gate) · hidden: f(gate) is held, as weights are; hidden is followed;
- an activation f: its share f(x) ÷ x is held (f'(0) where x is 0), as all of them here have f(0) = 0;
- experts: their shares are held, as attention weights are, and so is who chose them; each is then a layer for some
  tokens. A clamped gate f(gate) · (1 + h) adds f(gate) beside what h passes on: a constant.

Where a step was edited the edit is passed as gradients pass it, and what it adds is a constant: nothing leads to what
is set, whose value is the constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tui_transformer.engine import ops
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Array
from tui_transformer.engine.edits import Change, changes_of, of_sentence
from tui_transformer.engine.ops.activations import Function
from tui_transformer.engine.ops.attention import grouped
from tui_transformer.engine.ops.norms import Norm
from tui_transformer.engine.program import FEATURE, Program, Step
from tui_transformer.engine.targets import is_context
from tui_transformer.engine.trace import Trace
from tui_transformer.records import replace

UNHELD = (ops.Sigmoid, ops.LayerNormByHead, ops.RmsNormOfHeads)
"""Of kinds that are followed, these are not: what they are of is held."""


class Held:
    """A sentence with what is not linear held fast, each factor made once. Arrays are on the device of the trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.program, self.backend = trace, trace.program, trace.backend
        self._factors = dict[str, Array]()

    def value(self, name: str) -> Array:
        """A step (with a batch axis of 1), weight or input."""
        return self.trace.array(name)

    def factor(self, step: Step, make: Callable[[], Array]) -> Array:
        """What a step is multiplied by, kept for the next time."""
        if step.name not in self._factors:
            self._factors[step.name] = make()
        return self._factors[step.name]

    def edits(self, name: str) -> list[Change]:
        """The edits of a step, in their order."""
        own = (of_sentence(edit, 0) for edit in self.trace.edits if edit.name == name)
        return [edit for edit in own if edit is not None]

    def passes(self, name: str, cell: tuple[int, ...]) -> bool:
        """Whether an edited cell still has anything of what is computed there."""
        region = tuple(range(i, i + 1) for i in cell)
        gradient = self.backend.xp.ones((1,) * (1 + len(cell)))
        for change in reversed(changes_of(self.edits(name), name, region)):
            change.pass_back(self.backend, gradient, region)
        return bool(gradient.any())


# One step back


def _linear(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    weight, op = held.value(step.inputs[1]), step.op
    matrix = weight * op.scale if isinstance(op, ops.Unembed) else weight.T
    if isinstance(op, ops.Project):  # heads side by side
        gradient = gradient.swapaxes(-2, -3).reshape(len(gradient), -1, len(matrix))
    rows = gradient.reshape(-1, len(matrix))
    there = rows.any(axis=1)  # those of later tokens are 0, and before the first attention all but one
    result = held.backend.xp.zeros((len(rows), matrix.shape[1]), dtype=gradient.dtype)
    result[there] = rows[there] @ matrix
    yield result.reshape(*gradient.shape[:-1], matrix.shape[1])
    yield from (gradient for _ in step.inputs[2:])


def _norm(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    """(∂y γ) ÷ σ, less its mean where the norm takes the mean off; β has ∂y."""
    op, xp = step.op, held.backend.xp
    centred, epsilon = getattr(op, "centred", True), getattr(op, "epsilon", 0.0)

    def factor() -> Array:
        x = held.value(step.inputs[0])
        spread = x - x.mean(axis=-1, keepdims=True) if centred else x
        size = xp.sqrt((spread * spread).mean(axis=-1, keepdims=True) + epsilon)
        return held.value(step.inputs[1]) / size

    scaled = gradient * held.factor(step, factor)
    yield scaled - scaled.mean(axis=-1, keepdims=True) if centred else scaled
    yield from (gradient for _ in step.inputs[2:])


def _context(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    if type(step.op) is not ops.Context:  # as somebody might have it by mistake
        values = map(held.value, step.inputs)
        wide = (held.backend.xp.broadcast_to(each, (len(gradient), *each.shape[1:])) for each in values)
        yield step.op.backward(held.backend, gradient, None, *wide)[1]
        return
    weights = held.factor(step, lambda: held.value(step.inputs[0]))
    groups = held.program.shape(step.inputs[1])[0]
    if groups == weights.shape[1]:
        yield weights.swapaxes(-1, -2) @ gradient
    else:
        yield (grouped(weights, groups).swapaxes(-1, -2) @ grouped(gradient, groups)).sum(axis=2)


def _merged(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    heads, rows, width = held.program.shape(step.inputs[0])
    yield gradient.reshape(len(gradient), rows, heads, width).swapaxes(1, 2)


def _share(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    """f(x) ÷ x, where x is 0 the slope there."""
    op, xp, backend = step.op, held.backend.xp, held.backend

    def factor() -> Array:
        x = held.value(step.inputs[0])
        y = op.forward(backend, x)
        there = x != 0.0
        (slope,) = op.backward(backend, xp.ones_like(x), y, x)
        return xp.where(there, y / xp.where(there, x, 1.0), slope)

    yield gradient * held.factor(step, factor)


def _clamped(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    """f(gate) · h ÷ hidden, h the hidden value within its limits."""
    op: Any = step.op
    xp = held.backend.xp

    def factor() -> Array:
        gate, hidden = map(held.value, step.inputs)
        there = hidden != 0.0
        return gate * xp.where(there, xp.clip(hidden, -op.limit, op.limit) / xp.where(there, hidden, 1.0), 1.0)

    yield gradient * held.factor(step, factor)


def _weighted(held: Held, step: Step, gradient: Array) -> Iterator[Array | None]:
    """Share · ∂y; nothing to an expert that none of the tokens has chosen from which the way comes."""
    shares = held.value(step.inputs[0])[0]
    reached = gradient.any(axis=(0, -1))
    chosen = held.backend.to_host(((shares != 0.0) & reached[:, None]).any(axis=0))
    for expert, there in enumerate(chosen.tolist()):
        yield gradient * shares[:, expert, None] if there else None


def _scale(_: Held, step: Step, gradient: Array) -> Iterator[Array]:
    op: Any = step.op
    yield gradient * op.factor


def _size(held: Held, step: Step) -> Array:
    """What a dictionary divides by, or multiplies with again: s + ε of what it read."""
    op: Any = step.op
    x = held.value(step.inputs[-1])
    spread = x - x.mean(axis=-1, keepdims=True) if op.centred else x
    squares = (spread * spread).sum(axis=-1, keepdims=True) / (x.shape[-1] - op.centred)
    return held.backend.xp.sqrt(squares)


def _to_size(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    op: Any = step.op
    scaled = gradient / (held.factor(step, lambda: _size(held, step)) + op.epsilon)
    yield scaled - scaled.mean(axis=-1, keepdims=True) if op.centred else scaled


def _from_size(held: Held, step: Step, gradient: Array) -> Iterator[Array]:
    op: Any = step.op
    yield gradient * held.factor(step, lambda: _size(held, step))
    if op.centred:
        yield held.backend.xp.broadcast_to(gradient.mean(axis=-1, keepdims=True), gradient.shape)


Inputs = Callable[[Step], tuple[str, ...]]
Back = Callable[[Held, Step, Array], Iterable[Array | None]]


def _inputs(start: int, stop: int | None = None) -> Inputs:
    return lambda step: step.inputs[start:stop]


def _but_weight(step: Step) -> tuple[str, ...]:
    return (*step.inputs[:1], *step.inputs[2:])


_NONE, _EVERY, _FIRST, _SECOND, _BUT_FIRST = _inputs(0, 0), _inputs(0), _inputs(0, 1), _inputs(1, 2), _inputs(1)

STEPS: Mapping[type[Any], tuple[Inputs, Back]] = {
    ops.Add: (_EVERY, lambda held, step, gradient: [gradient for _ in followed(held.program, step) or ()]),
    ops.Subtract: (_EVERY, lambda _, __, gradient: (gradient, -gradient)),
    ops.Scale: (_FIRST, _scale),
    ops.Linear: (_but_weight, _linear),
    ops.Project: (_but_weight, _linear),
    ops.Unembed: (_but_weight, _linear),
    ops.MergeHeads: (_FIRST, _merged),
    ops.Context: (_SECOND, _context),
    Norm: (_but_weight, _norm),
    ops.Gate: (_SECOND, lambda held, step, gradient: (gradient * held.value(step.inputs[0]),)),
    ops.ClampedGate: (_SECOND, _clamped),
    ops.WeightedExperts: (_BUT_FIRST, _weighted),
    ops.ToSize: (_FIRST, _to_size),
    ops.FromSize: (lambda step: step.inputs if getattr(step.op, "centred", False) else step.inputs[:1], _from_size),
    ops.Pool: (
        _FIRST,
        lambda held, step, gradient: step.op.backward(held.backend, gradient, None, *map(held.value, step.inputs))[:1],
    ),
    Function: (_FIRST, _share),
}
"""Which inputs are followed, and their gradients in that order from that of the result; None where nothing comes."""

ALONE: Mapping[type[Any], Inputs] = {ops.ClampedGate: _FIRST}
"""Which held inputs a step adds as they are, besides what it makes of those that are followed."""


def inner(step: Step) -> Step:
    """A step of an expert as that of a layer by itself: what it does, without the shares that choose its rows."""
    op = step.op
    return replace(step, op=op.op, inputs=step.inputs[:-1]) if isinstance(op, ops.OfExpert) else step


def _entry(step: Step) -> tuple[Inputs, Back] | None:
    op = inner(step).op
    if isinstance(op, UNHELD):
        return None
    if is_context(step):
        return STEPS[ops.Context]
    return next((entry for kind, entry in STEPS.items() if isinstance(op, kind)), None)


def changes(program: Program, step: Step) -> Step | None:
    """The step of what a change of features adds, where a step adds that."""
    if not isinstance(step.op, ops.Add):
        return None
    change = program.by_name.get(step.inputs[1])
    return change if change is not None and isinstance(change.op, ops.Changed) else None


def followed(program: Program, step: Step) -> tuple[str, ...] | None:
    """The inputs that a step is linear in with all else held fast; None where it is in none.

    Of a step that goes on with what features write and their error: these two.
    """
    change, entry = changes(program, step), _entry(step)
    if change is not None:
        return change.inputs[:2]
    return None if entry is None else entry[0](inner(step))


def reads_features(program: Program, step: Step) -> bool:
    """Whether a step is what features write: their sites take the gradient there, of the features alone."""
    source = program.by_name.get(step.inputs[0]) if step.inputs else None
    return isinstance(step.op, ops.Linear) and source is not None and source.axes[-1].name == FEATURE


# All the way back


Take = Callable[[str, Array], bool]
"""Told of every step that is reached, with its gradient; true where the way ends."""


def back(held: Held, waiting: dict[str, Array], take: Take, own: str = "") -> Array:
    """Gradients of a batch (B × a step's shape) back to where `take` ends the way; what constants add to each of them.

    `own` is the step of a node whose way back begins with what made it.
    """
    program, backend = held.program, held.backend
    first = next(iter(waiting.values()))
    constants = backend.xp.zeros(len(first), dtype=first.dtype)
    for step in reversed(program.steps[: 1 + max(program.places[name] for name in waiting)]):
        if step.name not in waiting:
            continue
        gradient, entry = waiting.pop(step.name), _entry(step)
        if reads_features(program, step):  # taken feature by feature, as they are computed
            gradient = _through_edits(held, step, gradient, constants)
            take(step.name, gradient)
            for name in step.inputs[2:]:
                constants += _constant(held, name, gradient)
            continue
        if step.name != own and take(step.name, gradient):
            continue
        gradient = _through_edits(held, step, gradient, constants)
        assert entry is not None  # noqa: S101 - the sites were found on the same way
        if isinstance(step.op, ops.OfExpert):  # rows of tokens that have not chosen it are 0 whatever is read
            gradient = gradient * (held.value(step.inputs[-1])[..., step.op.expert, None] != 0.0)
        plain = inner(step)
        for name, sign in _beside(held, plain):
            constants += sign * _constant(held, name, gradient)
        for name, part in zip(followed(program, step) or (), entry[1](held, plain, gradient), strict=True):
            if part is None:
                continue
            if name not in program.by_name:
                constants += _constant(held, name, part)
            else:
                waiting[name] = waiting[name] + part if name in waiting else part
    return constants


def _beside(held: Held, step: Step) -> list[tuple[str, float]]:
    """What a step adds as it is, besides what it makes of those that are followed, and with which sign.

    Where the change itself that features make was edited, the two that are followed no longer sum to the step.
    """
    alone = [(name, 1.0) for name in ALONE.get(type(step.op), _NONE)(step)]
    change = changes(held.program, step)
    if change is None or not held.edits(change.name):
        return alone
    return [*((name, 1.0) for name in step.inputs), *((name, -1.0) for name in change.inputs[:2])]


def _constant(held: Held, name: str, part: Array) -> Array:
    return (part * held.value(name)).reshape(len(part), -1).sum(axis=-1)


def _through_edits(held: Held, step: Step, gradient: Array, constants: Array) -> Array:
    """The gradient of a step as it is computed, from that of it as it was edited."""
    by_hand = held.edits(step.name)
    if not by_hand:
        return gradient
    constants += _constant(held, step.name, gradient)
    gradient = gradient.copy()
    for change in reversed(by_hand):
        change.pass_back(held.backend, gradient, whole(step.shape))
    computed = step.op.forward(held.backend, *map(held.value, step.inputs))
    constants -= (gradient * computed).reshape(len(gradient), -1).sum(axis=-1)
    return gradient
