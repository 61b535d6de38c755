"""Rotary positions with other pairs of columns, other angles, or none (Su et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, around, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.ops import Rotate
from tui_transformer.engine.program import Step

BASES = (1e4, 5e5, 1e6, 1e5, 1e3, 1.6e5, 2.5e5, 5e6, 8e6, 1e7, 100.0, 10.0)
"""θ of published models, and round ones."""


def rotated_wrongly(segment: Segment) -> Iterator[Cause]:
    """Pairs side by side or half a head apart, another θ, turned backwards, a place too far, not at all."""
    steps = [step for step in segment.steps if isinstance(step.op, Rotate)]
    for group in groups(steps):
        for forth in (False, True):
            paired = changing(instead(step, _paired(step, forth=forth)) for step in group)
            says = (
                "when neighbouring columns are turned together: pair column i with column i + d_k/2"
                if not forth
                else "when column i is turned with column i + d_k/2: pair neighbouring columns"
            )
            yield Cause("rotary-interleaved", paired, says)
        yield from _other_angles(group)
        backwards = changing(around(step, lambda x, places: (x, -places)) for step in group)
        yield Cause("rotary-direction", backwards, "when turned backwards: x cos θ − x' sin θ, x' cos θ + x sin θ")
        for offset in (1, -1):
            moved = changing(around(step, _moved(offset)) for step in group)
            says = f"when places count from {offset}: the first token is at place 0"
            yield Cause("position-off-by-one", moved, says)
        none = changing(instead(step, lambda x, *_: x) for step in group)
        yield Cause("rotary-missing", none, "without the rotation: turn queries and keys before their product")


def _paired(step: Step, *, forth: bool) -> Function:
    """The rotation of the other pairs: columns are put in the other order, turned, and put back."""

    def function(x: Array, places: Array) -> Array:
        op = step.op
        width = 2 * op.half if isinstance(op, Rotate) else x.shape[-1]
        order: Host = np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])
        order = np.argsort(order) if forth else order
        order = np.concatenate([order, np.arange(width, x.shape[-1])])
        return op.forward(CPU, x[..., order], places)[..., np.argsort(order)]

    return function


def _other_angles(group: tuple[Step, ...]) -> Iterator[Cause]:
    op = group[0].op
    if not isinstance(op, Rotate) or op.half < 2:
        return
    used = _base(op)
    for base in BASES:
        frequencies = tuple(base ** (-i / op.half) for i in range(op.half))
        if np.allclose(frequencies, op.frequencies, rtol=1e-6):
            continue
        change = changing(replace(step, op=Rotate(frequencies)) for step in group)
        wanted = f"θ = {used:g}" if used else "the frequencies of the configuration"
        yield Cause("rotary-theta", change, f"with θ = {base:g}: this model has {wanted}")


def _base(op: Rotate) -> float | None:
    """θ, where the frequencies are its powers."""
    base = op.frequencies[1] ** -op.half
    powers = [base ** (-i / op.half) for i in range(op.half)]
    if op.factor != 1.0 or not np.allclose(powers, op.frequencies, rtol=1e-4):
        return None
    return float(f"{base:.4g}") if math.isfinite(base) else None


def _moved(offset: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda x, places: (x, places + offset)
