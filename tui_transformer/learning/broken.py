"""Where NaN or infinity began."""

from __future__ import annotations

import math
from typing import Any

from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.gradient import backward
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.trace import Trace
from tui_transformer.learning.clipping import layer_of

EVERYTHING = 1 << 50


def where_it_began(trace: Trace, targets: Host) -> str:
    """The first weight, step or gradient, in the order of computation, that holds NaN or infinity."""
    trace = Trace(trace.program, trace.weights, trace.givens, EVERYTHING)
    program = trace.program
    for name in program.weights:
        if _broken(trace, trace.array(name)):
            return f"the weight {name}, in layer {layer_of(name)}"
    for step in program.steps[: program.places[program.logits] + 1]:
        if _broken(trace, trace.array(step.name), hidden=isinstance(step.op, Mask)):
            return f"{step.name}, in layer {step.layer}"
    names: list[str] = []

    def visit(name: str, gradient: Array) -> None:
        if not names and _broken(trace, gradient):
            names.append(name)

    backward(trace, targets, visit)
    return f"the gradient of {names[0]}, in layer {layer_of(names[0])}" if names else "the loss"


def _broken(trace: Trace, array: Array, *, hidden: bool = False) -> bool:
    """Whether there is a number that is none; −∞ is right where a query may not look."""
    xp: Any = trace.backend.xp
    wrong = ~(array < math.inf) if hidden else ~(xp.abs(array) < math.inf)
    return bool(wrong.any())
