"""Another activation, or the wrong one of two gated products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Gate, Gelu, GeluTanh, Op, Relu, Silu
from tui_transformer.engine.program import Step

EXACT: Mapping[str, tuple[str, Op]] = {
    "gelu-tanh": ("GELU by tanh", GeluTanh()),
    "gelu-erf": ("GELU by erf", Gelu()),
    "relu": ("ReLU", Relu()),
    "silu": ("SiLU", Silu()),
}
SWAPPED = "when the activation is that of the up projection: activate the gate, and multiply by the up projection"
GELUS = (Gelu, GeluTanh)


def _quick_gelu(x: Array) -> Array:
    return x / (1.0 + np.exp(-1.702 * x))


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


OTHERS: Mapping[str, Function] = {
    "x · sigmoid(1.702 x), the quick GELU": _quick_gelu,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "leaky ReLU (0.01)": lambda x: np.where(x > 0, x, 0.01 * x),
    "no activation": lambda x: x,
}


def activated_otherwise(segment: Segment) -> Iterator[Cause]:
    """GELU by the other formula, another function, none."""
    steps = [step for step in segment.steps if isinstance(step.op, Gelu | GeluTanh | Relu | Silu)]
    for group in groups(steps):
        own = group[0].op
        right = next(words for words, op in EXACT.values() if type(op) is type(own))
        for name, (words, op) in EXACT.items():
            if type(op) is not type(own):
                both = isinstance(own, GELUS) and isinstance(op, GELUS)
                change = changing(replace(step, op=op) for step in group)
                yield Cause(name if both else "activation", change, f"with {words}: this model has {right}")
        for words, function in OTHERS.items():
            change = changing(instead(step, function) for step in group)
            yield Cause("activation", change, f"with {words}: this model has {right}")
    yield from _at_the_end(segment)


def _at_the_end(segment: Segment) -> Iterator[Cause]:
    """The activation once more after the second product."""
    ends = [step for step in segment.steps if step.name.endswith("feed_forward.output")]
    for group in groups(ends):
        own = segment.program.by_name.get(group[0].name.replace(".output", ".activation"))
        if own is None or not isinstance(own.op, Gelu | GeluTanh | Relu | Silu):
            continue
        for op in dict.fromkeys((own.op, Relu())):
            says = "with an activation after the second product too: the feed-forward layer ends linearly"
            yield Cause("activation-last", changing(instead(step, _active(step, op)) for step in group), says)


def _active(step: Step, op: Op) -> Function:
    return lambda *inputs: op.forward(CPU, step.op.forward(CPU, *inputs))


def gated_wrongly(segment: Segment) -> Iterator[Cause]:
    """The activation of the product that is to be gated, in place of that of the gate."""
    program = segment.program
    yield from _active_on_the_other(segment)
    for group in groups([step for step in segment.steps if isinstance(step.op, Gate)]):
        changed = []
        for step in group:
            active = program.by_name.get(step.inputs[0])
            if active is None or len(step.inputs) != 2:
                return
            gate, up = active.inputs[0], step.inputs[1]
            changed.append(replace(instead(step, _swapped(active.op)), inputs=(gate, up)))
        yield Cause("gate-swapped", changing(changed), SWAPPED)
        bare = changing(instead(step, lambda active, *_: active) for step in group)
        yield Cause("gate-missing", bare, "without the up projection: multiply the activated gate by it")


def _active_on_the_other(segment: Segment) -> Iterator[Cause]:
    """The activation itself, where it is in the dump."""
    target = segment.steps[-1]
    for gate in segment.program.readers(target.name):
        if isinstance(gate.op, Gate) and len(gate.inputs) == 2 and gate.inputs[0] == target.name:
            change = changing([replace(target, inputs=(gate.inputs[1],))])
            yield Cause("gate-swapped", change, SWAPPED)


def _swapped(op: Op) -> Function:
    return lambda gate, up: gate * op.forward(CPU, up)
