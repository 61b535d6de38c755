"""Dropout put into a finished program, and what it keeps in a batch."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace

import numpy as np

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Dropout
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.engine.trace import Trace

EMBEDDING = "embedding.output"
_LEVELS = 1 << 16


def with_dropout(trace: Trace, rate: float, seed: int, batch: int) -> Trace:
    """The trace of the same input with dropout: the same seed and number of the batch drop the same cells."""
    if not rate:
        return trace
    program = inserted(trace.program, rate)
    masks = {
        name: kept((trace.batch, *program.shape(name)), rate, (seed, batch, zlib.crc32(name.encode())))
        for name in program.givens
        if name not in trace.givens
    }
    return Trace(program, trace.weights, {**trace.givens, **masks}, trace.budget)


@by_program
def inserted(program: Program, rate: float) -> Program:
    """Dropout of the embedding's sum and of every sublayer's output before it is added (Vaswani et al. 2017, §5.4)."""
    places = _places(program)
    givens: dict[str, Axes] = dict(program.givens)
    steps: list[Step] = []
    for step in program.steps:
        steps.append(replace(step, inputs=tuple(places.get(source, source) for source in step.inputs)))
        if step.name in places:
            name = places[step.name]
            givens[f"{name}.kept"] = step.axes
            steps.append(Step(name, Dropout(rate), (step.name, f"{name}.kept"), step.axes))
    return Program(tuple(steps), program.aliases, program.weights, givens)


def _places(program: Program) -> dict[str, str]:
    """The steps that are followed by dropout, and what the dropout is called."""
    places: dict[str, str] = {}
    added = (name for step in program.steps if step.role == "residual" for name in step.inputs[1:])
    for name in (*(name for name in program.names if name.endswith(EMBEDDING)), *added):
        places[program.step(name).name] = f"{name.rpartition('.')[0]}.dropout"
    return places


def kept(shape: tuple[int, ...], rate: float, seed: tuple[int, ...]) -> Host:
    """Which cells are kept: each with probability 1 − rate, to within 2⁻¹⁷."""
    data = np.random.default_rng(seed).bytes(2 * math.prod(shape))
    return (np.frombuffer(data, "<u2") >= round(rate * _LEVELS)).reshape(shape)
