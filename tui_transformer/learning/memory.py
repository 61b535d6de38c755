"""The memory that a step of the training takes, from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tui_transformer.engine.gradient import kept_for_backward
from tui_transformer.engine.pool import FREE_LIMIT
from tui_transformer.engine.program import Program

TOGETHER = 6
"""Arrays as large as the largest step that are there at once besides what is kept: gradients, scratch, logits."""


def step_bytes(program: Program, batch: int, slots: int, item: int) -> int:
    """Bytes that a step takes at most: what is kept for the backward pass, work space, weights, gradients and state.

    Args:
        program: The steps of one example of the greatest length.
        batch: Examples of a batch.
        slots: Arrays that the optimiser keeps for every weight.
        item: Bytes of a number.
    """
    kept = _cells(program, kept_for_backward(program))
    largest = max(_cells(program, [name]) for name in (*program.by_name,) if name != "output.probabilities")
    idle = min(FREE_LIMIT, (kept + TOGETHER * largest) * batch * item)  # lies ready to be used again
    # Weights, their gradients and the sum of these, and one more while an optimiser works on a weight.
    weights = program.weight_count() * (3 + slots) + max(_cells(program, [name]) for name in program.weights)
    return (kept + TOGETHER * largest) * batch * item + weights * item + idle


def _cells(program: Program, names: Iterable[str]) -> int:
    return sum(math.prod(program.shape(name)) for name in names)
