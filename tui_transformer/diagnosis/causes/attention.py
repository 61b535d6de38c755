"""Scores that are scaled, capped or masked otherwise, and shares that are no softmax of them (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Function,
    Segment,
    cause,
    computed,
    groups,
    instead,
    result_of,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import MaskAround
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Mask, Scale, Scores, SoftCap, Softmax
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
        width = query.shape[-1]
        model = weight[0].size if len(weight) == 2 else query.shape[0] * width
        factor, root = group[0].op.factor if isinstance(group[0].op, Scale) else 1.0, math.sqrt(width)
        words = {"wanted": f"√d_k = √{width}", "width": width, "model": model, "root": root}
        for key, divided, more in _divisors(group[0], factor, width, model):
            ops = (with_op(step, Scale(factor * root / divided, key)) for step in group)
            yield cause(key, ops, **words, **more)


def _divisors(step: Step, factor: float, width: int, model: int) -> Iterator[tuple[str, float, dict[str, object]]]:
    """The name of a cause, what is divided by, where √d_k is right, and words of its own."""
    if factor == 1.0 and width != 1:
        yield "scale-added", width, {}
        return
    yield "scale-missing", 1.0, {}
    if model != width:
        yield "scale-d_model", math.sqrt(model), {}
    if width != 1:
        yield "scale-d_k", width, {}
        yield "scale-multiplied", 1 / math.sqrt(width), {}
        whole = math.isqrt(width)
        if whole**2 != width:
            yield "scale-integer", whole, {"whole": whole}
    heads, _, keys = step.shape
    for letter, size in (("h", heads), ("n", keys)):
        if size not in (1, width):
            yield "scale-size", math.sqrt(size), {"letter": letter, "size": size}


def cap_causes(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c) (Gemma Team 2024, §2)."""
    for group in groups(segment.of(SoftCap)):
        yield computed("cap-missing", group, _as_they_are)


def _as_they_are(_: Step, scores: Array, *__: Array) -> Array:
    return scores


# The mask; functions are given the scores, the places of queries and keys, and what is visible


def mask_causes(segment: Segment) -> Iterator[Cause]:
    """No mask, the complement or transpose of it, a number for −∞, a product, a mask after the softmax."""
    for group in groups(segment.of(Mask)):
        yield computed("mask-missing", group, _as_they_are)
        masks = [(step, step.op) for step in group if isinstance(step.op, Mask)]
        if any(op.causal for _, op in masks):
            without = (with_op(step, replace(op, causal=False, window=None)) for step, op in masks)
            yield cause("mask-missing/causal", without)
            yield computed("mask-missing/padding", group, _without_padding)
            yield computed("mask-shifted", group, _hidden_as(-np.inf, 1))
            yield computed("mask-shifted", group, _hidden_as(-1e9, 1))
            yield computed("mask-shifted/ahead", group, _hidden_as(-np.inf, -1))
        else:
            yield cause("mask-added", (with_op(step, replace(op, causal=True)) for step, op in masks))
        yield cause("mask-flipped", (with_op(step, MaskAround(op.causal, op.window)) for step, op in masks))
        yield computed("mask-flipped/before", group, _transposed)
        factor = next((factor for step in group if (factor := _factor(segment, step)) != 1.0), None)
        for number in HIDING:
            if factor:
                yield computed("mask-before-scale", group, _plus(number * factor), number=number)
            yield computed("mask-finite", group, _plus(number), number=number)
        yield computed("mask-zero", group, _hidden_as(0.0))
        by_name = {step.name: step for step in group}
        if weights := [step for step in segment.of(Softmax) if step.inputs[0] in by_name]:
            late = [_softmax_then_hide(step, by_name[step.inputs[0]]) for step in weights]
            yield cause("mask-after-softmax", [*(instead(step, _as_they_are) for step in group), *late])


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


def _hidden_as(number: float, later: int = 0) -> Function:
    def function(step: Step, scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
        return np.where(_hidden(step, scores, queries, keys + later, visible), number, scores)

    return function


def _plus(number: float) -> Function:
    return lambda step, scores, *rest: scores + np.where(_hidden(step, scores, *rest), number, 0.0)


def _transposed(_: Step, scores: Array, queries: Array, keys: Array, __: Array) -> Array:
    return np.where(keys[:, None, None, :] < queries[:, None, :, None], -np.inf, scores)


def _without_padding(step: Step, scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
    return result_of(step, scores, queries, keys, np.ones_like(visible))


def _softmax_then_hide(softmax: Step, mask: Step) -> Step:
    def function(_: Step, scores: Array, *rest: Array) -> Array:
        return np.where(_hidden(mask, scores, *rest), 0.0, _softmax(scores))

    return replace(instead(softmax, function), inputs=mask.inputs)


# The softmax


def softmax_causes(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all; overflowing; of another base."""
    for group in groups(segment.of(Softmax)):
        along: dict[tuple[int, ...], str] = {(-2,): "rows (a column sums to 1)", (-2, -1): "the whole matrix"}
        if len(group[0].axes) == 3:
            along[(-3,)] = "the heads"
        for axes, over in along.items():
            for hidden in (-np.inf, -1e9):  # along other axes all scores may be hidden
                yield computed("softmax-axis", group, _over(axes, hidden), over=over)
        for dtype, most in OVERFLOW.items():
            yield computed("softmax-overflow", group, _without_maximum(dtype), name=dtype.__name__, most=most)
        yield computed("softmax-missing", group, _as_they_are)
        yield computed("softmax-sum-missing", group, lambda _, scores: np.exp(scores))
        yield computed("softmax-base", group, lambda _, scores: _softmax(scores * np.log(2.0)))
        yield computed("softmax-exponential-missing", group, _without_exponentials)
        yield computed("softmax-twice", group, lambda _, scores: _softmax(_softmax(scores)))
        yield computed("softmax-logarithm", group, lambda _, scores: np.log(_softmax(scores)))
        for size in (size for size in BLOCKS if size < group[0].shape[-1]):
            yield computed("softmax-rescale-missing", group, _not_rescaled(size), size=size)


def _softmax(scores: Array, axes: tuple[int, ...] = (-1,), top: Array | None = None) -> Array:
    """Shares along these axes; `top`: what is taken off the scores, by default the largest along them."""
    top = scores.max(axis=axes, keepdims=True) if top is None else top
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(axis=axes, keepdims=True)
    return exponentials / (total if axes == (-1,) else np.where(total == 0.0, 1.0, total))


def _over(axes: tuple[int, ...], hidden: float) -> Function:
    return lambda _, scores: _softmax(np.where(np.isneginf(scores), hidden, scores), axes)


def _without_maximum(dtype: type[np.floating[Any]]) -> Function:
    """The softmax as it is written first: ∞ ÷ ∞ where an exponential does not fit."""

    def softmax(_: Step, scores: Array) -> Array:
        exponentials = np.exp(scores.astype(dtype)).astype(np.float64)
        total = exponentials.sum(axis=-1, keepdims=True)
        return exponentials / np.where(total > np.finfo(dtype).max, np.inf, total)

    return softmax


def _not_rescaled(size: int) -> Function:
    def softmax(_: Step, scores: Array) -> Array:
        ends = [min(j // size * size + size, scores.shape[-1]) - 1 for j in range(scores.shape[-1])]
        return _softmax(scores, top=np.maximum.accumulate(scores, axis=-1)[..., ends])

    return softmax


def _without_exponentials(_: Step, scores: Array) -> Array:
    scores = np.where(np.isneginf(scores), 0.0, scores)
    return scores / scores.sum(axis=-1, keepdims=True)
