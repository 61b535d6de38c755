"""Schedules: the share of the learning rate that a step takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Schedule = Callable[[int, int, int], float]
"""Step (from 1), steps of the warm-up, all steps → share of the learning rate."""


def constant(step: int, warm_up: int, steps: int) -> float:  # noqa: ARG001 - one signature for all
    """1 after the warm-up."""
    return _warm(step, warm_up)


def cosine(step: int, warm_up: int, steps: int) -> float:
    """Half a cosine from 1 to 0 after the warm-up (Loshchilov & Hutter 2017)."""
    done = (step - warm_up) / max(1, steps - warm_up)
    return _warm(step, warm_up) if done <= 0 else 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))


def inverse_sqrt(step: int, warm_up: int, steps: int) -> float:  # noqa: ARG001
    """√(w ÷ step) after a warm-up of w steps (Vaswani et al. 2017, §5.3)."""
    first = max(1, warm_up)
    return _warm(step, warm_up) if step <= first else math.sqrt(first / step)


def _warm(step: int, warm_up: int) -> float:
    return min(1.0, step / warm_up) if warm_up else 1.0


SCHEDULES: Mapping[str, Schedule] = {"cosine": cosine, "inverse-sqrt": inverse_sqrt, "constant": constant}
