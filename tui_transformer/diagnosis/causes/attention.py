"""Scores that are scaled, capped, moved or masked otherwise, and shares that are no softmax (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
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
    result_of,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import MaskAround
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Mask, RelativeBias, Scale, Scores, SoftCap, Softmax
from tui_transformer.engine.program import Program, Step

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
        root, whole, factor = math.sqrt(width), math.isqrt(width), getattr(group[0].op, "factor", 1.0)
        divided = [
            ("scale-missing", 1.0, True),
            ("scale-d_model", math.sqrt(model), model != width),
            ("scale-d_k", width, width != 1),
            ("scale-multiplied", 1 / root, width != 1),
            ("scale-integer", whole, whole**2 != width),
            ("scale-size/h", math.sqrt(heads), heads not in (1, width)),
            ("scale-size/n", math.sqrt(keys), keys not in (1, width)),
        ]
        if factor == 1.0 and width != 1:
            divided = [("scale-added", width, True)]
        words = {"wanted": f"√d_k = √{width}", "width": width, "model": model, "root": root, "whole": whole}
        for key, by, is_another in divided:
            if is_another:
                ops = (with_op(step, Scale(factor * root / by, key)) for step in group)
                yield cause(key, ops, heads=heads, keys=keys, **words)


def cap_causes(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c) (Gemma Team 2024, §2)."""
    for group in groups(segment.of(SoftCap)):
        yield computed("cap-missing", group, as_it_is)


def distance_causes(segment: Segment) -> Iterator[Cause]:
    """Buckets for both sides or one, distances from key to query, the bias left out (Raffel et al. 2020, §2.1)."""
    for group in groups(segment.of(RelativeBias)):
        both = getattr(group[-1].op, "bidirectional", False)
        turned = (altered(step, bidirectional=not getattr(step.op, "bidirectional", False)) for step in group)
        yield cause(f"relative-bidirectional/{'two' if both else 'one'}", turned)
        yield computed("relative-flipped", group, lambda step, s, table, q, k: result_of(step, s, table, -q, -k))
        yield computed("relative-missing", group, as_it_is)


# The mask; functions are given the scores, the places of queries and keys, and what is visible


def mask_causes(segment: Segment) -> Iterator[Cause]:
    """No mask, the complement or transpose of it, a number for −∞, a product, a mask after the softmax."""
    for group in groups(segment.of(Mask)):
        yield computed("mask-missing", group, as_it_is)
        masks = [(step, step.op) for step in group if isinstance(step.op, Mask)]
        if any(op.causal for _, op in masks):
            yield cause("mask-missing/causal", (altered(step, causal=False, window=None) for step in group))
            yield computed("mask-missing/padding", group, _without_padding)
            yield computed("mask-shifted", group, partial(_hidden_as, -np.inf, 1))
            yield computed("mask-shifted", group, partial(_hidden_as, -1e9, 1))
            yield computed("mask-shifted/ahead", group, partial(_hidden_as, -np.inf, -1))
        else:
            yield cause("mask-added", (altered(step, causal=True) for step in group))
        yield cause("mask-flipped", (with_op(step, MaskAround(op.causal, op.window)) for step, op in masks))
        yield computed("mask-flipped/before", group, _transposed)
        factor = next((factor for step in group if (factor := _factor(segment, step)) != 1.0), None)
        for number in HIDING:
            if factor:
                yield computed("mask-before-scale", group, partial(_plus, number * factor), number=number)
            yield computed("mask-finite", group, partial(_plus, number), number=number)
        yield computed("mask-zero", group, partial(_hidden_as, 0.0, 0))
        by_name = {step.name: step for step in group}
        if weights := [step for step in segment.of(Softmax) if step.inputs[0] in by_name]:
            late = [instead(step, partial(_softmax_then_hide, by_name[step.inputs[0]])) for step in weights]
            late = [replace(step, inputs=by_name[step.inputs[0]].inputs) for step in late]
            yield cause("mask-after-softmax", [*(instead(step, as_it_is) for step in group), *late])


def _factor(segment: Segment, step: Step) -> float:
    """The factor of the scores that a mask reads."""
    name = step.inputs[0]
    while (source := segment.program.by_name.get(name)) is not None and not isinstance(source.op, Scores):
        if isinstance(source.op, Scale):
            return source.op.factor
        name = source.inputs[0]
    return 1.0


def _hidden(step: Step, scores: Array, *rest: Array) -> Array:
    """True where a mask hides a key, in the shape of the scores."""
    return np.isneginf(result_of(step, np.zeros_like(scores), *rest))


def _hidden_as(
    number: float, later: int, step: Step, scores: Array, queries: Array, keys: Array, visible: Array
) -> Array:
    return np.where(_hidden(step, scores, queries, keys + later, visible), number, scores)


def _plus(number: float, step: Step, scores: Array, *rest: Array) -> Array:
    return scores + np.where(_hidden(step, scores, *rest), number, 0.0)


def _transposed(_: Step, scores: Array, queries: Array, keys: Array, __: Array) -> Array:
    return np.where(keys[:, None, None, :] < queries[:, None, :, None], -np.inf, scores)


def _without_padding(step: Step, scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
    return result_of(step, scores, queries, keys, np.ones_like(visible))


def _softmax_then_hide(mask: Step, _: Step, scores: Array, *rest: Array) -> Array:
    return np.where(_hidden(mask, scores, *rest), 0.0, _softmax(scores))


# The softmax


def softmax_causes(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all; overflowing; of another base."""
    for group in groups(segment.of(Softmax)):
        along: dict[tuple[int, ...], str] = {(-2,): "rows (a column sums to 1)", (-2, -1): "the whole matrix"}
        if len(group[0].axes) == 3:
            along[(-3,)] = "the heads"
        for axes, over in along.items():
            for hidden in (-np.inf, -1e9):  # along other axes all scores may be hidden
                yield computed("softmax-axis", group, partial(_over, axes, hidden), over=over)
        for dtype, most in OVERFLOW.items():
            yield computed("softmax-overflow", group, partial(_naive, dtype), name=dtype.__name__, most=most)
        yield computed("softmax-missing", group, as_it_is)
        yield computed("softmax-sum-missing", group, lambda _, scores: np.exp(scores))
        yield computed("softmax-base", group, lambda _, scores: _softmax(scores * np.log(2.0)))
        yield computed("softmax-exponential-missing", group, _without_exponentials)
        yield computed("softmax-twice", group, lambda _, scores: _softmax(_softmax(scores)))
        yield computed("softmax-logarithm", group, lambda _, scores: np.log(_softmax(scores)))
        for size in (size for size in BLOCKS if size < group[0].shape[-1]):
            yield computed("softmax-rescale-missing", group, partial(_not_rescaled, size), size=size)


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
