"""Statistics: what a set of numbers, the residual stream or gradients are like, in a handful of numbers.

The norm of a step x (n × d) is the mean over the real tokens of ‖x_i‖₂ = √(Σ_j x_ij²); padding is left out. Elhage et
al. 2021, "A Mathematical Framework for Transformer Circuits", name the residual stream: what the sublayers add to.

Which steps are on the stream is read off the program: it starts at `embedding.output`; it goes on with the first
`residual` that adds to it; where nothing adds to it and a `norm` is all that reads it, it goes on with that norm (the
norms of a post-norm model, and the last norm of a pre-norm stack). The norms inside the sublayers of a pre-norm model
read the stream and are not on it. A layer's `output` is another name of a step that is there already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program, by_program
from tui_transformer.engine.targets import START
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Statistics:
    """Measures of the N unmasked values of an array, NaN where there are none.

    Masked are −∞ (hidden by a mask), NaN and +∞. Mean: Σ x ÷ N. Deviation: √(Σ (x − mean)² ÷ N), of the whole
    population (no N − 1). Norm: √(Σ x²). `zeros`: the share of values that are exactly 0.
    """

    count: int
    masked: int
    mean: float
    deviation: float
    low: float
    high: float
    norm: float
    zeros: float


def statistics(values: Host) -> Statistics:
    """The statistics of an array of any shape, summed in float64."""
    kept = unmasked(values)
    masked = values.size - kept.size
    if not kept.size:
        return Statistics(0, masked, *[math.nan] * 6)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation, norm = kept.mean(), kept.std(), np.linalg.norm(kept)
    zeros = 1.0 - np.count_nonzero(kept) / kept.size
    numbers = (mean, deviation, kept.min(), kept.max(), norm, zeros)
    return Statistics(kept.size, masked, *map(float, numbers))


def means_of(values: Host, counted: Host) -> tuple[float, ...]:
    """The mean of the counted cells of every row, in float64; NaN where none is."""
    sums = np.where(counted, values, 0.0).sum(axis=1, dtype=np.float64)
    counts = counted.sum(axis=1)
    return tuple(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0).tolist())


def unmasked(values: Host) -> Host:
    """The finite values of an array as a float64 vector."""
    return values[np.isfinite(values)].astype(np.float64)


MOST_BINS = 40


def histogram(values: Host) -> tuple[Host, Host]:
    """Counts and edges (one more than counts) of the finite values of an array of any shape.

    ⌈√N⌉ bins of equal width from the smallest to the largest value (the square-root rule), at most `MOST_BINS`. A bin
    holds its left edge and not its right one; the last bin holds both. Equal values fill one bin around them; where
    nothing is finite there is one empty bin from 0 to 1.
    """
    kept = unmasked(values)
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (0.0, 1.0)
    if low == high:
        reach = abs(low) / 2 or 0.5
        edges = np.array([low - reach, high + reach])
    else:
        share = np.linspace(0.0, 1.0, (min(MOST_BINS, math.ceil(math.sqrt(kept.size))) or 1) + 1)
        # Weighing the ends rather than adding steps to `low` keeps `high - low` from overflowing; neighbouring edges
        # that fall on one number (values a few roundings apart) are one edge.
        edges = np.unique(low * (1.0 - share) + high * share)
    counts = np.bincount(np.searchsorted(edges[1:-1], kept, side="right"), minlength=len(edges) - 1)
    return counts, edges


CELLS = 1 << 22
"""The most cells that a measure reads of one matrix."""


def row_sample(rows: Sequence[int], columns: int, cells: int = CELLS, together: int = 1) -> tuple[range, ...]:
    """The rows (in rising order) as runs of neighbours; where they hold more than `cells`, evenly spaced ones.

    The first row is always there, and at least one row is taken however wide it is. `together`: so many neighbours are
    taken at each place, which are read faster.
    """
    limit = max(1, cells // max(columns, 1))
    picked = np.asarray(rows, dtype=np.int64)
    if len(picked) > limit:
        together = min(together, limit)
        groups = limit // together
        starts = len(picked) * np.arange(groups) // groups
        picked = picked[(starts[:, None] + np.arange(together)).ravel()]
    runs = np.split(picked, np.flatnonzero(np.diff(picked) > 1) + 1)
    return tuple(range(int(run[0]), int(run[-1]) + 1) for run in runs if run.size)


# Norms of the residual stream, and of gradients


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

    def mean(name: str) -> float:  # over real tokens
        norms = np.concatenate([row_norms(rows) for _, rows in trace.blocks(name, item=item)])
        return float(norms[real_tokens(trace, trace.program.axes(name)[0], item)].mean())

    return tuple(StreamNorms(steps, tuple(map(mean, steps))) for steps in streams(trace.program))


@by_program
def streams(program: Program) -> tuple[tuple[str, ...], ...]:
    """The steps of every residual stream in order: one stream a stack, none where nothing is embedded."""
    found = []
    for start in (name for name in program.names if name == START or name.endswith(f".{START}")):
        steps = [program.step(start).name]
        while readers := program.readers(steps[-1]):
            added = [step for step in readers if step.role == "residual"]
            if not added and (len(readers) > 1 or readers[0].role != "norm"):
                break
            steps.append((added or readers)[0].name)
        found.append(tuple(steps))
    return tuple(found)


Norms = Mapping[str, float]
Arrays = Mapping[str, Host]


def norm(gradient: Host) -> float:
    """√(Σ G²) over all cells, in float64."""
    with np.errstate(over="ignore"):
        return math.sqrt(float(np.square(gradient, dtype=np.float64).sum()))


def weight_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of every weight's gradient, in the order in which the forward pass reads them."""
    read = (source for step in program.steps for source in step.inputs if source in program.weights)
    return {name: norm(gradients[name]) for name in dict.fromkeys(read) if name in gradients}


def layer_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of every layer's gradient, all its weights together, from the embedding to the output."""
    squares: dict[str, float] = {}
    for name, size in weight_norms(program, gradients).items():
        squares[group_of(name)] = squares.get(group_of(name), 0.0) + size**2
    return {group: math.sqrt(total) for group, total in squares.items()}


def stream_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of ∂loss/∂x at every step of the residual stream, in order."""
    steps = (step for stream in streams(program) for step in stream)
    return {name: norm(gradients[name]) for name in steps if name in gradients}


def group_of(weight: str) -> str:
    """The layer of a weight (`encoder.0`); outside the layers what its name begins with (`embedding`, `output`)."""
    parts = weight.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and (parts[1].isdigit() or parts[1] == "embedding") else parts[0]
