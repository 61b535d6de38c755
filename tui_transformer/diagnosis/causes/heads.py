"""Columns that are dealt to heads in another order, and key heads that are given to other query heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, around, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Context, MergeHeads, Project, Rotate, Scores
from tui_transformer.engine.program import Step

SAYS = {
    "memory": "reshape n × (h·d_k) to n × h × d_k and then swap the first two axes, and the same back",
    "dealt": "head i has the columns from i·d_k on, d_k of them side by side",
}
WRONG = {
    "memory": "when n × (h·d_k) is reshaped to h × n × d_k without swapping axes",
    "dealt": "when column j belongs to head j mod h",
}


def split_wrongly(segment: Segment) -> Iterator[Cause]:
    """Split, merged, or both, in the order of memory or dealt like cards."""
    splits = [step for step in segment.steps if isinstance(step.op, Project)]
    merges = [step for step in segment.steps if isinstance(step.op, MergeHeads)]
    both = [(*splits, *merges)] if splits and merges else []
    for group in (*groups(splits), *groups(merges), *both):
        for order, says in SAYS.items():
            change = changing(_in_order(step, order) for step in group)
            yield Cause("heads-order", change, f"{WRONG[order]}: {says}")
    yield from _split_after(segment, merges)


def averaged_wrongly(segment: Segment) -> Iterator[Cause]:
    """Scores of keys with queries, and values that are added up with the weights of a column."""
    scores = [step for step in segment.steps if isinstance(step.op, Scores) and step.square]
    for group in groups(scores):
        turned = changing(instead(step, _turned(step)) for step in group)
        says = "when keys and queries are exchanged, K Qᵀ: row i has the scores of query i, so take Q Kᵀ"
        yield Cause("scores-transposed", turned, says)
    steps = [step for step in segment.steps if isinstance(step.op, Context)]
    for group in groups(steps):
        turned = changing(around(step, lambda weights, *rest: (weights.swapaxes(-1, -2), *rest)) for step in group)
        says = "when the weights are transposed before the values: row i of the weights adds up the values for token i"
        yield Cause("attention-transposed", turned, says)


def _turned(step: Step) -> Function:
    return lambda *inputs: step.op.forward(CPU, *inputs).swapaxes(-1, -2)


def _split_after(segment: Segment, merges: Sequence[Step]) -> Iterator[Cause]:
    """Matrices that are right side by side, as the dump has them, and are split wrongly where they are read."""
    readers = [
        step
        for step in segment.steps
        if isinstance(step.op, Scores | Context | Rotate) and any(name in segment.given for name in step.inputs)
    ]
    for group in groups(readers):
        for order, says in SAYS.items():
            split = [_read_in_order(segment, step, order) for step in group]
            for joined in ((), merges) if merges else ((),):
                change = changing((*split, *(_in_order(step, order) for step in joined)))
                yield Cause("heads-order", change, f"{WRONG[order]}: {says}")


def _read_in_order(segment: Segment, step: Step, order: str) -> Step:
    """A step that splits its columns into heads in another order: queries and keys, what is rotated, or the values."""
    split_there = (0, 1) if isinstance(step.op, Scores) else (0,) if isinstance(step.op, Rotate) else (1,)
    wrong = [name in segment.given and i in split_there for i, name in enumerate(step.inputs)]

    def split(*inputs: Array) -> tuple[Array, ...]:
        return tuple(_again(x, order) if is_wrong else x for x, is_wrong in zip(inputs, wrong, strict=True))

    return around(step, split)


def _again(right: Array, order: str) -> Array:
    """Heads of columns that are put side by side and split once more."""
    batch, heads, rows, width = right.shape
    columns = np.ascontiguousarray(right.swapaxes(1, 2)).reshape(batch, rows, heads * width)
    if order == "memory":
        return columns.reshape(batch, heads, rows, width)
    return columns.reshape(batch, rows, width, heads).transpose(0, 3, 1, 2)


def _in_order(step: Step, order: str) -> Step:
    return instead(step, (_split if isinstance(step.op, Project) else _merged)(step, order))


def _split(step: Step, order: str) -> Function:
    def function(*inputs: Array) -> Array:
        return _again(step.op.forward(CPU, *inputs), order)

    return function


def _merged(step: Step, order: str) -> Function:
    del step

    def function(context: Array) -> Array:
        batch, heads, rows, width = context.shape
        if order == "memory":
            return np.ascontiguousarray(context).reshape(batch, rows, heads * width)
        return context.transpose(0, 2, 3, 1).reshape(batch, rows, heads * width)

    return function


def shared_wrongly(segment: Segment) -> Iterator[Cause]:
    """Grouped key heads laid out one after another again and again, in place of each several times."""
    steps = [step for step in segment.steps if isinstance(step.op, Scores | Context) and step.op.share > 1]
    for group in groups(steps):
        share = _share(group)
        says = (
            f"when query head i reads key head i mod g: {share} query heads side by side share one, "
            f"so head i reads i ÷ {share} (repeat each key head, do not tile them)"
        )
        yield Cause("keys-tiled", changing(around(step, _tiled) for step in group), says)
        says = f"when every query head reads key head 0: head i reads i ÷ {share}"
        yield Cause("keys-first", changing(around(step, _first) for step in group), says)


def _share(group: Sequence[Step]) -> int:
    op = group[0].op
    return op.share if isinstance(op, Scores | Context) else 1


def _tiled(first: Array, grouped: Array) -> tuple[Array, Array]:
    """As many key heads as query heads, tiled; the operation then shares none."""
    return first, np.tile(grouped, (1, first.shape[1] // grouped.shape[1], 1, 1))


def _first(first: Array, grouped: Array) -> tuple[Array, Array]:
    return first, np.broadcast_to(grouped[:, :1], grouped.shape)
