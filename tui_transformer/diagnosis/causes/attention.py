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
    Row,
    Segment,
    changing,
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

OVERFLOW: Mapping[type[np.floating[Any]], str] = {
    np.float32: "when e^s overflows float32 (s above 88.7)",
    np.float16: "when e^s overflows float16 (s above 11.1)",
    np.float64: "when e^s overflows float64 (s above 709.7)",
}
"""Where exponentials may be too large, if the largest score of the row is not taken off before."""

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
        for name, other, says in _factors(group[0], width, model):
            yield Cause(name, changing(with_op(step, Scale(other, name)) for step in group), says)


def _factors(step: Step, width: int, model: int) -> Iterator[tuple[str, float, str]]:
    """The name of a cause, the factor that it puts in the place of the right one, and what is said of it."""
    wanted, factor = f"√d_k = √{width}", step.op.factor if isinstance(step.op, Scale) else 1.0
    if factor == 1.0 and width != 1:
        yield "scale-added", 1 / math.sqrt(width), f"when divided by {wanted}: this model does not divide its scores"
        return
    root = factor * math.sqrt(width)  # 1, unless a layer divides by more
    yield "scale-missing", root, f"without the division: divide the scores by {wanted}"
    if model != width:
        says = f"when divided by √d_model: divide by {wanted} instead of √{model}"
        yield "scale-d_model", root / math.sqrt(model), says
    if width != 1:
        yield "scale-d_k", root / width, f"when divided by d_k: divide by {wanted} instead of {width}"
        says = f"when multiplied by √d_k: divide by {wanted} instead"
        yield "scale-multiplied", root * math.sqrt(width), says
        whole = math.isqrt(width)
        if whole**2 != width:
            says = f"when divided by the whole number {whole}: divide by {wanted} = {math.sqrt(width):.6g}"
            yield "scale-integer", root / whole, says
    heads, _, keys = step.shape
    for letter, size in (("h", heads), ("n", keys)):
        if size not in (1, width):
            says = f"when divided by √{letter} = √{size}: divide by {wanted}"
            yield "scale-size", root / math.sqrt(size), says


def cap_causes(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c) (Gemma Team 2024, §2)."""
    for group in groups(segment.of(SoftCap)):
        yield computed("cap-missing", group, _as_they_are, "without the soft cap: take c · tanh(x ÷ c)")


def _as_they_are(_: Step, scores: Array, *__: Array) -> Array:
    return scores


# The mask; functions are given the scores, the places of queries and keys, and what is visible


def mask_causes(segment: Segment) -> Iterator[Cause]:
    """No mask, the complement or transpose of it, a number for −∞, a product, a mask after the softmax."""
    for group in groups(segment.of(Mask)):
        says = "without the mask: put −∞ where a query may not look, before the softmax"
        yield computed("mask-missing", group, _as_they_are, says)
        masks = [(step, step.op) for step in group if isinstance(step.op, Mask)]
        if any(op.causal for _, op in masks):
            says = "without the causal mask: put −∞ at keys after the query, before the softmax"
            later = changing(with_op(step, replace(op, causal=False, window=None)) for step, op in masks)
            yield Cause("mask-missing", later, says)
            for name, function, says in WITHOUT_CAUSAL:
                yield computed(name, group, function, says)
        else:
            says = "with a causal mask: here a query may look at every key"
            yield Cause("mask-added", changing(with_op(step, replace(op, causal=True)) for step, op in masks), says)
        says = "when what may be seen is hidden and the rest is not: turn the mask around"
        around = changing(with_op(step, MaskAround(op.causal, op.window)) for step, op in masks)
        yield Cause("mask-flipped", around, says)
        says = "when keys before the query are hidden: hide those after it"
        yield computed("mask-flipped", group, _transposed, says)
        factor = next((factor for step in group if (factor := _factor(segment, step)) != 1.0), None)
        for number in HIDING:
            if factor:
                says = (
                    f"when {number:g} is added to hidden scores before they are divided: mask after dividing, with −∞"
                )
                yield computed("mask-before-scale", group, _plus(number * factor), says)
            says = f"when {number:g} is added to hidden scores: take −∞, so that nothing leaks"
            yield computed("mask-finite", group, _plus(number), says)
        says = "when hidden scores are multiplied by 0: put −∞ there, since e^0 is 1"
        yield computed("mask-zero", group, _hidden_as(0.0), says)
        by_name = {step.name: step for step in group}
        if weights := [step for step in segment.of(Softmax) if step.inputs[0] in by_name]:
            late = [_softmax_then_hide(step, by_name[step.inputs[0]]) for step in weights]
            says = "when keys are hidden after the softmax: mask before it, so that rows sum to 1"
            change = changing([*(instead(step, _as_they_are) for step in group), *late])
            yield Cause("mask-after-softmax", change, says)


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


WITHOUT_CAUSAL: tuple[Row, ...] = (
    ("mask-missing", _without_padding, "without the padding mask: put −∞ at keys that are padding"),
    *(
        ("mask-shifted", _hidden_as(number, 1), "when a query may not look at itself: hide only the keys after it")
        for number in (-np.inf, -1e9)
    ),
    (
        "mask-shifted",
        _hidden_as(-np.inf, -1),
        "when a query may look at the key after it: hide every key after the query itself",
    ),
)
"""Without the padding mask, or with a causal mask that begins a column beside its place."""


# The softmax


def softmax_causes(segment: Segment) -> Iterator[Cause]:
    """Over the queries, over the heads, over the whole matrix; not at all; overflowing; of another base."""
    for group in groups(segment.of(Softmax)):
        along: dict[tuple[int, ...], str] = {(-2,): "rows (a column sums to 1)", (-2, -1): "the whole matrix"}
        if len(group[0].axes) == 3:
            along[(-3,)] = "the heads"
        for axes, words in along.items():
            says = f"when the softmax goes over {words}: take it over the last axis, so that each row sums to 1"
            for hidden in (-np.inf, -1e9):  # along other axes all scores may be hidden
                yield computed("softmax-axis", group, _over(axes, hidden), says)
        for dtype, words in OVERFLOW.items():
            says = f"{words}: take the row's largest score off before the exponential"
            yield computed("softmax-overflow", group, _without_maximum(dtype), says)
        for name, function, says in SHARES:
            yield computed(name, group, function, says)
        for size in (size for size in BLOCKS if size < group[0].shape[-1]):
            says = (
                f"when rows are read in blocks of {size} and what was added up is not rescaled as the maximum grows: "
                "multiply sum and output by e^(old maximum − new maximum)"
            )
            yield computed("softmax-rescale-missing", group, _not_rescaled(size), says)


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


SHARES: tuple[Row, ...] = (
    ("softmax-missing", _as_they_are, "without the softmax: take e^s ÷ Σ e^s of every row"),
    ("softmax-sum-missing", lambda _, s: np.exp(s), "without the division by the sum: divide e^s by Σ e^s of its row"),
    (
        "softmax-base",
        lambda _, scores: _softmax(scores * np.log(2.0)),
        "with powers of 2: take powers of e, or multiply the scores by log₂ e before exp2",
    ),
    ("softmax-exponential-missing", _without_exponentials, "when scores are divided by their sum: take e^s first"),
    ("softmax-twice", lambda _, s: _softmax(_softmax(s)), "when the softmax is taken twice: take it once"),
    (
        "softmax-logarithm",
        lambda _, scores: np.log(_softmax(scores)),
        "with the logarithm of the softmax: take the softmax itself",
    ),
)
