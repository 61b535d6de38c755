"""Heads: columns dealt to them otherwise, and queries, keys and values that are read from the wrong place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    CPU,
    Cause,
    Segment,
    around,
    changing,
    computed,
    computed_of,
    fed,
    groups,
    instead,
    last,
)
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Context, Linear, Mask, MergeHeads, Op, Project, Rotate, Scores, Unembed
from tui_transformer.engine.program import Step

SAYS = {
    "memory": "when n × (h·d_k) is reshaped to h × n × d_k without swapping axes: "
    "reshape n × (h·d_k) to n × h × d_k and then swap the first two axes, and the same back",
    "dealt": "when column j belongs to head j mod h: head i has the columns from i·d_k on, d_k of them side by side",
}
"""Orders in which columns may be dealt to heads: that of memory, or like cards."""

NEAREST = 12
"""Most steps before one that are tried in its place."""


def split_causes(segment: Segment) -> Iterator[Cause]:
    """Heads split, merged, or both, in the order of memory or dealt like cards."""
    splits, merges = segment.of(Project), segment.of(MergeHeads)
    both = [(*splits, *merges)] if splits and merges else []
    for group in (*groups(splits), *groups(merges), *both):
        for order, says in SAYS.items():
            yield Cause("heads-order", changing(_in_order(step, order) for step in group), says)
    # matrices that are right side by side, as the dump has them, and are split wrongly where they are read
    reading = segment.of(Scores, Context, Rotate)
    for group in groups(step for step in reading if any(name in segment.given for name in step.inputs)):
        for order, says in SAYS.items():
            split = [_read_in_order(segment, step, order) for step in group]
            for joined in ((), merges) if merges else ((),):
                change = changing((*split, *(_in_order(step, order) for step in joined)))
                yield Cause("heads-order", change, says)


def _read_in_order(segment: Segment, step: Step, order: str) -> Step:
    """A step that splits its columns into heads in another order: queries and keys, what is rotated, or the values."""
    split_there = (0, 1) if isinstance(step.op, Scores) else (0,) if isinstance(step.op, Rotate) else (1,)
    wrong = [name in segment.given and i in split_there for i, name in enumerate(step.inputs)]

    def split(*inputs: Array) -> tuple[Array, ...]:
        return tuple(_again(x, order) if is_wrong else x for x, is_wrong in zip(inputs, wrong, strict=True))

    return around(step, split)


def _again(heads: Array, order: str) -> Array:
    """Heads of columns that are put side by side and split once more."""
    batch, count, rows, width = heads.shape
    columns = np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(batch, rows, count * width)
    if order == "memory":
        return columns.reshape(batch, count, rows, width)
    return columns.reshape(batch, rows, width, count).transpose(0, 3, 1, 2)


def _in_order(step: Step, order: str) -> Step:
    """A projection that splits, or a step that merges heads, in another order."""
    if isinstance(step.op, Project):
        return instead(step, lambda *inputs: _again(step.op.forward(CPU, *inputs), order))

    def merged(context: Array) -> Array:
        batch, heads, rows, width = context.shape
        turned = np.ascontiguousarray(context) if order == "memory" else context.transpose(0, 2, 3, 1)
        return turned.reshape(batch, rows, heads * width)

    return instead(step, merged)


def shared_causes(segment: Segment) -> Iterator[Cause]:
    """Grouped key heads laid out one after another again and again, in place of each several times."""
    for group in groups(step for step in segment.of(Scores, Context) if getattr(step.op, "share", 1) > 1):
        share = getattr(group[0].op, "share", 1)
        says = (
            f"when query head i reads key head i mod g: {share} query heads side by side share one, "
            f"so head i reads i ÷ {share} (repeat each key head, do not tile them)"
        )
        yield fed("keys-tiled", group, _tiled, says)
        says = f"when every query head reads key head 0: head i reads i ÷ {share}"
        yield fed("keys-first", group, lambda x, shared: (x, np.broadcast_to(shared[:, :1], shared.shape)), says)


def _tiled(first: Array, grouped: Array) -> tuple[Array, Array]:
    """As many key heads as query heads, tiled; the operation then shares none."""
    return first, np.tile(grouped, (1, first.shape[1] // grouped.shape[1], 1, 1))


def transposed_causes(segment: Segment) -> Iterator[Cause]:
    """Scores of keys with queries, and values that are added up with the weights of a column."""
    for group in groups(step for step in segment.of(Scores) if step.square):
        says = "when keys and queries are exchanged, K Qᵀ: row i has the scores of query i, so take Q Kᵀ"
        yield computed_of("scores-transposed", group, _scores_transposed, says)
    for group in groups(segment.of(Context)):
        says = "when the weights are transposed before the values: row i of the weights adds up the values for token i"
        yield fed("attention-transposed", group, lambda weights, value: (weights.swapaxes(-1, -2), value), says)


def _scores_transposed(step: Step, *inputs: Array) -> Array:
    return step.op.forward(CPU, *inputs).swapaxes(-1, -2)


# Wrong indices

PARTS: Mapping[str, tuple[type[Op], int]] = {"key": (Scores, 1), "value": (Context, 1), "query": (Scores, 0)}
"""What is read → the operation that reads it, and as which of its inputs."""

Slip = Callable[[Array], Array]
"""Heads × tokens × d_k (with a batch axis) as they are read by wrong indices."""


def index_causes(segment: Segment) -> Iterator[Cause]:
    """K as d × n, rows d_k apart, columns without their head, the values of the query's own row; short sums."""
    for part in PARTS:
        for group in _readers(segment, part):
            for slip, says in SLIPS.items():
                name = "keys-reshaped" if part == "key" and slip in (_reshaped, _head_reshaped) else f"{part}-index"
                change = changing(_slipped(step, part, slip) for step in group)
                yield Cause(name, change, says.format(part[0].upper()))
    for group in groups(segment.of(Context)):
        says = "when row i of the weights meets row i of V again and again: weight (i, j) meets row j of V"
        yield computed("value-index", group, _own_row, says)
    for kinds, short, what in (
        ((Scores,), lambda query, key: (query[..., :-1], key[..., :-1]), "column of Q and K"),
        ((Context,), lambda weights, value: (weights[..., :-1], value[..., :-1, :]), "key"),
        ((Linear, Project), _without_last_row, "row of the weight"),
    ):
        for group in groups(step for step in segment.of(*kinds) if not isinstance(step.op, Unembed)):
            says = f"when the last {what} is left out of the sum: let the loop run one further"
            yield fed("sum-short", group, short, says)


def _readers(segment: Segment, part: str) -> Iterator[tuple[Step, ...]]:
    """Steps that read a part: the products; before them the rotations; the projection where the dump has no further."""
    products = segment.of(PARTS[part][0])
    turned = [step for step in segment.of(Rotate) if last(step.inputs[0]) == part]
    projected = [step for step in segment.of(Project) if last(step.name) == part]
    for steps in (products, turned, [] if products or turned else projected):
        yield from groups(steps)


def _slipped(step: Step, part: str, slip: Slip) -> Step:
    if isinstance(step.op, Project):
        return instead(step, lambda *inputs: slip(step.op.forward(CPU, *inputs)))
    place = 0 if isinstance(step.op, Rotate) else PARTS[part][1]
    return around(step, lambda *inputs: tuple(slip(x) if i == place else x for i, x in enumerate(inputs)))


def _side_by_side(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1)


def _reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return _side_by_side(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _head_reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return np.ascontiguousarray(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _rows_too_near(x: Array) -> Array:
    return _read_at(x, x.shape[3], x.shape[3])


def _without_head(x: Array) -> Array:
    return np.broadcast_to(x[:, :1], x.shape)


def _head_not_multiplied(x: Array) -> Array:
    return _read_at(x, x.shape[1] * x.shape[3], 1)


def _read_at(x: Array, row: int, head: int) -> Array:
    """Cells of the flat matrix: of token j, head h and column k the one at j · `row` + h · `head` + k."""
    h, j, k = np.ogrid[: x.shape[1], : x.shape[2], : x.shape[3]]
    return _side_by_side(x).reshape(len(x), -1)[:, j * row + h * head + k]


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


def _without_last_row(x: Array, weight: Array, *bias: Array) -> tuple[Array, ...]:
    return np.ascontiguousarray(x[..., :-1]), weight[:-1], *bias


# A cross-attention whose keys and values are not of the encoder's output (Vaswani et al. 2017, §3.2.3)


def cross_causes(segment: Segment) -> Iterator[Cause]:
    """Keys and values of the decoder itself, or of an earlier step of the encoder."""
    program = segment.program
    steps = [step for step in segment.of(Project) if step.sublayer.endswith("cross_attention")]
    for group in groups(step for step in steps if last(step.name) in ("key", "value")):
        own = [_from(step, program.step(f"{step.sublayer}.query").inputs[0]) for step in group]
        sublayers = {step.sublayer for step in group}
        masks = (step for step in segment.of(Mask) if step.sublayer in sublayers)  # of the encoder, which has no part
        says = "when keys and values are of the decoder itself: they are of the encoder's output"
        change = changing((*own, *(instead(step, lambda scores, *_: scores) for step in masks)))
        yield Cause("cross-source", change, says)
        memory = group[0].inputs[0]
        for name in earlier_like(segment, program.step(memory)):
            says = f"when keys and values are of {name}: they are of {memory}, the encoder's output"
            yield Cause("cross-source", changing(_from(step, name) for step in group), says)


def _from(step: Step, name: str) -> Step:
    return replace(step, inputs=(name, *step.inputs[1:]))


def earlier_like(segment: Segment, step: Step, but: Sequence[str] = ()) -> list[str]:
    """The nearest steps before this that have its axes, without these, nearest first."""
    before = segment.program.steps[: segment.program.places[step.name]]
    return [each.name for each in reversed(before) if each.axes == step.axes and each.name not in but][:NEAREST]
