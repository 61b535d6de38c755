"""The backward pass of a whole trace: the loss of its predictions, and the gradient at every step and weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tui_transformer.engine.axis import slices
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError

LOGITS = "output.logits"
NOT_COUNTED = -1


@dataclass(frozen=True, eq=False)
class Gradients:
    """What the backward pass gives.

    Attributes:
        loss: Mean cross-entropy over the counted positions, in nats.
        values: Name of a step or weight → ∂loss/∂value, read-only, on the host, shaped as the trace hands out the
            value. Steps that depend on no weight, such as token IDs and sinusoidal positions, have none.
    """

    loss: float
    values: Mapping[str, Host]


@np.errstate(all="ignore")
def gradients(trace: Trace, targets: Sequence[Any] | Host) -> Gradients:
    """The loss of a trace's predictions and its gradients, by the steps in reverse (Rumelhart et al. 1986).

    Args:
        trace: A trace with logits. A cell that was set by hand passes no gradient on to what it was computed from.
        targets: The right token ID at every position (n, or batch × n); −1 = not counted.

    Raises:
        InputError: No logits, or targets that do not fit them.
    """
    program = trace.program
    shape = (trace.batch, *program.shape(LOGITS))
    rows = _checked(targets, shape)
    names = [*program.by_name, *program.weights, *program.givens]
    values = dict(zip(names, trace.arrays(names), strict=True))
    loss, start = _cross_entropy(trace.backend, values[LOGITS], rows)
    collected, learned = {LOGITS: start}, program.downstream(program.weights)
    for step in reversed(program.steps[: program.places[LOGITS] + 1]):
        if step.name in collected:
            for source, gradient in _toward_inputs(trace, step, collected[step.name], values):
                if source in learned:
                    collected[source] = collected[source] + gradient if source in collected else gradient
    return Gradients(loss, MappingProxyType({name: trace.hand_out(name, collected[name]) for name in collected}))


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


def _cross_entropy(backend: Backend, logits: Array, targets: Host) -> tuple[float, Array]:
    """Mean of −log softmax(logits)[target], and its gradient (softmax − one-hot) ÷ count."""
    xp, count = backend.xp, int((targets != NOT_COUNTED).sum())
    wanted = backend.integers(targets)[..., None]
    right = xp.arange(logits.shape[-1], dtype=np.int64) == wanted
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_shares = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
    loss = -float(xp.where(right, log_shares, 0.0).sum()) / count
    gradient = xp.where(right, xp.exp(log_shares) - 1.0, xp.exp(log_shares)) / count
    return loss, xp.where(wanted == NOT_COUNTED, 0.0, gradient)


def _toward_inputs(
    trace: Trace, step: Step, gradient: Array, values: Mapping[str, Array]
) -> Iterator[tuple[str, Array]]:
    """Names and gradients of a step's inputs, of those that have one."""
    inputs = [values[source] for source in step.inputs]
    output = values[step.name]
    by_hand = [edit.region for edit in trace.edits if edit.name == step.name]
    if by_hand:
        output, gradient = step.op.forward(trace.backend, *inputs), gradient.copy()
    for region in by_hand:
        gradient[slices(region)] = 0.0
    found = step.op.backward(trace.backend, gradient, output, *inputs)
    return ((source, part) for source, part in zip(step.inputs, found, strict=True) if part is not None)
