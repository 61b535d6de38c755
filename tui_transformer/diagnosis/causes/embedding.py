"""Embedding rows times √d_model or not (Vaswani et al. 2017, §3.4), and the wrong rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, around, changing, groups, last
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.ops import Embed


def embedded_wrongly(segment: Segment) -> Iterator[Cause]:
    """Not scaled, scaled, or the row after the right one."""
    steps = [step for step in segment.steps if isinstance(step.op, Embed) and last(step.name) == "tokens"]
    for group in groups(steps):
        width = group[0].shape[-1]
        scale = group[0].op.scale if isinstance(group[0].op, Embed) else 1.0
        root = f"√d_model = √{width}"
        for name, factor, says in (
            ("embedding-unscaled", 1.0, f"when embedding rows are taken as they are: multiply them by {root}"),
            (
                "embedding-scaled",
                math.sqrt(width),
                f"when embedding rows are multiplied by {root}: take them as they are",
            ),
            ("embedding-scaled", 1 / math.sqrt(width), f"when embedding rows are divided by {root}: do not divide"),
        ):
            if not math.isclose(factor, scale):
                change = changing(
                    replace(step, op=replace(step.op, scale=factor)) for step in group if isinstance(step.op, Embed)
                )
                yield Cause(name, change, says)
        moved = changing(
            around(step, lambda ids, table: (np.minimum(ids + 1, len(table) - 1), table)) for step in group
        )
        yield Cause("embedding-row", moved, "with the row after each token's: rows count from 0")
