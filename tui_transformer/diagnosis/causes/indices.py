"""Queries, keys and values read from the wrong place of the matrix that they lie in, and sums that end too early."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, around, changing, groups, instead, last
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Context, Linear, Project, Rotate, Scores, Unembed
from tui_transformer.engine.program import Step

PARTS: Mapping[str, tuple[type, int]] = {"key": (Scores, 1), "value": (Context, 1), "query": (Scores, 0)}
"""What is read → the operation that reads it, and as which of its inputs."""

Slip = Callable[[Array], Array]
"""Heads × tokens × d_k (with a batch axis) as they are read by wrong indices."""


def read_by_wrong_indices(segment: Segment) -> Iterator[Cause]:
    """K as d × n, rows d_k apart, columns without their head, the values of the query's own row."""
    for part in PARTS:
        for group in _readers(segment, part):
            for slip, says in SLIPS.items():
                change = changing(_slipped(step, part, slip) for step in group)
                yield Cause(_name(part, slip), change, says.format(part[0].upper()))
    for group in groups([step for step in segment.steps if isinstance(step.op, Context)]):
        own = changing(instead(step, _own_row) for step in group)
        says = "when row i of the weights meets row i of V again and again: weight (i, j) meets row j of V"
        yield Cause("value-index", own, says)
    yield from _short(segment)


def _readers(segment: Segment, part: str) -> Iterator[tuple[Step, ...]]:
    """Steps that read a part: the products; before them the rotations; the projection where the dump has no further."""
    kind, _ = PARTS[part]
    products = [step for step in segment.steps if isinstance(step.op, kind)]
    turned = [step for step in segment.steps if isinstance(step.op, Rotate) and last(step.inputs[0]) == part]
    projected = [step for step in segment.steps if isinstance(step.op, Project) and last(step.name) == part]
    for steps in (products, turned, [] if products or turned else projected):
        yield from groups(steps)


def _slipped(step: Step, part: str, slip: Slip) -> Step:
    if isinstance(step.op, Project):
        return instead(step, lambda *inputs: slip(step.op.forward(CPU, *inputs)))
    place = 0 if isinstance(step.op, Rotate) else PARTS[part][1]
    return around(step, lambda *inputs: tuple(slip(x) if i == place else x for i, x in enumerate(inputs)))


def _name(part: str, slip: Slip) -> str:
    return "keys-reshaped" if part == "key" and slip in (_reshaped, _head_reshaped) else f"{part}-index"


def _side_by_side(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1)


def _reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return _side_by_side(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _head_reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return np.ascontiguousarray(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _rows_too_near(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    flat = _side_by_side(x).reshape(batch, -1)
    return flat[:, _places(heads, tokens, width, width, width)]


def _without_head(x: Array) -> Array:
    return np.broadcast_to(x[:, :1], x.shape)


def _head_not_multiplied(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    flat = _side_by_side(x).reshape(batch, -1)
    return flat[:, _places(heads, tokens, width, heads * width, 1)]


def _places(heads: int, tokens: int, width: int, row: int, head: int) -> Array:
    """Places in a flat matrix: token · row + head · `head` + column."""
    h, j, k = np.ogrid[:heads, :tokens, :width]
    return j * row + h * head + k


SLIPS: Mapping[Slip, str] = {
    _reshaped: "when {0}, n × d, is read as d × n: transpose it, do not reshape it (cell j, c is at j·d + c)",
    _head_reshaped: "when {0} of a head, n × d_k, is read as d_k × n: transpose it, do not reshape it",
    _rows_too_near: "when row j of {0} begins at j·d_k: a row has all heads, so it begins at j·d_model",
    _without_head: "when every head reads the columns of head 0 of {0}: column k of head h is h·d_k + k",
    _head_not_multiplied: "when column k of head h of {0} is read at h + k: it is at h·d_k + k",
}


def _own_row(weights: Array, value: Array) -> Array:
    rows = np.repeat(value, weights.shape[1] // value.shape[1], axis=1)
    return weights.sum(axis=-1, keepdims=True) * rows


def _short(segment: Segment) -> Iterator[Cause]:
    """Sums without their last term."""
    for kinds, change, what in (
        ((Scores,), _all_but_last_columns, "column of Q and K"),
        ((Context,), _all_but_last_key, "key"),
        ((Linear, Project), _all_but_last_row, "row of the weight"),
    ):
        steps = [step for step in segment.steps if isinstance(step.op, kinds) and not isinstance(step.op, Unembed)]
        for group in groups(steps):
            says = f"when the last {what} is left out of the sum: let the loop run one further"
            yield Cause("sum-short", changing(around(step, change) for step in group), says)


def _all_but_last_columns(query: Array, key: Array) -> tuple[Array, ...]:
    return query[..., :-1], key[..., :-1]


def _all_but_last_key(weights: Array, value: Array) -> tuple[Array, ...]:
    return weights[..., :-1], value[..., :-1, :]


def _all_but_last_row(x: Array, weight: Array, *bias: Array) -> tuple[Array, ...]:
    return np.ascontiguousarray(x[..., :-1]), weight[:-1], *bias
