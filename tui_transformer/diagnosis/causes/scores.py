"""Scores that are capped or moved otherwise, windows of other layers, and sinks that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tui_transformer.diagnosis.causes.attention import factor_of, hidden_as
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
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import DistanceBias, Mask, RelativeBias, SoftCap, Softmax, SoftmaxWithSink
from tui_transformer.engine.program import Step
from tui_transformer.records import replace

CAPS = (30.0, 50.0)
"""Those of Gemma 2: of its logits, and of its scores."""


def cap_causes(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c) (Gemma Team 2024, §2); another c, another place."""
    for group in groups(segment.of(SoftCap)):
        yield computed("cap-missing", group, as_it_is)
        cap = getattr(group[0].op, "cap", 1.0)
        yield computed("cap-factor-missing", group, lambda step, x, cap=cap: result_of(step, x) / cap, cap=cap)
        others = dict.fromkeys((*CAPS, *(s.op.cap for s in segment.program.steps if isinstance(s.op, SoftCap))))
        for other in (other for other in others if other != cap):
            yield cause("cap-other", (altered(step, cap=other) for step in group), other=other, cap=cap)
        factor = factor_of(segment, group[0])
        if factor != 1.0:
            early = partial(lambda by, step, x: by * result_of(step, x / by), factor)
            yield computed("cap-place/scaled", group, early)
        masks = [step for step in segment.of(Mask) if step.inputs[0] in {each.name for each in group}]
        late = [instead(step, partial(_capped_late, segment.program.step(step.inputs[0]))) for step in masks]
        if late:
            yield cause("cap-place/masked", (*(instead(step, as_it_is) for step in group), *late))


def _capped_late(cap: Step, mask: Step, scores: Array, *rest: Array) -> Array:
    return result_of(cap, hidden_as(-np.inf, 0, mask, scores, *rest))


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


def distance_causes(segment: Segment) -> Iterator[Cause]:
    """Buckets for both sides or one, distances from key to query, other slopes, nothing (Raffel et al. 2020, §2.1)."""
    for group in groups(segment.of(RelativeBias)):
        both = getattr(group[-1].op, "bidirectional", False)
        turned = (altered(step, bidirectional=not getattr(step.op, "bidirectional", False)) for step in group)
        yield cause(f"relative-bidirectional/{'two' if both else 'one'}", turned)
        yield computed("relative-flipped", group, lambda step, s, table, q, k: result_of(step, s, table, -q, -k))
        yield computed("relative-missing", group, as_it_is)
    for group in groups(segment.of(DistanceBias)):
        yield computed("relative-missing/slopes", group, as_it_is)
        slopes = np.array(getattr(group[0].op, "slopes", ()))
        others = {"sign": -slopes, "heads": slopes[::-1], "one": slopes * 0 + slopes[0]}
        others["first"] = slopes / slopes[0] if slopes[0] != 1.0 else slopes * slopes[-1]
        if (factor := factor_of(segment, group[0])) != 1.0:
            others["scaled"] = slopes * factor
        for key, other in others.items():
            for distance in DISTANCES:
                yield computed(f"slopes/{key}", group, partial(_less_distance, other, distance))


DISTANCES: tuple[Callable[[Array, Array], Array], ...] = (
    lambda query, key: np.abs(query - key),
    lambda query, key: query - key,
    lambda query, key: -key + 0 * query,
)
"""Alike where a query sees keys before it alone: the softmax takes out what is added to a row."""


def _less_distance(
    slopes: Array, distance: Callable[[Array, Array], Array], _: Step, scores: Array, queries: Array, keys: Array
) -> Array:
    return scores - slopes[:, None, None] * distance(queries[:, None, :, None], keys[:, None, None, :])


def sink_causes(segment: Segment) -> Iterator[Cause]:
    """Rows that sum to 1, where a part of each is left to nothing (Xiao et al. 2023)."""
    for group in groups(segment.of(SoftmaxWithSink)):
        yield cause("sinks-missing", (replace(with_op(step, Softmax()), inputs=step.inputs[:1]) for step in group))
