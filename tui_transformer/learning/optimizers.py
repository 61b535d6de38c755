"""Optimisers, schedules of the learning rate, and clipping: what turns gradients into a step.

An optimiser changes a weight in place, and keeps state of the weight's shape and precision beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.records import dataclass

State = Mapping[str, Array]
"""Arrays that are kept for one weight, by the names in `slots`; zeros at first."""


@dataclass(frozen=True)
class Optimizer:
    """How a gradient changes a weight.

    `update(backend, weight, gradient, state, rate, step, decay)` changes weight and state in place; the gradient is
    used up. Steps count from 1; `decay` is λ, and `usual_decay` that where none is given. `slots` names what is kept.
    """

    slots: tuple[str, ...]
    update: Callable[[Backend, Array, Array, State, float, int, float], None]
    usual_decay: float = 0.0


MOMENTUM, BETA1, BETA2, EPSILON = 0.9, 0.9, 0.999, 1e-8
"""μ, β₁, β₂ and ε."""


def sgd(backend: Backend, weight: Array, gradient: Array, state: State, rate: float, _step: int, decay: float) -> None:
    """With momentum: v ← μ v + (g + λ w); w ← w − η v (Polyak 1964)."""
    velocity = state["velocity"]
    if decay:
        gradient += weight * decay
    velocity *= MOMENTUM
    velocity += gradient
    weight -= backend.xp.multiply(velocity, rate, out=gradient)


def adam(backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float) -> None:
    """With unbiased means (Kingma & Ba 2015): w ← w − η m̂ ÷ (√v̂ + ε), g with λ w.

    m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g²; m̂ = m ÷ (1 − β₁ᵗ), v̂ = v ÷ (1 − β₂ᵗ).
    """
    if decay:
        gradient += weight * decay
    xp, mean, square = backend.xp, state["mean"], state["square"]
    scratch = backend.like(weight)
    mean *= BETA1
    mean += xp.multiply(gradient, 1.0 - BETA1, out=scratch)
    square *= BETA2
    gradient *= gradient
    gradient *= 1.0 - BETA2
    square += gradient
    xp.sqrt(square, out=scratch)
    scratch *= 1.0 / math.sqrt(1.0 - BETA2**step)
    scratch += EPSILON
    xp.divide(mean, scratch, out=scratch)
    scratch *= rate / (1.0 - BETA1**step)
    weight -= scratch


def adamw(backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float) -> None:
    """Adam with w ← (1 − η λ) w instead of λ w in the gradient (Loshchilov & Hutter 2019)."""
    if decay:
        weight *= 1.0 - rate * decay
    adam(backend, weight, gradient, state, rate, step, 0.0)


OPTIMIZERS: Mapping[str, Optimizer] = {
    "adamw": Optimizer(("mean", "square"), adamw, usual_decay=0.01),
    "adam": Optimizer(("mean", "square"), adam),
    "sgd": Optimizer(("velocity",), sgd),
}


Schedule = Callable[[int, int, int], float]
"""Step (from 1), steps of the warm-up, all steps → share of the learning rate."""


def constant(step: int, warm_up: int, steps: int) -> float:  # noqa: ARG001 - one signature for all
    """1 after the warm-up, in which it grows from 0."""
    return min(1.0, step / warm_up) if warm_up else 1.0


def cosine(step: int, warm_up: int, steps: int) -> float:
    """Half a cosine from 1 to 0 after the warm-up (Loshchilov & Hutter 2017)."""
    done = (step - warm_up) / max(1, steps - warm_up)
    return constant(step, warm_up, steps) if done <= 0 else 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))


def inverse_sqrt(step: int, warm_up: int, steps: int) -> float:
    """√(w ÷ step) after a warm-up of w steps (Vaswani et al. 2017, §5.3)."""
    first = max(1, warm_up)
    return constant(step, warm_up, steps) if step <= first else math.sqrt(first / step)


SCHEDULES: Mapping[str, Schedule] = {"cosine": cosine, "inverse-sqrt": inverse_sqrt, "constant": constant}


SMALLEST = 1e-6


def squares(gradients: Mapping[str, Array]) -> dict[str, float]:
    """The sum of squares of every gradient."""
    return {name: float((flat := gradient.reshape(-1)) @ flat) for name, gradient in gradients.items()}


def layer_norms(sums: Mapping[str, float]) -> dict[str, float]:
    """The norm of the gradients of each layer: of `decoder.0`, of `embedding`."""
    layers: dict[str, float] = {}
    for name, total in sums.items():
        layer = layer_of(name)
        layers[layer] = layers.get(layer, 0.0) + total
    return {layer: math.sqrt(total) for layer, total in layers.items()}


def layer_of(name: str) -> str:
    """The layer of a weight or step: `decoder.0.self_attention.query.weight` is of `decoder.0`."""
    parts = name.split(".")
    if len(parts) == 1:
        return name
    return ".".join(parts[:2]) if parts[1].isdigit() or parts[1] in ("norm", "embedding") else parts[0]


def clip(gradients: Mapping[str, Any], length: float, longest: float) -> None:
    """Scale all gradients in place so that their norm, `length`, is at most `longest` (Pascanu et al. 2013)."""
    share = longest / (length + SMALLEST)
    if share < 1.0:
        for gradient in gradients.values():
            gradient *= share
