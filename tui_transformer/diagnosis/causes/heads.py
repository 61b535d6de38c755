"""Heads: columns dealt to them otherwise, and queries, keys and values that are read from the wrong place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Segment,
    as_it_is,
    cause,
    computed,
    earlier_like,
    groups,
    instead,
    last,
    reading,
    result_of,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import TiledContext, TiledScores
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Context, Linear, Mask, MergeHeads, Op, Project, Rotate, Scores, Unembed
from tui_transformer.engine.program import Step

Slip = Callable[[Array], Array]
"""Heads × tokens × d_k (with a batch axis) as they are read from the wrong places."""

ORDERS = ("memory", "dealt")
"""Orders in which columns may be dealt to heads: that of memory, or like cards."""


def split_causes(segment: Segment) -> Iterator[Cause]:
    """Heads split, merged, or both, in the order of memory or dealt like cards."""
    splits, merges = segment.of(Project), segment.of(MergeHeads)
    both = [(*splits, *merges)] if splits and merges else []
    for group in (*groups(splits), *groups(merges), *both):
        for order in ORDERS:
            yield cause(f"heads-order/{order}", (_in_order(step, order) for step in group))
    # matrices that are right side by side, as the dump has them, and are split wrongly where they are read
    read = segment.of(Scores, Context, Rotate)
    for group in groups(step for step in read if any(name in segment.given for name in step.inputs)):
        for order in ORDERS:
            split = []
            for step in group:  # queries and keys, what is rotated, or the values
                places = (0, 1) if isinstance(step.op, Scores) else (0,) if isinstance(step.op, Rotate) else (1,)
                wrong = [i for i in places if step.inputs[i] in segment.given]
                split.append(_slipped(step, partial(_again, order=order), wrong))
            for joined in ((), merges) if merges else ((),):
                yield cause(f"heads-order/{order}", (*split, *(_in_order(step, order) for step in joined)))


def _slipped(step: Step, slip: Slip, places: Sequence[int]) -> Step:
    """The step, which reads some of its inputs from the wrong places."""
    return instead(
        step, lambda _, *inputs: result_of(step, *(slip(x) if i in places else x for i, x in enumerate(inputs)))
    )


def _again(heads: Array, order: str) -> Array:
    """Heads of columns that are put side by side and split once more."""
    batch, count, rows, width = heads.shape
    columns = _side_by_side(heads)
    if order == "memory":
        return columns.reshape(batch, count, rows, width)
    return columns.reshape(batch, rows, width, count).transpose(0, 3, 1, 2)


def _side_by_side(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1)


def _in_order(step: Step, order: str) -> Step:
    """A projection that splits, or a step that merges heads, in another order."""
    if isinstance(step.op, Project):
        return instead(step, lambda _, *inputs: _again(result_of(step, *inputs), order))

    def merged(_: Step, context: Array) -> Array:
        batch, heads, rows, width = context.shape
        turned = np.ascontiguousarray(context) if order == "memory" else context.transpose(0, 2, 3, 1)
        return turned.reshape(batch, rows, heads * width)

    return instead(step, merged)


def tiled(step: Step) -> Step:
    """The step, in which query head i reads key head i mod g."""
    share = step.op.share if isinstance(step.op, Scores | Context) else 1
    return with_op(step, (TiledScores if isinstance(step.op, Scores) else TiledContext)(share))


def shared_causes(segment: Segment) -> Iterator[Cause]:
    """Grouped key heads laid out one after another again and again, in place of each several times."""
    for group in groups(step for step in segment.of(Scores, Context) if getattr(step.op, "share", 1) > 1):
        share = getattr(group[0].op, "share", 1)
        yield cause("keys-tiled", map(tiled, group), share=share)
        yield cause("keys-first", (_slipped(step, _without_head, (1,)) for step in group), share=share)


def transposed_causes(segment: Segment) -> Iterator[Cause]:
    """Scores of keys with queries, and values that are added up with the weights of a column."""
    for group in groups(step for step in segment.of(Scores) if step.square):
        yield computed("scores-transposed", group, lambda step, q, k: result_of(step, q, k).swapaxes(-1, -2))
    for group in groups(segment.of(Context)):
        yield computed("attention-transposed", group, lambda step, a, v: result_of(step, a.swapaxes(-1, -2), v))


# Wrong indices

PARTS: Mapping[str, tuple[type[Op], int]] = {"key": (Scores, 1), "value": (Context, 1), "query": (Scores, 0)}
"""What is read → the operation that reads it, and as which of its inputs."""


def index_causes(segment: Segment) -> Iterator[Cause]:
    """K as d × n, rows d_k apart, columns without their head, the values of the query's own row; short sums."""
    for part, (kind, place) in PARTS.items():
        # what reads it is a product; before that a rotation; where the dump has no further, the projection
        products = segment.of(kind)
        turned = [step for step in segment.of(Rotate) if last(step.inputs[0]) == part]
        projected = [] if products or turned else [s for s in segment.of(Project) if last(s.name) == part]
        for group in (*groups(products), *groups(turned), *groups(projected)):
            for key, slip in SLIPS.items():
                if group[0] in projected:
                    changed = [instead(s, lambda s, *x, slip=slip: slip(result_of(s, *x))) for s in group]
                else:
                    changed = [_slipped(s, slip, (0 if isinstance(s.op, Rotate) else place,)) for s in group]
                name = "keys-reshaped" if part == "key" and key in ("index", "index/head") else f"{part}-index"
                yield replace(cause(key, changed, part=part[0].upper()), name=name)
    for group in groups(segment.of(Context)):
        yield computed("value-index", group, _own_row)
    for kinds, short, what in SHORT_SUMS:
        for group in groups(step for step in segment.of(*kinds) if not isinstance(step.op, Unembed)):
            yield computed("sum-short", group, lambda step, *x, short=short: result_of(step, *short(*x)), what=what)


def _reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return _side_by_side(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _head_reshaped(x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return np.ascontiguousarray(x).reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _without_head(x: Array) -> Array:
    return np.broadcast_to(x[:, :1], x.shape)


def _read_at(x: Array, row: int, head: int) -> Array:
    """Cells of the flat matrix: of token j, head h and column k the one at j · `row` + h · `head` + k."""
    h, j, k = np.ogrid[: x.shape[1], : x.shape[2], : x.shape[3]]
    return _side_by_side(x).reshape(len(x), -1)[:, j * row + h * head + k]


SLIPS: Mapping[str, Slip] = {
    "index": _reshaped,
    "index/head": _head_reshaped,
    "index/row": lambda x: _read_at(x, x.shape[3], x.shape[3]),
    "index/first": _without_head,
    "index/near": lambda x: _read_at(x, x.shape[1] * x.shape[3], 1),
}


def _own_row(_: Step, weights: Array, value: Array) -> Array:
    rows = np.repeat(value, weights.shape[1] // value.shape[1], axis=1)
    return weights.sum(axis=-1, keepdims=True) * rows


def _without_last_row(x: Array, weight: Array, *bias: Array) -> tuple[Array, ...]:
    return np.ascontiguousarray(x[..., :-1]), weight[:-1], *bias


SHORT_SUMS: tuple[tuple[tuple[type[Op], ...], Callable[..., tuple[Array, ...]], str], ...] = (
    ((Scores,), lambda query, key: (query[..., :-1], key[..., :-1]), "column of Q and K"),
    ((Context,), lambda weights, value: (weights[..., :-1], value[..., :-1, :]), "key"),
    ((Linear, Project), _without_last_row, "row of the weight"),
)
"""Operations, their inputs without what the last index meets, and what that is."""


# A cross-attention whose keys and values are not of the encoder's output (Vaswani et al. 2017, §3.2.3)


def cross_causes(segment: Segment) -> Iterator[Cause]:
    """Keys and values of the decoder itself, or of an earlier step of the encoder."""
    program = segment.program
    steps = [step for step in segment.of(Project) if step.sublayer.endswith("cross_attention")]
    for group in groups(step for step in steps if last(step.name) in ("key", "value")):
        own = [reading(step, program.step(f"{step.sublayer}.query").inputs[0]) for step in group]
        sublayers = {step.sublayer for step in group}
        masks = (step for step in segment.of(Mask) if step.sublayer in sublayers)  # of the encoder, which has no part
        yield cause("cross-source", (*own, *(instead(step, as_it_is) for step in masks)))
        memory = group[0].inputs[0]
        for name in earlier_like(program, program.step(memory)):
            yield cause("cross-source/earlier", (reading(step, name) for step in group), name=name, memory=memory)
