"""Masks that hide too little, the wrong keys, or hide them by a number that is not small enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Mask, Scale, Scores, Softmax
from tui_transformer.engine.program import Step

HIDING = (-1e4, -1e9, -1e3, -100.0, -10.0, -1.0)
"""Numbers that are added to hide a key."""


SHIFTED = (
    (1, -np.inf, "when a query may not look at itself: hide only the keys after it"),
    (1, -1e9, "when a query may not look at itself: hide only the keys after it"),
    (-1, -np.inf, "when a query may look at the key after it: hide every key after the query itself"),
)
"""A causal mask that begins one column too early or too late, and the number that hides."""


def masked_wrongly(segment: Segment) -> Iterator[Cause]:
    """No mask, the complement or transpose of it, a number for −∞, a product, a mask after the softmax."""
    steps = [step for step in segment.steps if isinstance(step.op, Mask)]
    for group in groups(steps):
        yield from _absent(group)
        yield from _turned(group)
        yield from _by_a_number(segment, group)
        says = "when hidden scores are multiplied by 0: put −∞ there, since e^0 is 1"
        yield Cause("mask-zero", changing(instead(step, _hidden_as(step, 0.0)) for step in group), says)
        yield from _after_softmax(segment, group)


def _absent(group: Sequence[Step]) -> Iterator[Cause]:
    bare = changing(instead(step, _no_mask) for step in group)
    yield Cause("mask-missing", bare, "without the mask: put −∞ where a query may not look, before the softmax")
    if any(isinstance(step.op, Mask) and step.op.causal for step in group):
        later = changing(replace(step, op=_not_causal(step)) for step in group)
        says = "without the causal mask: put −∞ at keys after the query, before the softmax"
        yield Cause("mask-missing", later, says)
        unpadded = changing(instead(step, _without_padding(step)) for step in group)
        yield Cause("mask-missing", unpadded, "without the padding mask: put −∞ at keys that are padding")
        for by, number, says in SHIFTED:
            shifted = changing(instead(step, _shifted(step, by, number)) for step in group)
            yield Cause("mask-shifted", shifted, says)
    else:
        causal = changing(instead(step, _with_causal(step)) for step in group)
        yield Cause("mask-added", causal, "with a causal mask: here a query may look at every key")


def _not_causal(step: Step) -> Mask:
    return replace(step.op, causal=False, window=None) if isinstance(step.op, Mask) else Mask()


def _turned(group: Sequence[Step]) -> Iterator[Cause]:
    for function, says in (
        (_complement, "when what may be seen is hidden and the rest is not: turn the mask around"),
        (_transpose, "when keys before the query are hidden: hide those after it"),
    ):
        yield Cause("mask-flipped", changing(instead(step, function(step)) for step in group), says)


def _by_a_number(segment: Segment, group: Sequence[Step]) -> Iterator[Cause]:
    for number in HIDING:
        factors = [factor for step in group if (factor := _factor(segment, step)) != 1.0]
        if factors:
            before = changing(instead(step, _plus(step, number * factors[0])) for step in group)
            says = f"when {number:g} is added to hidden scores before they are divided: mask after dividing, with −∞"
            yield Cause("mask-before-scale", before, says)
        after = changing(instead(step, _plus(step, number)) for step in group)
        yield Cause("mask-finite", after, f"when {number:g} is added to hidden scores: take −∞, so that nothing leaks")


def _factor(segment: Segment, step: Step) -> float:
    """The factor of the scores that a mask reads."""
    name = step.inputs[0]
    while (source := segment.program.by_name.get(name)) is not None and not isinstance(source.op, Scores):
        if isinstance(source.op, Scale):
            return source.op.factor
        name = source.inputs[0]
    return 1.0


def _after_softmax(segment: Segment, group: Sequence[Step]) -> Iterator[Cause]:
    """Weights of hidden keys set to 0 after the softmax, so that rows no longer sum to 1."""
    masks = {step.name: step for step in group}
    weights = [step for step in segment.steps if isinstance(step.op, Softmax) and step.inputs[0] in masks]
    if not weights:
        return
    steps: list[Step] = [instead(step, _no_mask) for step in group]
    for step in weights:
        mask = masks[step.inputs[0]]
        steps.append(
            replace(instead(step, _softmax_then_hide(mask)), inputs=(*mask.inputs,)),
        )
    says = "when keys are hidden after the softmax: mask before it, so that rows sum to 1"
    yield Cause("mask-after-softmax", changing(steps), says)


# What may have been computed in place of the mask, from the scores and the mask's other inputs


def hidden(step: Step, *inputs: Array) -> Array:
    """True where the mask of a step hides a key, in the shape of the scores."""
    return np.isneginf(step.op.forward(CPU, np.zeros_like(inputs[0]), *inputs[1:]))


def _no_mask(scores: Array, *_: Array) -> Array:
    return scores


def _softmax_then_hide(step: Step) -> Function:
    def function(scores: Array, *rest: Array) -> Array:
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.where(hidden(step, scores, *rest), 0.0, exponentials / exponentials.sum(axis=-1, keepdims=True))

    return function


def _hidden_as(step: Step, value: float) -> Function:
    return lambda scores, *rest: np.where(hidden(step, scores, *rest), value, scores)


def _plus(step: Step, number: float) -> Function:
    return lambda scores, *rest: scores + np.where(hidden(step, scores, *rest), number, 0.0)


def _without_padding(step: Step) -> Function:
    def function(scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
        return np.where(hidden(step, scores, queries, keys, np.ones_like(visible)), -np.inf, scores)

    return function


def _with_causal(step: Step) -> Function:
    def function(scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
        later = keys[:, None, None, :] > queries[:, None, :, None]
        return np.where(hidden(step, scores, queries, keys, visible) | later, -np.inf, scores)

    return function


def _shifted(step: Step, by: int, number: float) -> Function:
    def function(scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
        return np.where(hidden(step, scores, queries, keys + by, visible), number, scores)

    return function


def _complement(step: Step) -> Function:
    return lambda scores, *rest: np.where(hidden(step, scores, *rest), scores, -np.inf)


def _transpose(step: Step) -> Function:
    del step

    def function(scores: Array, queries: Array, keys: Array, visible: Array) -> Array:
        del visible
        return np.where(keys[:, None, None, :] < queries[:, None, :, None], -np.inf, scores)

    return function
