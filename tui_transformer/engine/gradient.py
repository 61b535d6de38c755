"""The backward pass of a whole trace: the loss of its predictions, and the gradient at every step and weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

LOGITS = "output.logits"
NOT_COUNTED = -1
"""As a target: the position is left out of the loss."""

Visit = Callable[[str, Array], None]
"""Called with the name of a step or weight and its gradient on the device, which is not to be changed."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Result of the backward pass.

    Attributes:
        loss: What was differentiated: the mean cross-entropy over the counted positions, in nats, or another scalar.
        values: Name of a step or weight → ∂loss/∂value, read-only, on the host, shaped as the trace hands out the
            value. Steps that depend on no weight, such as token IDs and sinusoidal positions, have none.
        start: Where the way back of another scalar began.
        counted: The positions in the mean, of the whole batch; 0 of another scalar.
    """

    loss: float
    values: Mapping[str, Host]
    start: Start | None = None
    counted: int = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of all of them."""
        return sum(each.nbytes for each in self.values.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self.loss, dict(self.values), self.start, self.counted)

    def __repr__(self) -> str:
        of = "loss" if self.start is None else self.start.description
        return f"<Gradients of {of} {self.loss:.6g}: {len(self.values)} steps and weights>"


def _read_again(loss: float, values: dict[str, Host], start: Start | None, counted: int) -> Gradients:
    """Gradients that were copied or written; read-only again."""
    for value in values.values():
        value.flags.writeable = False
    return Gradients(loss, MappingProxyType(values), start, counted)


@dataclass(frozen=True, eq=False)
class Start:
    """Where the way back of a scalar begins: a step, and the gradient by its values, without a batch axis.

    `formula` says how that is made; `description` is the scalar in words.
    """

    name: str
    slope: Host
    formula: str
    description: str


ONE_LABEL = "this model gives the whole text one label: no loss over its positions leads back"


def gradients(trace: Trace, targets: Sequence[Any] | Host, smoothing: float = 0.0) -> Gradients:
    """The loss of a trace's predictions and all its gradients.

    Args:
        trace: A trace with logits. A cell that was set by hand passes no gradient on to what it was computed from.
        targets: The right token ID at every position (n, or batch × n); −1 = not counted.
        smoothing: ε of label smoothing, from 0 to below 1.

    Raises:
        InputError: No logits, targets that do not fit them, or another ε.
    """
    by_name, visit = _handed_out(trace)
    loss = backward(trace, targets, visit, smoothing=smoothing)
    return Gradients(loss.mean, by_name, counted=loss.counted)


def weight_gradients(
    trace: Trace, targets: Sequence[Any] | Host, smoothing: float = 0.0, total: int | None = None
) -> tuple[Loss, dict[str, Array]]:
    """The loss and the gradients of the weights alone, on the device; whatever else was needed is let go on the way.

    A trace whose budget is 0 then takes the least memory: only what the backward pass reads is kept until it has.
    """
    by_name: dict[str, Array] = {}

    def visit(name: str, gradient: Array) -> None:
        if name in trace.program.weights:
            by_name[name] = gradient

    return backward(trace, targets, visit, smoothing=smoothing, total=total), by_name


@np.errstate(all="ignore")
def backward(
    trace: Trace, targets: Sequence[Any] | Host, visit: Visit, *, smoothing: float = 0.0, total: int | None = None
) -> Loss:
    """The steps in reverse (Rumelhart et al. 1986): each gradient is visited as soon as it is complete.

    Args:
        trace: A trace with logits.
        targets: As in `gradients`.
        visit: Called for the steps from the last to the first, then for the weights. What it does not keep is freed.
        smoothing: ε of label smoothing.
        total: Counted positions of the whole batch, where the trace is one part of it.

    Raises:
        InputError: No logits, or targets that do not fit them.
    """
    program = trace.program
    answer = program.logits or LOGITS
    if len(program.axes(answer)) < 2:
        raise InputError(ONE_LABEL)
    rows = _checked(targets, (trace.batch, *program.shape(answer)))
    if not 0 <= smoothing < 1:
        raise InputError(f"label smoothing is a number from 0 to below 1, not {smoothing}")
    steps = [step for step in reversed(program.steps[: program.places[answer] + 1]) if step.name in _learned(program)]
    left = Counter(name for step in steps for name in _reads(trace, step) if name not in program.weights)
    values = dict(zip((answer, *left), trace.arrays((answer, *left)), strict=True))
    logits = values[answer] if answer in left else values.pop(answer)
    loss, start = cross_entropy(trace.backend, logits, rows, smoothing, total)
    del logits
    _walk(trace, steps, {answer: start}, left, values, visit)
    return loss


def gradients_from(trace: Trace, value: float, start: Start, item: int = 0) -> Gradients:
    """The gradient of any scalar at every step and weight, from its gradient by one step.

    A cell that was set passes no gradient on to what it was computed from. `item` is the sentence of the scalar.

    Raises:
        InputError: The step is an input, or depends on no weight.
    """
    by_name, visit = _handed_out(trace)
    backward_from(trace, start, visit, item)
    return Gradients(value, by_name, start)


def _handed_out(trace: Trace) -> tuple[Mapping[str, Host], Visit]:
    """Gradients by name as a trace hands out values, and the visitor that fills them in."""
    by_name: dict[str, Host] = {}

    def visit(name: str, gradient: Array) -> None:
        by_name[name] = trace.hand_out(name, gradient)

    return MappingProxyType(by_name), visit


@np.errstate(all="ignore")
def backward_from(
    trace: Trace,
    start: Start,
    visit: Visit,
    item: int | None = 0,
    inputs: frozenset[str] = frozenset(),
    before: Watch | None = None,
) -> None:
    """The steps in reverse from any one; `visit` as in `backward`, `before` as in `Trace.compute`.

    Of `inputs` (givens of numbers) there are gradients, too. With an item of None the start has a batch axis: a slope
    for every sentence.

    Raises:
        InputError: The step is an input, or depends on no weight.
    """
    program = trace.program
    name = program.step(start.name).name
    learned = _learned(program, inputs)
    if name not in learned:
        raise InputError(f"{name} depends on no weight: it has no gradient")
    earlier = program.steps[: program.places[name] + 1]
    steps = [step for step in reversed(earlier) if step.name in learned]
    left = Counter(each for step in steps for each in _reads(trace, step) if each not in program.weights)
    values = dict(zip(left, trace.arrays(tuple(left), before), strict=True))
    slope = np.zeros((trace.batch, *program.shape(name)))
    slope[slice(None) if item is None else item] = start.slope
    _walk(trace, steps, {name: trace.backend.floats(slope)}, left, values, visit, inputs)


def _walk(
    trace: Trace,
    steps: Sequence[Step],
    waiting: dict[str, Array],
    left: Counter[str],
    values: dict[str, Array],
    visit: Visit,
    inputs: frozenset[str] = frozenset(),
) -> None:
    """Through steps in reverse, from the gradients that are waiting to be visited, with every one.

    `left` counts the steps that are still to read each of the values, which is let go once nothing does.
    """
    learned = _learned(trace.program, inputs)
    for step in steps:
        if step.name in waiting:
            gradient = waiting.pop(step.name)
            visit(step.name, gradient)
            for source, part in _toward_inputs(trace, step, gradient, values):
                if source in waiting:  # it came by another way too
                    waiting[source] = trace.backend.xp.add(waiting[source], part, out=trace.backend.like(part))
                elif source in learned:
                    waiting[source] = part
        left.subtract(name for name in _reads(trace, step) if name in left)
        for name in _reads(trace, step):
            if name in left and not left[name]:
                values.pop(name, None)
    for name in (*inputs, *trace.program.weights):
        if name in waiting:
            visit(name, waiting.pop(name))


def kept_for_backward(program: Program) -> frozenset[str]:
    """The steps whose values the backward pass reads: they are kept until then."""
    read = (name for step in program.steps if step.name in _learned(program) for name in _undone_from(step))
    return frozenset(read) & program.by_name.keys()


@by_program
def _learned(program: Program, inputs: frozenset[str] = frozenset()) -> frozenset[str]:
    """Weights, some inputs and the steps that depend on them: only these have gradients."""
    return program.downstream((*inputs, *program.weights))


def _reads(trace: Trace, step: Step) -> tuple[str, ...]:
    by_hand = any(edit.name == step.name for edit in trace.edits)
    return (*step.inputs, step.name) if by_hand else _undone_from(step)


def _undone_from(step: Step) -> tuple[str, ...]:
    everything = (*step.inputs, step.name)
    places = step.op.undone_from
    return everything if places is None else tuple(everything[place] for place in places)


def _toward_inputs(
    trace: Trace, step: Step, gradient: Array, values: Mapping[str, Array]
) -> Iterator[tuple[str, Array]]:
    """Names and gradients of a step's inputs, of those that have one; weights that it reads are fetched now."""
    if step.op.sparse and step.op.idle(values[step.inputs[-1]]):
        inputs = [*trace.unread(step), values[step.inputs[-1]]]
    else:
        weights = set(_reads(trace, step)) & trace.program.weights.keys()
        inputs = [trace.operands((name,))[0] if name in weights else values.get(name) for name in step.inputs]
    output, by_hand = values.get(step.name), [edit for edit in trace.edits if edit.name == step.name]
    if by_hand:
        output, gradient = step.op.forward(trace.backend, *inputs), gradient.copy()
    for change in reversed(by_hand):
        change.pass_back(trace.backend, gradient, whole(step.shape))
    parts = step.op.backward(trace.backend, gradient, output, *inputs)
    return ((source, part) for source, part in zip(step.inputs, parts, strict=True) if part is not None)


def _checked(targets: Sequence[Any] | Host, shape: tuple[int, ...]) -> Host:
    """Targets as batch × n, every one a token ID or −1."""
    batch, length, words = shape
    try:
        rows = np.atleast_2d(np.asarray(targets))
    except ValueError as error:
        raise InputError("targets are token IDs, in rows of the same length") from error
    if rows.shape != (batch, length) or rows.dtype.kind not in "iu":
        raise InputError(f"targets are {batch} × {length} token IDs, one for every position")
    outside = rows[(rows < NOT_COUNTED) | (rows >= words)]
    if outside.size:
        raise InputError(f"target {outside[0]} is outside the vocabulary: IDs go from 0 to {words - 1}, −1 is left out")
    if (rows == NOT_COUNTED).all():
        raise InputError("every target is −1: at least one has to be counted")
    return rows


@dataclass(frozen=True)
class Loss:
    """Mean cross-entropy over the counted positions, in nats; with label smoothing, against the smoothed targets.

    Of these positions so many are `right`: the largest logit is that of the target; so many sequences are so as a
    `whole`, word for word what greedy writing would give.
    """

    mean: float
    right: int
    counted: int
    whole: int = 0

    @property
    def accuracy(self) -> float:
        """The share of counted positions that are right."""
        return self.right / self.counted


def counted(targets: Host) -> int:
    """Number of positions that are counted."""
    return int((targets != NOT_COUNTED).sum())


def cross_entropy(
    backend: Backend, logits: Array, targets: Host, smoothing: float = 0.0, total: int | None = None
) -> tuple[Loss, Array]:
    """−Σ q log softmax(logits), and its gradient (softmax − q) ÷ count (Szegedy et al. 2016, §7).

    q is 1 − ε at the target, and ε ÷ v everywhere besides.

    Args:
        backend: Where the logits are.
        logits: Batch × n × v.
        targets: Batch × n token IDs, −1 where a position is left out.
        smoothing: ε.
        total: What sums are divided by, where the positions are part of more; by default the counted ones.
    """
    xp, words = backend.xp, logits.shape[-1]
    flat = logits.reshape(-1, words)
    ids, rows = backend.integers(targets).reshape(-1), xp.arange(targets.size, dtype=np.int64)
    kept = ids != NOT_COUNTED
    place = (rows, xp.where(kept, ids, 0))
    share = kept / float(counted(targets) if total is None else total)  # of every position in the mean
    right = (flat.argmax(axis=-1) == ids) & kept
    whole = (right | ~kept).reshape(targets.shape).all(axis=-1) & kept.reshape(targets.shape).any(axis=-1)

    shifted = xp.subtract(flat, flat.max(axis=-1, keepdims=True), out=backend.like(flat))
    picked = shifted[place] * (1.0 - smoothing)
    if smoothing:
        picked += shifted.mean(axis=-1) * smoothing
    gradient = xp.exp(shifted, out=shifted)
    sums = gradient.sum(axis=-1, keepdims=True)
    losses = xp.where(kept, xp.log(sums[:, 0]) - picked, 0.0)

    share = backend.floats(share)[:, None]
    gradient *= share / sums
    if smoothing:
        gradient -= share * (smoothing / words)
    gradient[place] -= share[:, 0] * (1.0 - smoothing)
    mean = float((losses * share[:, 0]).sum())
    loss = Loss(mean, int(float(right.sum())), counted(targets), int(float(whole.sum())))
    return loss, gradient.reshape(logits.shape)
