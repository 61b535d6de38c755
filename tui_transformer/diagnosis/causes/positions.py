"""Positions that are left out, counted from another number, or encoded otherwise (Vaswani et al. 2017, §3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, around, changing, groups, instead, last
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Embed, Sinusoid
from tui_transformer.engine.program import Step

BASE = 10000.0
BASES = (1000.0, 100.0, 100_000.0, 1_000_000.0, 500_000.0, 1024.0)
"""Numbers that are taken in its place."""


def encoded_wrongly(segment: Segment) -> Iterator[Cause]:
    """One place too far, missing, sines and cosines in halves or in turn, other angles."""
    steps = [step for step in segment.steps if last(step.name) == "positions"]
    for group in groups(steps):
        for offset in (1, -1):
            says = f"when positions count from {offset}: the first token is at position 0"
            if isinstance(group[0].op, Embed):
                says = (
                    f"when positions are {'one more' if offset > 0 else 'one less'} than here: check where they begin"
                )
            yield Cause("position-off-by-one", changing(_moved(step, offset) for step in group), says)
        none = changing(instead(step, _nothing(step)) for step in group)
        yield Cause("position-missing", none, "without the positions: add them to the embedding of the tokens")
        twice = changing(instead(step, _twice(step)) for step in group)
        yield Cause("position-twice", twice, "when the positions are added twice: add them once")
        if all(isinstance(step.op, Sinusoid) for step in group):
            yield from _sinusoids(group)
    segments = [step for step in segment.steps if last(step.name) == "segments"]
    if segments:
        none = changing(instead(step, _nothing(step)) for step in segments)
        yield Cause("segments-missing", none, "without the segments: add the row of each token's segment (token type)")


def _moved(step: Step, offset: int) -> Step:
    if isinstance(step.op, Embed):
        return around(step, lambda places, table: (np.clip(places + offset, 0, len(table) - 1), table))
    return around(step, lambda places: (places + offset,))


def _nothing(step: Step) -> Function:
    return lambda places, *_: np.zeros((*places.shape, step.shape[-1]))


def _twice(step: Step) -> Function:
    return lambda *inputs: 2.0 * step.op.forward(CPU, *inputs)


def _sinusoids(group: tuple[Step, ...]) -> Iterator[Cause]:
    halves = [replace(step, op=_turned(step.op)) for step in group if isinstance(step.op, Sinusoid)]
    in_halves = isinstance(group[0].op, Sinusoid) and group[0].op.halves
    says = (
        "when sines and cosines alternate: all sines come before all cosines in this model"
        if in_halves
        else "when all sines stand before all cosines: sine in even columns, cosine in odd ones"
    )
    yield Cause("position-halves", changing(halves), says)
    for name, function, words in (
        ("position-exponent", _by_column, "when the exponent is 2j/d of column j: columns 2i and 2i + 1 share 2i/d"),
        ("position-exponent", _by_half, "when the exponent is i/d: it is 2i/d"),
        ("position-exponent", _own_column, "when the exponent is j/d of column j: columns 2i and 2i + 1 share 2i/d"),
        ("position-exponent", _whole, "when 2i/d is divided without a remainder, to 0: divide floating-point numbers"),
        ("position-exponent", _turned_over, "when positions are multiplied by 10000^(2i/d): divide by it"),
        ("position-swapped", _cosine_first, "when cosine is in even columns: sine is in even ones, cosine in odd ones"),
    ):
        yield Cause(name, changing(instead(step, _encoding(step, function)) for step in group), words)
    for base in BASES:
        says = f"with powers of {base:g}: they are of {BASE:g}"
        yield Cause("position-base", changing(instead(step, _encoding(step, _paired, base)) for step in group), says)


def _turned(op: Sinusoid) -> Sinusoid:
    return replace(op, halves=not op.halves)


Angle = Callable[[Array, int], tuple[Array, Array]]
"""The exponent of 10000 of every column, and which columns are sines."""


def _encoding(step: Step, angle: Angle, base: float = BASE) -> Function:
    width = step.shape[-1]

    def function(places: Array) -> Array:
        exponent, sine = angle(np.arange(width), width)
        angles = places[..., None] / base**exponent
        return np.where(sine, np.sin(angles), np.cos(angles))

    return function


def _paired(column: Array, width: int) -> tuple[Array, Array]:
    return 2 * (column // 2) / width, column % 2 == 0


def _by_column(column: Array, width: int) -> tuple[Array, Array]:
    return 2 * column / width, column % 2 == 0


def _own_column(column: Array, width: int) -> tuple[Array, Array]:
    return column / width, column % 2 == 0


def _by_half(column: Array, width: int) -> tuple[Array, Array]:
    return (column // 2) / width, column % 2 == 0


def _whole(column: Array, width: int) -> tuple[Array, Array]:
    del width
    return np.zeros(column.shape), column % 2 == 0


def _turned_over(column: Array, width: int) -> tuple[Array, Array]:
    return -2 * (column // 2) / width, column % 2 == 0


def _cosine_first(column: Array, width: int) -> tuple[Array, Array]:
    return 2 * (column // 2) / width, column % 2 == 1
