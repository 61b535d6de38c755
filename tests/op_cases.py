"""Every operation with random inputs: the table that the tests of the operations go through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tui_transformer.engine import ops
from tui_transformer.engine.axis import Axis, Region, Shape, shape_of, slices
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Source
from tui_transformer.engine.ops.pooling import SHARES

BATCH, HEADS, ROWS, KEYS, MODEL, WIDTH, WORDS = 2, 3, 4, 5, 6, 2, 7
SHARE = 3
"""Query heads that read one key head, where heads are grouped."""

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Given:
    """One input: its values, whether it has a batch axis, and whether a gradient flows to it."""

    values: Any
    batched: bool = True
    differentiable: bool = True

    @property
    def shape(self) -> Shape:
        return self.values.shape[self.batched :]

    def on(self, backend: Backend) -> Array:
        kind = self.values.dtype.kind
        return {"f": backend.floats, "i": backend.integers, "b": backend.booleans}[kind](self.values)

    def region(self, region: Region) -> tuple[slice, ...]:
        return slices(region)[not self.batched :]

    def source(self, name: str, item: int) -> Source:
        values = self.values[item] if self.batched else self.values
        return Source(name, self.shape, lambda region: values[slices(region)[1:]].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Case:
    """An operation and its inputs."""

    op: ops.Op
    inputs: tuple[Given, ...]

    @property
    def shapes(self) -> list[Shape]:
        return [given.shape for given in self.inputs]

    @property
    def axes(self) -> list[tuple[Axis, ...]]:
        return [tuple(Axis(f"axis {i}", size) for i, size in enumerate(shape)) for shape in self.shapes]

    @property
    def shape(self) -> Shape:
        return shape_of(self.op.axes(*self.axes))

    def on(self, backend: Backend) -> list[Array]:
        """Fresh inputs on a backend."""
        return [given.on(backend).copy() for given in self.inputs]

    def results(self, backend: Backend) -> list[Array]:
        """The result, and the gradients of a random share of it, on the host."""
        inputs = self.on(backend)
        output = self.op.forward(backend, *inputs)
        share = backend.floats(np.random.default_rng(4).standard_normal(output.shape))
        slopes = self.op.backward(backend, share, output, *inputs)
        return [backend.to_host(array) for array in (output, *slopes) if array is not None]


def normal(rng: Rng, *shape: int) -> Given:
    return Given(rng.standard_normal((BATCH, *shape)))


def weight(rng: Rng, *shape: int) -> Given:
    return Given(rng.standard_normal(shape), batched=False)


def whole_numbers(rng: Rng, below: int, *shape: int) -> Given:
    return Given(rng.integers(0, below, (BATCH, *shape)), differentiable=False)


def places(size: int, first: int = 0) -> Given:
    return Given(np.broadcast_to(np.arange(first, first + size), (BATCH, size)), differentiable=False)


def far_places(rng: Rng) -> Given:
    """Places that do not begin at 0, other ones in every sentence."""
    return Given(places(ROWS).values + rng.integers(0, 100, (BATCH, 1)), differentiable=False)


def away_from_zero(rng: Rng) -> Given:
    values = rng.standard_normal((BATCH, ROWS, MODEL))
    return Given(values + 0.1 * np.sign(values))


def shares(rng: Rng, heads: int = HEADS) -> Given:
    values = rng.random((BATCH, heads, ROWS, KEYS))
    return Given(values / values.sum(axis=-1, keepdims=True))


def partly_hidden(rng: Rng) -> Given:
    """Scores with −∞ in places, and a row of nothing else."""
    values = rng.standard_normal((BATCH, HEADS, ROWS, KEYS))
    values[rng.random(values.shape) < 0.3] = -math.inf
    values[0, 1, 2] = -math.inf
    return Given(values)


def visible(rng: Rng) -> Given:
    return Given(rng.random((BATCH, KEYS)) < 0.6, differentiable=False)


def dropout_inputs(rng: Rng) -> tuple[Given, ...]:
    """Values, and which of them are kept."""
    return normal(rng, ROWS, MODEL), Given(rng.random((BATCH, ROWS, MODEL)) > 0.3, differentiable=False)


def mask_inputs(rng: Rng) -> tuple[Given, ...]:
    return normal(rng, HEADS, ROWS, KEYS), places(ROWS), places(KEYS), visible(rng)


def relative_bias(rng: Rng, buckets: int, *, bidirectional: bool) -> Case:
    """Queries that begin at the third key, so that keys lie near and far on both sides."""
    inputs = (normal(rng, HEADS, ROWS, 3 * KEYS), weight(rng, buckets, HEADS), places(ROWS, 2), places(3 * KEYS))
    return Case(ops.RelativeBias(10, bidirectional), inputs)


def disentangled(rng: Rng, *sides: str, **settings: int) -> Case:
    """Queries that begin at the third key; distances beyond those that have rows."""
    span = settings["span"]
    tokens = {"query": ROWS, "key": 3 * KEYS}
    distances = (normal(rng, HEADS, tokens[side], 2 * span) for side in sides)
    inputs = (normal(rng, HEADS, ROWS, 3 * KEYS), *distances, places(ROWS, 2), places(3 * KEYS))
    return Case(ops.Disentangle(sides, 0.4, **settings), inputs)


def pooled(how: str, rng: Rng) -> Case:
    """Rows of which the last is padding, in one sentence the last two."""
    seen = np.array([[True] * (ROWS - 1) + [False], [True] * (ROWS - 2) + [False] * 2])
    return Case(ops.Pool(how), (normal(rng, ROWS, MODEL), Given(seen, differentiable=False)))


def norm_inputs(rng: Rng) -> tuple[Given, ...]:
    return normal(rng, ROWS, MODEL), weight(rng, MODEL), weight(rng, MODEL)


def sum_inputs(rng: Rng, parts: int) -> tuple[Given, ...]:
    return *(normal(rng, ROWS, MODEL) for _ in range(parts)), weight(rng, MODEL), weight(rng, MODEL)


def rotated(rng: Rng, width: int, *frequencies: float, factor: float = 1.0) -> Case:
    return Case(ops.Rotate(frequencies, factor), (normal(rng, HEADS, ROWS, width), far_places(rng)))


def grouped_scores(rng: Rng, groups: int) -> Case:
    query, key = normal(rng, SHARE * groups, ROWS, WIDTH), normal(rng, groups, KEYS, WIDTH)
    return Case(ops.Scores(SHARE), (query, key))


def grouped_context(rng: Rng, groups: int) -> Case:
    return Case(ops.Context(SHARE), (shares(rng, SHARE * groups), normal(rng, groups, KEYS, WIDTH)))


def product_inputs(rng: Rng, *, bias: bool, turned: bool = False) -> tuple[Given, ...]:
    columns = HEADS * WIDTH
    matrix = weight(rng, columns, MODEL) if turned else weight(rng, MODEL, columns)
    return normal(rng, ROWS, MODEL), matrix, *((weight(rng, columns),) if bias else ())


def router(rng: Rng) -> Given:
    """Logits of experts that lie far enough apart for a step of a difference to change no choice."""
    order = rng.permuted(np.broadcast_to(np.arange(KEYS, dtype=float), (BATCH, ROWS, KEYS)), axis=-1)
    return Given(order + 0.2 * rng.random(order.shape))


def chosen_by_some(rng: Rng, experts: int) -> Given:
    """Shares of experts: the last is chosen by no token, and no other by all."""
    values = rng.random((BATCH, ROWS, experts)) + 0.1
    values[:, 1::2, ::2] = 0.0
    values[:, ::2, 1::2] = 0.0
    values[..., -1] = 0.0
    return Given(values, differentiable=False)


def of_expert(rng: Rng, op: ops.Op, expert: int, *operands: Given, rows: int = 1) -> Case:
    return Case(ops.OfExpert(op, expert, 2, rows), (*operands, chosen_by_some(rng, 3)))


def weighted_experts(rng: Rng) -> Case:
    values = rng.random((BATCH, ROWS, 3)) + 0.1
    return Case(ops.WeightedExperts(2), (Given(values), *(normal(rng, ROWS, MODEL) for _ in range(3))))


def near_limit(rng: Rng) -> Given:
    """Values within and beyond ±1, none near it."""
    values = rng.standard_normal((BATCH, ROWS, MODEL))
    return Given(values + 0.1 * np.sign(values) * np.sign(np.abs(values) - 1.0))


def pre_activations(rng: Rng) -> Given:
    """Of features: far enough apart for a step of a difference to change none that is taken, or above a threshold."""
    places = rng.permuted(np.broadcast_to(np.arange(MODEL, dtype=float), (BATCH, ROWS, MODEL)), axis=-1)
    return Given(places - 2.3 + 0.2 * rng.random(places.shape))


def thresholds(*values: float) -> Given:
    return Given(np.resize(values, MODEL).astype(float), batched=False, differentiable=False)


def gated(rng: Rng) -> Case:
    """A gate that is open for some that are not above 0, and the other way round."""
    numbers = weight(rng, MODEL), Given(np.resize([0.25, 1.25], MODEL), batched=False)
    return Case(ops.GatedRelu(), (pre_activations(rng), thresholds(0.55, -1.45), *numbers))


CASES: Mapping[str, Callable[[Rng], Case]] = {
    "add": lambda rng: Case(ops.Add(), (normal(rng, ROWS, MODEL), normal(rng, ROWS, MODEL))),
    "add three": lambda rng: Case(ops.Add(), tuple(normal(rng, ROWS, MODEL) for _ in range(3))),
    "clamped gate": lambda rng: Case(ops.ClampedGate(1.0), (normal(rng, ROWS, MODEL), near_limit(rng))),
    "clamped swish": lambda rng: Case(ops.ClampedSwish(1.7, 1.0), (near_limit(rng),)),
    "expert weights": lambda rng: Case(ops.ExpertWeights(2), (router(rng),)),
    "expert weights among all": lambda rng: Case(ops.ExpertWeights(2, among_chosen=False), (router(rng),)),
    "matrix of an expert": lambda rng: of_expert(rng, ops.Linear(), 0, *product_inputs(rng, bias=True)),
    "matrix of an expert that nobody chose": lambda rng: of_expert(
        rng, ops.Linear(), 2, *product_inputs(rng, bias=True)
    ),
    "gate of an expert": lambda rng: of_expert(
        rng, ops.Gate(), 1, normal(rng, ROWS, MODEL), normal(rng, ROWS, MODEL), rows=2
    ),
    "change of features": lambda rng: Case(ops.Changed(), tuple(normal(rng, ROWS, MODEL) for _ in range(3))),
    "jump": lambda rng: Case(ops.Jump(), (pre_activations(rng), thresholds(-1.5, 0.5))),
    "jump relu": lambda rng: Case(ops.JumpRelu(), (pre_activations(rng), thresholds(-1.5, 0.5))),
    "gated relu": gated,
    "largest": lambda rng: Case(ops.Largest(3), (pre_activations(rng),)),
    "largest of groups": lambda rng: Case(ops.Largest(1, 3), (pre_activations(rng),)),
    "to one size": lambda rng: Case(ops.ToSize(centred=False), (normal(rng, ROWS, MODEL),)),
    "to one size and mean 0": lambda rng: Case(ops.ToSize(True, 1e-3), (normal(rng, ROWS, MODEL),)),
    "from one size": lambda rng: Case(ops.FromSize(centred=False), (normal(rng, ROWS, MODEL),) * 2),
    "from one size and mean 0": lambda rng: Case(
        ops.FromSize(True, 1e-3), (normal(rng, ROWS, MODEL), normal(rng, ROWS, MODEL))
    ),
    "subtract": lambda rng: Case(ops.Subtract(), (normal(rng, ROWS, MODEL), normal(rng, ROWS, MODEL))),
    "subtract a vector": lambda rng: Case(ops.Subtract(), (normal(rng, ROWS, MODEL), weight(rng, MODEL))),
    "softmax with a sink": lambda rng: Case(ops.SoftmaxWithSink(), (partly_hidden(rng), weight(rng, HEADS))),
    "weighted experts": weighted_experts,
    "context": lambda rng: Case(ops.Context(), (shares(rng), normal(rng, HEADS, KEYS, WIDTH))),
    "context of a single group": lambda rng: grouped_context(rng, 1),
    "context of grouped heads": lambda rng: grouped_context(rng, 2),
    "embed": lambda rng: Case(ops.Embed(), (whole_numbers(rng, 3, ROWS), weight(rng, WORDS, MODEL))),
    "embed with unknown words": lambda rng: Case(
        ops.Embed(2.5, silent=1),
        (Given(np.array([[1, 0, 2, 1]] * BATCH), differentiable=False), weight(rng, WORDS, MODEL)),
    ),
    "embed scaled": lambda rng: Case(ops.Embed(2.5), (whole_numbers(rng, WORDS, ROWS), weight(rng, WORDS, MODEL))),
    "extend": lambda rng: Case(ops.Extend(), (normal(rng, HEADS, KEYS, WIDTH), normal(rng, HEADS, 2, WIDTH))),
    "gate": lambda rng: Case(ops.Gate(), (normal(rng, ROWS, MODEL), normal(rng, ROWS, MODEL))),
    "gelu": lambda rng: Case(ops.Gelu(), (normal(rng, ROWS, MODEL),)),
    "gelu by tanh": lambda rng: Case(ops.GeluTanh(), (normal(rng, ROWS, MODEL),)),
    "quick gelu": lambda rng: Case(ops.QuickGelu(), (normal(rng, ROWS, MODEL),)),
    "unit length": lambda rng: Case(ops.UnitLength(), (normal(rng, MODEL),)),
    "unit length of rows": lambda rng: Case(ops.UnitLength(), (normal(rng, ROWS, MODEL),)),
    "side by side": lambda rng: Case(ops.Concat(), tuple(normal(rng, MODEL) for _ in range(3))),
    "tanh": lambda rng: Case(ops.Tanh(), (normal(rng, ROWS, MODEL),)),
    "sinusoid up to the last wave": lambda rng: Case(
        ops.Sinusoid(MODEL, halves=True, last=True, silent=3), (whole_numbers(rng, 6, ROWS),)
    ),
    "sigmoid": lambda rng: Case(ops.Sigmoid(), (normal(rng, ROWS, MODEL),)),
    "linear of a vector": lambda rng: Case(
        ops.Linear(), (normal(rng, MODEL), weight(rng, MODEL, WORDS), weight(rng, WORDS))
    ),
    "layer norm of a vector": lambda rng: Case(ops.LayerNorm(1e-3), (normal(rng, MODEL), *norm_inputs(rng)[1:])),
    "softmax of a vector": lambda rng: Case(ops.Softmax(), (normal(rng, WORDS),)),
    **{f"pool, {how}": partial(pooled, how) for how in SHARES},
    "given": lambda rng: Case(ops.Given(), (whole_numbers(rng, WORDS, ROWS),)),
    "layer norm": lambda rng: Case(ops.LayerNorm(1e-3), norm_inputs(rng)),
    "linear": lambda rng: Case(ops.Linear(), product_inputs(rng, bias=False)),
    "linear with bias": lambda rng: Case(ops.Linear(), product_inputs(rng, bias=True)),
    "mask": lambda rng: Case(ops.Mask(), mask_inputs(rng)),
    "mask causal": lambda rng: Case(ops.Mask(causal=True), mask_inputs(rng)),
    "layer norm without a shift": lambda rng: Case(ops.LayerNorm(1e-3), norm_inputs(rng)[:2]),
    "layer norm of heads": lambda rng: Case(
        ops.LayerNorm(1e-3), (normal(rng, HEADS, ROWS, WIDTH), weight(rng, WIDTH), weight(rng, WIDTH))
    ),
    "layer norm by head": lambda rng: Case(
        ops.LayerNormByHead(1e-3), (normal(rng, HEADS, ROWS, WIDTH), *(weight(rng, WIDTH) for _ in range(HEADS)))
    ),
    "distance bias": lambda rng: Case(
        ops.DistanceBias((0.5, 0.25, 0.125)), (normal(rng, HEADS, ROWS, KEYS), places(ROWS), places(KEYS))
    ),
    "disentangled": lambda rng: disentangled(rng, "query", "key", span=4),
    "disentangled from queries alone": lambda rng: disentangled(rng, "query", span=20),
    "disentangled from keys, in buckets": lambda rng: disentangled(rng, "key", span=5, buckets=5, farthest=9),
    "distance scores": lambda rng: Case(
        ops.DistanceScores(side="key"), (normal(rng, HEADS, ROWS, WIDTH), normal(rng, HEADS, 2 * KEYS, WIDTH))
    ),
    "soft cap": lambda rng: Case(ops.SoftCap(1.5), (normal(rng, HEADS, ROWS, KEYS),)),
    "mask in a window on both sides": lambda rng: Case(ops.Mask(window=2), mask_inputs(rng)),
    "mask in a window": lambda rng: Case(ops.Mask(causal=True, window=2), mask_inputs(rng)),
    "merge heads": lambda rng: Case(ops.MergeHeads(), (normal(rng, HEADS, ROWS, WIDTH),)),
    "norm of a sum": lambda rng: Case(ops.NormOfSum(1e-3, 3), sum_inputs(rng, 3)),
    "norm of one part": lambda rng: Case(ops.NormOfSum(1e-3, 1), sum_inputs(rng, 1)),
    "parameter": lambda rng: Case(ops.Parameter(), (weight(rng, HEADS, ROWS, WIDTH),)),
    "project": lambda rng: Case(ops.Project(WIDTH, "Q"), product_inputs(rng, bias=False)),
    "project with bias": lambda rng: Case(ops.Project(WIDTH, "K"), product_inputs(rng, bias=True)),
    "relative bias": lambda rng: relative_bias(rng, 8, bidirectional=True),
    "relative bias causal": lambda rng: relative_bias(rng, 5, bidirectional=False),
    "dropout": lambda rng: Case(ops.Dropout(0.3), dropout_inputs(rng)),
    "relu": lambda rng: Case(ops.Relu(), (away_from_zero(rng),)),
    "relu squared": lambda rng: Case(ops.ReluSquared(), (away_from_zero(rng),)),
    "RMS norm": lambda rng: Case(ops.RmsNorm(1e-3), (normal(rng, ROWS, MODEL), weight(rng, MODEL))),
    "RMS norm of heads": lambda rng: Case(ops.RmsNorm(), (normal(rng, HEADS, ROWS, WIDTH), weight(rng, WIDTH))),
    "RMS norm of all heads": lambda rng: Case(
        ops.RmsNormOfHeads(1e-3), (normal(rng, HEADS, ROWS, WIDTH), weight(rng, HEADS * WIDTH))
    ),
    "rotate": lambda rng: rotated(rng, 4, 1.0, 0.01),
    "rotate in part": lambda rng: rotated(rng, 5, 0.3, 0.02),
    "rotate and scale": lambda rng: rotated(rng, 5, 0.3, 0.02, factor=1.2),
    "scale": lambda rng: Case(ops.Scale(0.3, "× 0.3"), (normal(rng, HEADS, ROWS, KEYS),)),
    "scores": lambda rng: Case(ops.Scores(), (normal(rng, HEADS, ROWS, WIDTH), normal(rng, HEADS, KEYS, WIDTH))),
    "scores of a single group": lambda rng: grouped_scores(rng, 1),
    "scores of grouped heads": lambda rng: grouped_scores(rng, 2),
    "silu": lambda rng: Case(ops.Silu(), (normal(rng, ROWS, MODEL),)),
    "sinusoid": lambda rng: Case(ops.Sinusoid(MODEL), (whole_numbers(rng, 50, ROWS),)),
    "sinusoid in halves": lambda rng: Case(ops.Sinusoid(MODEL, halves=True), (whole_numbers(rng, 50, ROWS),)),
    "sinusoid in uneven halves": lambda rng: Case(
        ops.Sinusoid(MODEL + 1, halves=True), (whole_numbers(rng, 50, ROWS),)
    ),
    "sinusoid of odd width": lambda rng: Case(ops.Sinusoid(MODEL + 1), (whole_numbers(rng, 50, ROWS),)),
    "softmax": lambda rng: Case(ops.Softmax(), (partly_hidden(rng),)),
    "softmax of logits": lambda rng: Case(ops.Softmax(), (normal(rng, ROWS, WORDS),)),
    "unembed": lambda rng: Case(ops.Unembed(), product_inputs(rng, bias=False, turned=True)),
    "unembed scaled": lambda rng: Case(ops.Unembed(0.4), product_inputs(rng, bias=False, turned=True)),
    "unembed scaled with bias": lambda rng: Case(ops.Unembed(0.4), product_inputs(rng, bias=True, turned=True)),
    "unembed with bias": lambda rng: Case(ops.Unembed(), product_inputs(rng, bias=True, turned=True)),
}
