"""Soft caps that are left out (Gemma Team 2024, §2)."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.diagnosis.causes.cause import Cause, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.ops import SoftCap


def uncapped(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c)."""
    for group in groups([step for step in segment.steps if isinstance(step.op, SoftCap)]):
        says = "without the soft cap: take c · tanh(x ÷ c)"
        yield Cause("cap-missing", changing(instead(step, lambda x: x) for step in group), says)
