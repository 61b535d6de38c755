"""Residual norm: how long the vectors of the residual stream are after each step.

The norm of a step x (n × d) is the mean over the real tokens of ‖x_i‖₂ = √(Σ_j x_ij²); padding is left out. Elhage et
al. 2021, "A Mathematical Framework for Transformer Circuits", name the residual stream: what the sublayers add to.

Which steps are on the stream is read off the program: it starts at `embedding.output`; it goes on with the first
`residual` that adds to it; where nothing adds to it and a `norm` is all that reads it, it goes on with that norm (the
norms of a post-norm model, and the last norm of a pre-norm stack). The norms inside the sublayers of a pre-norm model
read the stream and are not on it. A layer's `output` is another name of a step that is there already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.real_tokens import real_tokens
from tui_transformer.analysis.sample import CELLS
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace

START = "embedding.output"
Readers = Mapping[str, Sequence[Step]]


@dataclass(frozen=True)
class StreamNorms:
    """The steps of one stack's residual stream in order, and the mean norm of each."""

    steps: tuple[str, ...]
    norms: tuple[float, ...]

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`."""
        return self.steps[-1].partition(".")[0]


def row_norms(states: Host) -> Host:
    """‖x_i‖₂ of every row of n × d, in float64."""
    with np.errstate(over="ignore"):
        squares: Host = np.square(states, dtype=np.float64).sum(axis=-1)
    return np.sqrt(squares)


def residual_norms(trace: Trace, item: int = 0) -> tuple[StreamNorms, ...]:
    """The norms of every stack of a model, for one item of the batch. Computes the steps that are not there yet."""
    return tuple(
        StreamNorms(steps, tuple(_mean_norm(trace, step, item) for step in steps)) for steps in streams(trace.program)
    )


def streams(program: Program) -> tuple[tuple[str, ...], ...]:
    """The steps of every residual stream in order: one stream a stack, none where nothing is embedded."""
    readers = defaultdict(list)
    for step in program.steps:
        for source in step.inputs:
            readers[source].append(step)
    starts = (name for name in program.names if name == START or name.endswith(f".{START}"))
    return tuple(_follow(program.step(start).name, readers) for start in starts)


def _follow(name: str, readers: Readers) -> tuple[str, ...]:
    """The stream that starts at a step."""
    steps = [name]
    while following := _next(readers.get(steps[-1], ())):
        steps.append(following)
    return tuple(steps)


def _next(readers: Sequence[Step]) -> str | None:
    """The stream after a step that these read."""
    residual = next((step.name for step in readers if step.role == "residual"), None)
    if residual is None and len(readers) == 1 and readers[0].role == "norm":
        return readers[0].name
    return residual


def _mean_norm(trace: Trace, name: str, item: int) -> float:
    """The mean over real tokens, read a bounded number of rows at a time."""
    tokens, model = trace.program.axes(name)
    height = max(1, CELLS // model.size)
    parts = [range(row, min(row + height, tokens.size)) for row in range(0, tokens.size, height)]
    norms = [row_norms(trace.window(name, (part, range(model.size)), item)) for part in parts]
    return float(np.concatenate(norms)[real_tokens(trace, tokens, item)].mean())
