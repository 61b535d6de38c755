"""Optimisers, schedules of the learning rate, and clipping: what turns gradients into a step.

An optimiser changes a weight in place, and keeps state of the weight's shape and precision beside it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.records import dataclass

State = Mapping[str, Array]
"""Arrays that are kept for one weight, by the names in `slots`; zeros at first."""


@dataclass(frozen=True)
class Optimizer(ABC):
    """How a gradient changes a weight.

    `slots` names what is kept, `usual_decay` is the weight decay where none is given.
    """

    slots: ClassVar[tuple[str, ...]]
    usual_decay: ClassVar[float] = 0.0

    @abstractmethod
    def update(
        self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float
    ) -> None:
        """Change weight and state in place; the gradient is used up. Steps count from 1; `decay` is λ."""


@dataclass(frozen=True)
class Sgd(Optimizer):
    """v ← μ v + (g + λ w); w ← w − η v (Polyak 1964)."""

    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    momentum: float = 0.9

    def update(
        self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float
    ) -> None:
        """One step; all are alike."""
        del step
        velocity = state["velocity"]
        if decay:
            gradient += weight * decay
        velocity *= self.momentum
        velocity += gradient
        weight -= backend.xp.multiply(velocity, rate, out=gradient)


@dataclass(frozen=True)
class Adam(Optimizer):
    """m ← β₁ m + (1 − β₁) g; v ← β₂ v + (1 − β₂) g²; w ← w − η m̂ ÷ (√v̂ + ε), g with λ w (Kingma & Ba 2015)."""

    slots: ClassVar[tuple[str, ...]] = ("mean", "square")
    decoupled: ClassVar[bool] = False
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def update(
        self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float
    ) -> None:
        """One step; m̂ = m ÷ (1 − β₁ᵗ), v̂ = v ÷ (1 − β₂ᵗ)."""
        if decay and self.decoupled:
            weight *= 1.0 - rate * decay
        elif decay:
            gradient += weight * decay
        xp, mean, square = backend.xp, state["mean"], state["square"]
        scratch = backend.like(weight)
        mean *= self.beta1
        mean += xp.multiply(gradient, 1.0 - self.beta1, out=scratch)
        square *= self.beta2
        gradient *= gradient
        gradient *= 1.0 - self.beta2
        square += gradient
        xp.sqrt(square, out=scratch)
        scratch *= 1.0 / math.sqrt(1.0 - self.beta2**step)
        scratch += self.epsilon
        xp.divide(mean, scratch, out=scratch)
        scratch *= rate / (1.0 - self.beta1**step)
        weight -= scratch


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with w ← (1 − η λ) w instead of λ w in the gradient (Loshchilov & Hutter 2019)."""

    usual_decay: ClassVar[float] = 0.01
    decoupled: ClassVar[bool] = True


OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {"adamw": AdamW, "adam": Adam, "sgd": Sgd}


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


SMALLEST = 1e-6


def squares(gradients: Mapping[str, Array]) -> dict[str, float]:
    """The sum of squares of every gradient."""
    return {name: float((flat := gradient.reshape(-1)) @ flat) for name, gradient in gradients.items()}


def norm(sums: Mapping[str, float]) -> float:
    """√ of the sum of all squares: the global norm."""
    return math.sqrt(sum(sums.values()))


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
