"""Optimisers: each changes a weight in place, and keeps state of the weight's shape and precision beside it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend

State = Mapping[str, Array]
"""Arrays that are kept for one weight, by the names in `slots`; zeros at first."""


@dataclass(frozen=True)
class Optimizer(ABC):
    """How a gradient changes a weight.

    Class attributes:
        slots: The names of what is kept.
        usual_decay: The weight decay that is taken where none is given.
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
        self,
        backend: Backend,
        weight: Array,
        gradient: Array,
        state: State,
        rate: float,
        step: int,
        decay: float,
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
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def update(
        self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float
    ) -> None:
        """One step."""
        if decay:
            gradient += weight * decay
        self._move(backend, weight, gradient, state, rate, step)

    def _move(self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int) -> None:
        """The step itself; m̂ = m ÷ (1 − β₁ᵗ), v̂ = v ÷ (1 − β₂ᵗ)."""
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

    def update(
        self, backend: Backend, weight: Array, gradient: Array, state: State, rate: float, step: int, decay: float
    ) -> None:
        """One step."""
        if decay:
            weight *= 1.0 - rate * decay
        self._move(backend, weight, gradient, state, rate, step)


OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {"adamw": AdamW, "adam": Adam, "sgd": Sgd}
