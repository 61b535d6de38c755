"""Sentences compared: the cosine of their vectors, and which tokens of the two bring them together.

A pooled vector is a sum over the tokens, Σ share · x, so the cosine of two is a sum over pairs of tokens:
cos(a, b) = Σᵢⱼ aᵢ · bⱼ ÷ (‖a‖ ‖b‖). A matrix behind the pooling keeps the sum, its bias is a part of its own; behind an
activation f every column's parts are multiplied by f(z) ÷ z, which keeps it too as f(0) = 0 (the rescale rule of
Shrikumar et al. 2017, "DeepLIFT", §3.5.1, from a reference of 0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.engine import ops
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops.lookups import SHARES
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError

POOLED = "pooled"
BIAS = -1
"""The place of the part that is of no token."""


@dataclass(frozen=True, eq=False)
class SentenceVector:
    """The vector of a sentence, and what every token gives to it.

    Attributes:
        whole: d.
        parts: (n + 1) × d, float64: of every token, last of the biases; they add up to the whole.
    """

    whole: Host
    parts: Host

    @property
    def length(self) -> float:
        """‖whole‖."""
        return float(np.linalg.norm(self.whole))


@dataclass(frozen=True, eq=False)
class Together:
    """Two sentences.

    Attributes:
        cosine: Of their vectors; 0 where one of them is 0.
        shares: What every pair of tokens gives to it, (n + 1) × (m + 1), last those of the biases; they add up to it.
    """

    cosine: float
    shares: Host

    def largest(self, count: int) -> tuple[tuple[int, int, float], ...]:
        """The pairs that give most, whatever the sign, and how much; `BIAS` for what is of no token."""
        order = np.argsort(-np.abs(self.shares), axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(order, self.shares.shape)
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return tuple((*self._places(row, column), float(self.shares[row, column])) for row, column in pairs)

    def _places(self, row: int, column: int) -> tuple[int, int]:
        last = tuple(size - 1 for size in self.shares.shape)
        return BIAS if row == last[0] else row, BIAS if column == last[1] else column


def sentence_vector(trace: Trace, item: int = 0) -> SentenceVector:
    """The last vector of a model that makes one of a sentence.

    Raises:
        InputError: The model makes none.
    """
    steps = [step for step in trace.program.steps if step.name.split(".")[0] == POOLED]
    if not steps:
        raise InputError(
            "this model makes no vector of a sentence: name a folder of sentence-transformers with --model, one that "
            "has a modules.json"
        )
    parts: dict[str, Host] = {}
    for step in steps:
        parts[step.name] = _PARTS[type(step.op)](_Made(trace, step, item, parts))
    last = steps[-1].name
    return SentenceVector(_values(trace, last, item), parts[last])


@dataclass(frozen=True, eq=False)
class _Made:
    """A step whose parts are wanted, and the parts of those before it."""

    trace: Trace
    step: Step
    item: int
    before: Mapping[str, Host]

    @property
    def parts(self) -> Host:
        """Of the step's own input."""
        return self.before[self.step.inputs[0]]


def _values(trace: Trace, name: str, item: int) -> Host:
    source = trace.source(name, item)
    return source.read(whole(source.shape))


def _of_tokens(made: _Made) -> Host:
    """Share · x of every token; no bias yet."""
    rows, visible = (_values(made.trace, name, made.item) for name in made.step.inputs)
    op: Any = made.step.op
    shares = SHARES[op.kind](np, rows[None], visible[None])[0]
    return np.vstack([rows * shares, np.zeros(rows.shape[-1])])


def _side_by_side(made: _Made) -> Host:
    return np.hstack([made.before[name] for name in made.step.inputs])


def _through_matrix(made: _Made) -> Host:
    weight, *bias = (_values(made.trace, name, made.item) for name in made.step.inputs[1:])
    parts: Host = made.parts @ weight
    for each in bias:
        parts[BIAS] += each
    return parts


def _rescaled(made: _Made) -> Host:
    """f(z) ÷ z of every column; where z is 0 the parts go as the slope does, which is left at 0."""
    before, after = (_values(made.trace, name, made.item) for name in (made.step.inputs[0], made.step.name))
    return made.parts * np.divide(after, before, out=np.zeros_like(before), where=before != 0)


_PARTS: Mapping[type[ops.Op], Callable[[_Made], Host]] = {
    ops.Pool: _of_tokens,
    ops.Concat: _side_by_side,
    ops.Linear: _through_matrix,
    ops.UnitLength: _rescaled,
    **dict.fromkeys((ops.Tanh, ops.Relu, ops.Gelu, ops.Silu), _rescaled),
}
"""How the parts go through every operation between the tokens and the sentence's vector."""


def together(first: SentenceVector, second: SentenceVector) -> Together:
    """The cosine of two sentences, and what every pair of tokens gives to it."""
    lengths = first.length * second.length
    scale = 1.0 / lengths if lengths else 0.0
    return Together(float(first.whole @ second.whole) * scale, first.parts @ second.parts.T * scale)
