"""Relative bias (Raffel et al. 2020, §2.1): distances counted otherwise, or left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tui_transformer.diagnosis.causes.cause import Cause, around, changing, groups, instead, with_op
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.ops import RelativeBias

ONE_SIDED = "when the buckets are shared out to both sides: a decoder gives all of them to keys before the query"
TWO_SIDED = "when all buckets are of keys before the query: half of them are of keys after it"


def distances_counted_wrongly(segment: Segment) -> Iterator[Cause]:
    """Buckets for both sides or one, distances from key to query, the bias left out."""
    steps = [step for step in segment.steps if isinstance(step.op, RelativeBias)]
    for group in groups(steps):
        turned, both = [], True
        for step in group:
            if isinstance(step.op, RelativeBias):
                both = step.op.bidirectional
                turned.append(with_op(step, replace(step.op, bidirectional=not both)))
        yield Cause("relative-bidirectional", changing(turned), TWO_SIDED if both else ONE_SIDED)
        flipped = changing(around(step, lambda s, table, q, k: (s, table, -q, -k)) for step in group)
        yield Cause("relative-flipped", flipped, "when distances are query − key: take key − query")
        none = changing(instead(step, lambda scores, *_: scores) for step in group)
        yield Cause("relative-missing", none, "without the relative bias: add the row of the table for key − query")
