"""Activations: functions of one value that feed-forward layers are made of."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import RESULT, Gradients, by_cells
from tui_transformer.engine.ops.elementwise import Function


@dataclass(frozen=True)
class Relu(Function):
    """max(0, x), elementwise (Nair & Hinton 2010)."""

    definition = "max(0, x)"
    undone_from = (RESULT,)
    chain = ("∂y where x > 0, else 0",)
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = max(0, x); y > 0 where x > 0."""
        return (backend.xp.multiply(gradient, output > 0.0, out=backend.like(gradient)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        note = "above 0: passes" if cell.value > 0 else "not above 0: becomes 0"
        return Working((Value("x", cell.value, cell, note),), max(0.0, cell.value), f"max(0, {spoken(cell.value)})")

    def slope_at(self, value: float) -> tuple[float, str]:
        return (1.0, "1: x is above 0") if value > 0 else (0.0, "0: x is not above 0")


@dataclass(frozen=True)
class ReluSquared(Function):
    """max(0, x)², elementwise (So et al. 2021, "Primer", §4)."""

    definition = "max(0, x)²"
    cost = 2
    chain = ("∂y · 2 max(0, x)",)
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        result = backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)
        return backend.xp.multiply(result, result, out=result)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = max(0, x)²; ∂x = ∂y · 2 max(0, x)."""
        return (gradient * (2.0 * backend.xp.maximum(inputs[0], 0.0)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        passed = max(0.0, cell.value)
        note = "above 0: squared" if cell.value > 0 else "not above 0: becomes 0"
        items = (Value("x", cell.value, cell, note), Value("max(0, x)", passed))
        text = f"max(0, {spoken(cell.value)})"
        return Working(items, passed * passed, f"{text} · {text}")

    def slope_at(self, value: float) -> tuple[float, str]:
        return 2.0 * max(0.0, value), "2 max(0, x)"


@dataclass(frozen=True)
class Tanh(Function):
    """tanh(x) = (e^x − e^−x) ÷ (e^x + e^−x)."""

    definition = "tanh(x)"
    undone_from = (RESULT,)
    slope_from = RESULT
    chain = ("∂y · (1 − y²)",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.tanh(inputs[0], out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = tanh(x); ∂x = ∂y (1 − y²)."""
        return (gradient * (1.0 - output * output),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        result = math.tanh(cell.value)
        return Working((Value("x", cell.value, cell), Value("tanh(x)", result)), result, f"tanh({spoken(cell.value)})")

    def slope_at(self, value: float) -> tuple[float, str]:
        return 1.0 - value**2, "1 − y²"


@dataclass(frozen=True)
class Sigmoid(Function):
    """1 ÷ (1 + e^−x)."""

    definition = "1 ÷ (1 + e^−x)"
    undone_from = (RESULT,)
    slope_from = RESULT
    cost = 3
    signed = False
    chain = ("∂y · (y (1 − y))",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """By tanh, which does not overflow."""
        xp, result = backend.xp, backend.like(inputs[0]) if out is None else out
        xp.multiply(inputs[0], 0.5, out=result)
        xp.tanh(result, out=result)
        result += 1.0
        result *= 0.5
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = 1 ÷ (1 + e^−x); ∂x = ∂y y (1 − y)."""
        return (gradient * (output * (1.0 - output)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        result = 0.5 * (1.0 + math.tanh(0.5 * cell.value))
        items = (Value("x", cell.value, cell), Value("1 ÷ (1 + e^−x)", result))
        return Working(items, result, f"1 ÷ (1 + e^({spoken(-cell.value)}))")

    def slope_at(self, value: float) -> tuple[float, str]:
        return value * (1.0 - value), "y (1 − y)"


@dataclass(frozen=True)
class SelfGated(Function):
    """x · s(x), where the share s(x) goes from 0 to 1.

    Class attributes:
        symbol: What the share is called.
        share_text: The share, written out.
    """

    symbol: ClassVar[str]
    share_text: ClassVar[str]

    @abstractmethod
    def share(self, backend: Backend, x: Array) -> Array:
        """s(x) of an array, in a new one."""

    @abstractmethod
    def share_at(self, x: float) -> float:
        """s(x) of one value, in float64."""

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        result = backend.like(inputs[0]) if out is None else out

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self.share(backend, x), out=target)

        by_cells(backend, weigh, inputs[0], result)
        return result

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        share = self.share_at(cell.value)
        items = (Value("x", cell.value, cell), Value(self.symbol, share, note=self.share_text))
        return Working(items, cell.value * share, f"{spoken(cell.value)} · {spoken(share)}")


@dataclass(frozen=True)
class Swish(SelfGated):
    """x · σ(k x) with σ(x) = 1 ÷ (1 + e^−x), worked out by tanh, which does not overflow.

    Class attributes:
        slope_text: The derivative, written out.
    """

    slope_text: ClassVar[str]

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The number k."""

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x σ(k x); ∂x = σ (1 + k x (1 − σ))."""
        share = self.share(backend, inputs[0])
        scaled = inputs[0] if self.steepness == 1.0 else self.steepness * inputs[0]
        return (gradient * share * (1.0 + scaled * (1.0 - share)),)

    def share(self, backend: Backend, x: Array) -> Array:
        share = backend.xp.multiply(x, 0.5 * self.steepness, out=backend.like(x))
        backend.xp.tanh(share, out=share)
        share += 1.0
        share *= 0.5
        return share

    def share_at(self, x: float) -> float:
        return 0.5 * (1.0 + math.tanh(0.5 * self.steepness * x))

    def slope_at(self, value: float) -> tuple[float, str]:
        share = self.share_at(value)
        return share * (1.0 + self.steepness * value * (1.0 - share)), f"{self.slope_text} at {value:.6g}"


@dataclass(frozen=True)
class Silu(Swish):
    """x · σ(x), also called swish (Elfwing et al. 2017)."""

    definition = "x ÷ (1 + e^−x)"
    chain = ("∂y · σ(x) (1 + x (1 − σ(x)))",)
    cost = 5
    symbol = "σ(x)"
    share_text = "1 ÷ (1 + e^−x)"
    steepness = 1.0
    slope_text = "σ (1 + x (1 − σ))"


@dataclass(frozen=True)
class QuickGelu(Swish):
    """x · σ(1.702 x), close to GELU (Hendrycks & Gimpel 2016, §2)."""

    definition = "x ÷ (1 + e^(−1.702 x))"
    chain = ("∂y · s (1 + 1.702 x (1 − s)), s = σ(1.702 x)",)
    cost = 6
    symbol = "σ(1.702 x)"
    share_text = "1 ÷ (1 + e^(−1.702 x))"
    steepness = 1.702
    slope_text = "s (1 + 1.702 x (1 − s))"


@dataclass(frozen=True)
class Gelu(SelfGated):
    """x · Φ(x) with Φ(x) = (1 + erf(x / √2)) / 2 (Hendrycks & Gimpel 2016)."""

    definition = "x · (1 + erf(x ÷ √2)) ÷ 2"
    undone_from = (0,)
    chain = ("∂y · (Φ(x) + x φ(x))",)
    cost = 5
    symbol = "Φ(x)"
    share_text = "(1 + erf(x ÷ √2)) ÷ 2"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x Φ(x); ∂x = Φ(x) + x φ(x) with the normal density φ."""
        x = inputs[0]
        density = backend.xp.exp(-0.5 * x * x) * (1.0 / math.sqrt(2.0 * math.pi))
        return (gradient * (self.share(backend, x) + x * density),)

    def share(self, backend: Backend, x: Array) -> Array:
        phi = backend.erf(x * math.sqrt(0.5))
        phi += 1.0
        phi *= 0.5
        return phi

    def share_at(self, x: float) -> float:
        return 0.5 * (1.0 + math.erf(x * math.sqrt(0.5)))

    def slope_at(self, value: float) -> tuple[float, str]:
        density = value * math.exp(-0.5 * value * value) / math.sqrt(2.0 * math.pi)
        return self.share_at(value) + density, f"Φ(x) + x φ(x) at {value:.6g}"


RATE, CUBIC = math.sqrt(2.0 / math.pi), 0.044715


@dataclass(frozen=True)
class GeluTanh(SelfGated):
    """x · (1 + tanh(√(2/π) (x + 0.044715 x³))) ÷ 2, as GPT-2 was trained with (Hendrycks & Gimpel 2016, §2)."""

    definition = "x · (1 + tanh(√(2/π)(x + 0.044715 x³))) ÷ 2"
    chain = ("∂y · slope of x s(x)",)
    cost = 8
    symbol = "share"
    share_text = "(1 + tanh(…)) ÷ 2"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x s(x); ∂x = s + x · 2 s (1 − s) · √(2/π) (1 + 3 · 0.044715 x²)."""
        x, share = inputs[0], self.share(backend, inputs[0])
        slope = RATE * (1.0 + 3.0 * CUBIC * x * x)
        return (gradient * (share + x * 2.0 * share * (1.0 - share) * slope),)

    def share(self, backend: Backend, x: Array) -> Array:
        inner = backend.xp.multiply(x, x, out=backend.like(x))
        inner *= CUBIC
        inner += 1.0
        inner *= x
        inner *= RATE
        backend.xp.tanh(inner, out=inner)
        inner += 1.0
        inner *= 0.5
        return inner

    def share_at(self, x: float) -> float:
        return 0.5 * (1.0 + math.tanh(RATE * x * (1.0 + CUBIC * x * x)))

    def slope_at(self, value: float) -> tuple[float, str]:
        share, note = self.share_at(value), f"of x s(x) at {value:.6g}"
        rest = 2.0 * share * (1.0 - share)
        if not rest:  # x² may be too large to matter
            return share, note
        return share + value * rest * RATE * (1.0 + 3.0 * CUBIC * value * value), note
