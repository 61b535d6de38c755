"""Shares that sum to 1 along another axis, or not at all; exponentials of another number, or too large for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, Function, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Softmax

HIDDEN = (-np.inf, -1e9)
"""Values of a hidden score: along another axis than that of the keys, all of them may be hidden."""


OVERFLOW: Mapping[type[np.floating[Any]], str] = {
    np.float32: "when e^s overflows float32 (s above 88.7)",
    np.float16: "when e^s overflows float16 (s above 11.1)",
    np.float64: "when e^s overflows float64 (s above 709.7)",
}
"""Where exponentials may be too large, if the largest score of the row is not taken off before."""

BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Keys that are read together where a row is read in blocks (Dao et al. 2022, §3.1)."""


def normalised_wrongly(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all; overflowing; of another base."""
    steps = [step for step in segment.steps if isinstance(step.op, Softmax)]
    for group in groups(steps):
        along = {(-2,): "rows (a column sums to 1)", (-2, -1): "the whole matrix"}
        if len(group[0].axes) == 3:
            along[(-3,)] = "the heads"
        for axes, words in along.items():
            for hidden in HIDDEN:
                change = changing(instead(step, _over(axes, hidden)) for step in group)
                says = f"when the softmax goes over {words}: take it over the last axis, so that each row sums to 1"
                yield Cause("softmax-axis", change, says)
        for kind, words in OVERFLOW.items():
            naive = changing(instead(step, _without_maximum(kind)) for step in group)
            yield Cause("softmax-overflow", naive, f"{words}: take the row's largest score off before the exponential")
        none = changing(instead(step, lambda scores: scores) for step in group)
        yield Cause("softmax-missing", none, "without the softmax: take e^s ÷ Σ e^s of every row")
        whole = changing(instead(step, np.exp) for step in group)
        yield Cause("softmax-sum-missing", whole, "without the division by the sum: divide e^s by Σ e^s of its row")
        powers = changing(instead(step, lambda scores: _right(scores * np.log(2.0))) for step in group)
        says = "with powers of 2: take powers of e, or multiply the scores by log₂ e before exp2"
        yield Cause("softmax-base", powers, says)
        bare = changing(instead(step, _without_exponentials) for step in group)
        yield Cause("softmax-exponential-missing", bare, "when scores are divided by their sum: take e^s first")
        twice = changing(instead(step, lambda scores: _right(_right(scores))) for step in group)
        yield Cause("softmax-twice", twice, "when the softmax is taken twice: take it once")
        logarithms = changing(instead(step, lambda scores: np.log(_right(scores))) for step in group)
        yield Cause("softmax-logarithm", logarithms, "with the logarithm of the softmax: take the softmax itself")
        for size in (size for size in BLOCKS if size < group[0].shape[-1]):
            blocks = changing(instead(step, _not_rescaled(size)) for step in group)
            says = (
                f"when rows are read in blocks of {size} and what was added up is not rescaled as the maximum grows: "
                "multiply sum and output by e^(old maximum − new maximum)"
            )
            yield Cause("softmax-rescale-missing", blocks, says)


def _over(axes: tuple[int, ...], hidden: float) -> Function:
    def softmax(scores: Array) -> Array:
        scores = np.where(np.isneginf(scores), hidden, scores)
        top = scores.max(axis=axes, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        total = exponentials.sum(axis=axes, keepdims=True)
        return exponentials / np.where(total == 0.0, 1.0, total)

    return softmax


def _without_maximum(kind: type[np.floating[Any]]) -> Function:
    """The softmax as it is written first: ∞ ÷ ∞ where an exponential does not fit."""

    def softmax(scores: Array) -> Array:
        exponentials = np.exp(scores.astype(kind)).astype(np.float64)
        total = exponentials.sum(axis=-1, keepdims=True)
        return exponentials / np.where(total > np.finfo(kind).max, np.inf, total)

    return softmax


def _right(scores: Array) -> Array:
    top = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _without_exponentials(scores: Array) -> Array:
    scores = np.where(np.isneginf(scores), 0.0, scores)
    return scores / scores.sum(axis=-1, keepdims=True)


def _not_rescaled(size: int) -> Function:
    def softmax(scores: Array) -> Array:
        ends = [min(j // size * size + size, scores.shape[-1]) - 1 for j in range(scores.shape[-1])]
        top = np.maximum.accumulate(scores, axis=-1)[..., ends]
        exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    return softmax
