"""Attention: scores that are scaled, moved or masked otherwise, shares that are no softmax, heads that are mixed up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Segment,
    altered,
    as_it_is,
    cause,
    computed,
    groups,
    instead,
    reading,
    result_of,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import MaskAround, TiledContext, TiledScores
from tui_transformer.diagnosis.naming.words import last
from tui_transformer.engine.backend import Array
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import (
    Context,
    Linear,
    Mask,
    MergeHeads,
    Op,
    Project,
    Rotate,
    Scale,
    Scores,
    Softmax,
    SoftmaxWithSink,
    Unembed,
)
from tui_transformer.engine.program import Program, Step
from tui_transformer.records import replace

HIDING = (-1e4, -1e9, -1e3, -100.0, -10.0, -1.0)
"""Numbers that are added to hide a key."""

OVERFLOW: Mapping[type[np.floating[Any]], float] = {np.float32: 88.7, np.float16: 11.1, np.float64: 709.7}
"""The largest scores whose exponentials fit, if the largest score of the row is not taken off before."""

BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Keys that are read together where a row is read in blocks (Dao et al. 2022, §3.1)."""


def score_scales(program: Program, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps among these that divide scores."""
    for step in steps:
        source = program.by_name.get(step.inputs[0])
        if isinstance(step.op, Scale) and source is not None and isinstance(source.op, Scores):
            yield step


def scale_causes(segment: Segment) -> Iterator[Cause]:
    """Not divided, divided by √d_model or by d_k; divided where nothing is to be divided."""
    program = segment.program
    for group in groups(score_scales(program, segment.steps)):
        query = program.step(program.step(group[0].inputs[0]).inputs[0])
        weight = program.weights.get(f"{query.sublayer}.query.weight", ())
        width, (heads, _, keys) = query.shape[-1], group[0].shape
        model = weight[0].size if len(weight) == 2 else query.shape[0] * width
        root, whole, op = math.sqrt(width), math.isqrt(width), group[0].op
        factor, says = getattr(op, "factor", 1.0), getattr(op, "expression", "")
        wanted = says.removeprefix("÷ ") if says.startswith("÷ ") else spoken(1 / factor, 6)
        usual = wanted.split()[0] == f"√{width}" or factor == 1.0  # by √d_k, and by what else a layer is divided by
        divided = [
            ("scale-missing", 1.0, True),
            ("scale-d_model", math.sqrt(model), model != width),
            ("scale-d_k", width, width != 1),
            ("scale-multiplied", 1 / root, width != 1),
            ("scale-integer", whole, usual and whole**2 != width),
            ("scale-size/h", math.sqrt(heads), heads not in (1, width)),
            ("scale-size/n", math.sqrt(keys), keys not in (1, width)),
            ("scale-size/k", root, not usual),
        ]
        divided = [("scale-added", width, True)] if factor == 1.0 and width != 1 else divided
        wanted = f"√d_k = √{width}" if usual else wanted
        words = {"wanted": wanted, "width": width, "model": model, "root": root, "whole": whole}
        for key, by in ((key, by) for key, by, is_another in divided if is_another):
            ops = (with_op(step, Scale((factor * root if usual else 1.0) / by, key)) for step in group)
            yield cause(key, ops, heads=heads, keys=keys, **words)


# The mask; functions are given the scores, the places of queries and keys, and what is visible


def mask_causes(segment: Segment) -> Iterator[Cause]:
    """No mask, the complement or transpose of it, a number for −∞, a product, a mask after the softmax."""
    for group in groups(segment.of(Mask)):
        yield computed("mask-missing", group, as_it_is)
        masks = [(step, step.op) for step in group if isinstance(step.op, Mask)]
        if any(op.causal for _, op in masks):
            yield cause("mask-missing/causal", (altered(step, causal=False, window=None) for step in group))
            yield computed(
                "mask-missing/padding", group, lambda step, s, q, k, v: result_of(step, s, q, k, np.ones_like(v))
            )
            for hide in (partial(hidden_as, -np.inf), partial(hidden_as, -1e9), partial(_plus, -1e9)):
                yield computed("mask-shifted", group, partial(hide, 1))
            yield computed("mask-shifted/ahead", group, partial(hidden_as, -np.inf, -1))
        else:
            yield cause("mask-added", (altered(step, causal=True) for step in group))
        yield cause("mask-flipped", (with_op(step, MaskAround(op.causal, op.window)) for step, op in masks))
        yield computed("mask-flipped/before", group, _transposed)
        factor = next((factor for step in group if (factor := factor_of(segment, step)) != 1.0), None)
        for number in HIDING:
            if factor:
                yield computed("mask-before-scale", group, partial(_plus, number * factor, 0), number=number)
            yield computed("mask-finite", group, partial(_plus, number, 0), number=number)
        yield computed("mask-zero", group, partial(hidden_as, 0.0, 0))
        by_name = {step.name: step for step in group}
        if weights := [step for step in segment.of(Softmax) if step.inputs[0] in by_name]:
            late = [instead(step, partial(_softmax_then_hide, by_name[step.inputs[0]])) for step in weights]
            late = [replace(step, inputs=by_name[step.inputs[0]].inputs) for step in late]
            yield cause("mask-after-softmax", [*(instead(step, as_it_is) for step in group), *late])


def window_causes(segment: Segment) -> Iterator[Cause]:
    """No window, one key more or fewer in it, a window in other layers."""
    windows = {step.name: step.op.window for step in segment.program.steps if isinstance(step.op, Mask)}
    for group in groups(step for step in segment.of(Mask) if windows[step.name]):
        yield cause("mask-missing/window", (altered(step, window=None) for step in group))
        window = windows[group[0].name] or 0
        for by in (1, -1):
            other = (altered(step, window=window + by) for step in group)
            yield cause("mask-shifted/window", other, number=window + by - 1, wanted=window - 1)
    usual = max((each for each in windows.values() if each), default=None)
    without = [step for step in segment.of(Mask) if not windows[step.name]]
    if usual and None in windows.values():
        added = [altered(step, window=usual) for step in without]
        removed = [altered(step, window=None) for step in segment.of(Mask) if windows[step.name]]
        for changed in (added, (*added, *removed)):
            yield cause("window-layers", changed)


def factor_of(segment: Segment, step: Step) -> float:
    """The factor of the scores that a mask reads."""
    name = step.inputs[0]
    while (source := segment.program.by_name.get(name)) is not None and not isinstance(source.op, Scores):
        if isinstance(source.op, Scale):
            return source.op.factor
        name = source.inputs[0]
    return 1.0


def hidden_as(
    number: float, later: int, step: Step, scores: Array, queries: Array, keys: Array, visible: Array
) -> Array:
    """The scores, with a number where a mask hides a key that is so many places later."""
    hidden = np.isneginf(result_of(step, np.zeros_like(scores), queries, keys + later, visible))
    return np.where(hidden, number, scores)


def _plus(number: float, later: int, step: Step, scores: Array, *rest: Array) -> Array:
    return scores + hidden_as(number, later, step, np.zeros_like(scores), *rest)


def _nan_without_key(step: Step, scores: Array, *rest: Array) -> Array:
    shifted = hidden_as(-np.inf, 1, step, scores, *rest)
    return np.where(np.isneginf(shifted).all(axis=-1, keepdims=True), np.nan, shifted)


def _transposed(_: Step, scores: Array, queries: Array, keys: Array, __: Array) -> Array:
    return np.where(keys[:, None, None, :] < queries[:, None, :, None], -np.inf, scores)


def _softmax_then_hide(mask: Step, _: Step, scores: Array, *rest: Array) -> Array:
    return hidden_as(0.0, 0, mask, _softmax(scores), *rest)


# The softmax


def softmax_causes(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all; overflowing; of another base."""
    for group in groups(segment.of(Softmax)):
        along: dict[tuple[int, ...], str] = {(-2,): "rows (a column sums to 1)", (-2, -1): "the whole matrix"}
        if len(group[0].axes) == 3:
            along |= {(-3,): "the heads", (-3, -2, -1): "the matrices of all heads together"}
        for axes, over in along.items():
            for hidden in (-np.inf, -1e9):  # along other axes all scores may be hidden
                yield computed("softmax-axis", group, partial(_over, axes, hidden), over=over)
        for dtype, most in OVERFLOW.items():
            yield computed("softmax-overflow", group, partial(_naive, dtype), name=dtype.__name__, most=most)
        read = {step.inputs[0] for step in group}
        if masks := [s for s in segment.of(Mask) if s.name in read and getattr(s.op, "causal", False)]:
            yield computed("mask-shifted", masks, _nan_without_key)
        yield computed("softmax-missing", group, as_it_is)
        yield computed("softmax-sum-missing", group, lambda _, scores: np.exp(scores))
        yield computed("softmax-base", group, lambda _, scores: _softmax(scores * np.log(2.0)))
        yield computed("softmax-exponential-missing", group, _without_exponentials)
        yield computed("softmax-twice", group, lambda _, scores: _softmax(_softmax(scores)))
        yield computed("softmax-logarithm", group, lambda _, scores: np.log(_softmax(scores)))
        for size in (size for size in BLOCKS if size < group[0].shape[-1]):
            yield computed("softmax-rescale-missing", group, partial(_not_rescaled, size), size=size)


def sink_causes(segment: Segment) -> Iterator[Cause]:
    """Rows that sum to 1, where a part of each is left to nothing (Xiao et al. 2023)."""
    for group in groups(segment.of(SoftmaxWithSink)):
        yield cause("sinks-missing", (replace(with_op(step, Softmax()), inputs=step.inputs[:1]) for step in group))


def _softmax(scores: Array, axes: tuple[int, ...] = (-1,), top: Array | None = None) -> Array:
    """Shares along these axes; `top`: what is taken off the scores, by default the largest along them."""
    top = scores.max(axis=axes, keepdims=True) if top is None else top
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(axis=axes, keepdims=True)
    return exponentials / (total if axes == (-1,) else np.where(total == 0.0, 1.0, total))


def _over(axes: tuple[int, ...], hidden: float, _: Step, scores: Array) -> Array:
    return _softmax(np.where(np.isneginf(scores), hidden, scores), axes)


def _naive(dtype: type[np.floating[Any]], _: Step, scores: Array) -> Array:
    """The softmax as it is written first: ∞ ÷ ∞ where an exponential does not fit."""
    exponentials = np.exp(scores.astype(dtype)).astype(np.float64)
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total > np.finfo(dtype).max, np.inf, total)


def _not_rescaled(size: int, _: Step, scores: Array) -> Array:
    ends = [min(j // size * size + size, scores.shape[-1]) - 1 for j in range(scores.shape[-1])]
    return _softmax(scores, top=np.maximum.accumulate(scores, axis=-1)[..., ends])


def _without_exponentials(_: Step, scores: Array) -> Array:
    scores = np.where(np.isneginf(scores), 0.0, scores)
    return scores / scores.sum(axis=-1, keepdims=True)


# Heads: columns dealt to them otherwise, and queries, keys and values that are read from the wrong place

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
        yield cause("keys-first", (_slipped(step, SLIPS["index/first"], (1,)) for step in group), share=share)


def transposed_causes(segment: Segment) -> Iterator[Cause]:
    """Scores of keys with queries, and values that are added up with the weights of a column."""
    for group in groups(step for step in segment.of(Scores) if step.square):
        yield computed("scores-transposed", group, lambda step, q, k: result_of(step, q, k).swapaxes(-1, -2))
    for group in groups(segment.of(Context)):
        yield computed("attention-transposed", group, lambda step, a, v: result_of(step, a.swapaxes(-1, -2), v))


# Wrong indices

PARTS: Mapping[str, tuple[type[Op], int]] = {"key": (Scores, 1), "value": (Context, 1), "query": (Scores, 0)}
"""What is read → the operation that reads it, and as which of its inputs."""


def read_causes(segment: Segment) -> Iterator[Cause]:
    """Keys read in the place of values, queries in the place of keys and so on."""
    for part, (kind, place) in PARTS.items():
        for group in groups(segment.of(kind)):
            for other in (*PARTS, "query_rotated", "key_rotated"):
                names = [(step, f"{step.sublayer}.{other}") for step in group if not other.startswith(part)]
                changed = [reading(step, name, place) for step, name in names if name in segment.program.by_name]
                if changed:
                    yield cause("qkv-exchanged", changed, part=part, other=other)


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


def _reshaped(cells: Array, x: Array) -> Array:
    batch, heads, tokens, width = x.shape
    return cells.reshape(batch, heads, width, tokens).swapaxes(-1, -2)


def _read_at(x: Array, row: int, head: int) -> Array:
    """Cells of the flat matrix: of token j, head h and column k the one at j · `row` + h · `head` + k."""
    h, j, k = np.ogrid[: x.shape[1], : x.shape[2], : x.shape[3]]
    return _side_by_side(x).reshape(len(x), -1)[:, j * row + h * head + k]


SLIPS: Mapping[str, Slip] = {
    "index": lambda x: _reshaped(_side_by_side(x), x),
    "index/head": lambda x: _reshaped(np.ascontiguousarray(x), x),
    "index/row": lambda x: _read_at(x, x.shape[3], x.shape[3]),
    "index/first": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "index/near": lambda x: _read_at(x, x.shape[1] * x.shape[3], 1),
}


def _own_row(_: Step, weights: Array, value: Array) -> Array:
    rows = np.repeat(value, weights.shape[1] // value.shape[1], axis=1)
    return weights.sum(axis=-1, keepdims=True) * rows


SHORT_SUMS: tuple[tuple[tuple[type[Op], ...], Callable[..., tuple[Array, ...]], str], ...] = (
    ((Scores,), lambda query, key: (query[..., :-1], key[..., :-1]), "column of Q and K"),
    ((Context,), lambda weights, value: (weights[..., :-1], value[..., :-1, :]), "key"),
    ((Linear, Project), lambda x, w, *bias: (np.ascontiguousarray(x[..., :-1]), w[:-1], *bias), "row of the weight"),
)
"""Operations, their inputs without what the last index meets, and what that is."""
