"""Shares that sum to 1 along another axis, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, Function, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Softmax

HIDDEN = (-np.inf, -1e9)
"""Values of a hidden score: along another axis than that of the keys, all of them may be hidden."""


def normalised_wrongly(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all."""
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
        none = changing(instead(step, lambda scores: scores) for step in group)
        yield Cause("softmax-missing", none, "without the softmax: take e^s ÷ Σ e^s of every row")
        whole = changing(instead(step, np.exp) for step in group)
        yield Cause("softmax-sum-missing", whole, "without the division by the sum: divide e^s by Σ e^s of its row")


def _over(axes: tuple[int, ...], hidden: float) -> Function:
    def softmax(scores: Array) -> Array:
        scores = np.where(np.isneginf(scores), hidden, scores)
        top = scores.max(axis=axes, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        total = exponentials.sum(axis=axes, keepdims=True)
        return exponentials / np.where(total == 0.0, 1.0, total)

    return softmax
