"""Rotary positions with other pairs of columns, other angles, or none (Su et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, around, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.ops import Context, Rotate
from tui_transformer.engine.program import Step

BASES = (1e4, 5e5, 1e6, 1e5, 1e3, 1.6e5, 2.5e5, 5e6, 8e6, 1e7, 100.0, 10.0)
"""θ of published models, and round ones."""


def rotated_wrongly(segment: Segment) -> Iterator[Cause]:
    """Pairs side by side or half a head apart, another θ, turned backwards, a place too far, not at all."""
    steps = [step for step in segment.steps if isinstance(step.op, Rotate)]
    yield from _values_too(segment)
    for group in groups(steps):
        for forth in (False, True):
            paired = changing(instead(step, _paired(step, forth=forth)) for step in group)
            says = (
                "when neighbouring columns are turned together: pair column i with column i + d_k/2"
                if not forth
                else "when column i is turned with column i + d_k/2: pair neighbouring columns"
            )
            yield Cause("rotary-interleaved", paired, says)
        yield from _other_angles(segment, group)
        backwards = changing(around(step, lambda x, places: (x, -places)) for step in group)
        yield Cause("rotary-direction", backwards, "when turned backwards: x cos θ − x' sin θ, x' cos θ + x sin θ")
        for offset in (1, -1):
            moved = changing(around(step, _moved(offset)) for step in group)
            says = f"when places count from {offset}: the first token is at place 0"
            yield Cause("position-off-by-one", moved, says)
        yield from _turned_otherwise(group)
        none = changing(instead(step, lambda x, *_: x) for step in group)
        yield Cause("rotary-missing", none, "without the rotation: turn queries and keys before their product")


def _values_too(segment: Segment) -> Iterator[Cause]:
    """Values that are turned as queries and keys are."""
    turns = {step.sublayer: step for step in segment.program.steps if isinstance(step.op, Rotate)}
    steps = [step for step in segment.steps if isinstance(step.op, Context) and step.sublayer in turns]
    for group in groups(steps):
        changed = []
        for step in group:
            turn = turns[step.sublayer]
            too = replace(step, name=f"{step.name}.turned", op=turn.op, inputs=(step.inputs[1], turn.inputs[1]))
            changed += [too, replace(step, inputs=(step.inputs[0], too.name))]
        yield Cause("rotary-values", changing(changed), "when values are turned too: turn queries and keys alone")


def _turned_otherwise(group: tuple[Step, ...]) -> Iterator[Cause]:
    """A sign that is missing, sine and cosine exchanged, the number of the head for the place."""
    for name, function, says in (
        ("rotary-sign", _without_sign, "without the minus: x cos θ − x' sin θ, x' cos θ + x sin θ"),
        ("rotary-swapped", _exchanged, "when sine and cosine are exchanged: x cos θ − x' sin θ, x' cos θ + x sin θ"),
        ("rotary-axis", _by_head, "when turned by the number of the head: turn by the place of the token"),
    ):
        yield Cause(name, changing(instead(step, function(step)) for step in group), says)


def _without_sign(step: Step) -> Function:
    def function(x: Array, places: Array) -> Array:
        half = step.op.half if isinstance(step.op, Rotate) else 0
        backwards = step.op.forward(CPU, x, -places)
        return np.concatenate([backwards[..., :half], step.op.forward(CPU, x, places)[..., half:]], axis=-1)

    return function


def _exchanged(step: Step) -> Function:
    """A turn by 90° − θ: backwards by θ, then by 90°."""

    def function(x: Array, places: Array) -> Array:
        half = step.op.half if isinstance(step.op, Rotate) else 0
        back = step.op.forward(CPU, x, -places)
        return np.concatenate([-back[..., half : 2 * half], back[..., :half], back[..., 2 * half :]], axis=-1)

    return function


def _by_head(step: Step) -> Function:
    def function(x: Array, places: Array) -> Array:
        heads = np.broadcast_to(np.arange(x.shape[1]), (len(places), x.shape[1]))
        return step.op.forward(CPU, x.swapaxes(1, 2), heads).swapaxes(1, 2)

    return function


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


def _other_angles(segment: Segment, group: tuple[Step, ...]) -> Iterator[Cause]:
    op = group[0].op
    if not isinstance(op, Rotate) or op.half < 2:
        return
    used = _base(op)
    if used:
        yield from _other_exponents(segment, group, op, used)
    for base in BASES:
        frequencies = tuple(base ** (-i / op.half) for i in range(op.half))
        if np.allclose(frequencies, op.frequencies, rtol=1e-6):
            continue
        wanted = f"θ = {used:g}" if used else "the frequencies of the configuration"
        yield _with("rotary-theta", group, frequencies, f"with θ = {base:g}: this model has {wanted}")


def _other_exponents(segment: Segment, group: tuple[Step, ...], op: Rotate, base: float) -> Iterator[Cause]:
    """Powers of θ with another exponent than −2i/d_k."""
    width = 2 * op.half
    heads = max(step.shape[0] for step in segment.program.steps if isinstance(step.op, Rotate))
    for exponent, says in (
        (0.0, "when 2i/d_k is divided without a remainder, to 0: divide floating-point numbers"),
        (1 / width, f"when the exponent is i/d_k: it is 2i/d_k, d_k = {width}"),
        (4 / width, f"when the exponent is 4i/d_k: it is 2i/d_k, d_k = {width}"),
        (2 / (width * heads), f"when the exponent is 2i/d_model: it is 2i/d_k, d_k = {width}"),
    ):
        yield _with("rotary-exponent", group, tuple(base ** (-i * exponent) for i in range(op.half)), says)


def _with(name: str, group: tuple[Step, ...], frequencies: tuple[float, ...], says: str) -> Cause:
    return Cause(name, changing(replace(step, op=Rotate(frequencies)) for step in group), says)


def _base(op: Rotate) -> float | None:
    """θ, where the frequencies are its powers."""
    base = op.frequencies[1] ** -op.half
    powers = [base ** (-i / op.half) for i in range(op.half)]
    if op.factor != 1.0 or not np.allclose(powers, op.frequencies, rtol=1e-4):
        return None
    return float(f"{base:.4g}") if math.isfinite(base) else None


def _moved(offset: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda x, places: (x, places + offset)
