"""Activations: functions of one value, most of which feed-forward layers are made of."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import EXACT, RESULT, Gradients, Op, by_rows, passed_on
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Function(Op):
    """A function of one value, made in every cell alone.

    Class attributes:
        slope_text: The slope, written out; `{x}` is the value that it is of, `{op}` the operation.
        equation: The function of a number `{x}`, or of the `{minus}` of it.
    """

    overwrites = True
    slope_text: ClassVar[str] = ""
    equation: ClassVar[str] = ""

    @abstractmethod
    def slope(self, backend: Backend, value: Array) -> Array:
        """The derivative at values of the input; of the result, where `undone_from` says so."""

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = f(x); ∂x = ∂y f'(x)."""
        slope = self.slope(backend, output if self.undone_from == (RESULT,) else inputs[0])
        return (backend.xp.multiply(gradient, slope, out=backend.like(gradient)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        result = at(self.forward, cell.value)
        equation = self.equation.format(x=spoken(cell.value), minus=spoken(-cell.value))
        return Working((cell.called("x"), Value(self.definition, result)), result, equation)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        cell = (output if self.undone_from == (RESULT,) else inputs[0]).operand(*index)
        note = self.slope_text.format(x=f"{cell.value:.6g}", op=self)
        return passed_on(gradient.operand(*index), at(self.slope, cell.value), "· slope", note, cell)


@np.errstate(all="ignore")
def at(function: Callable[[Backend, Array], Array], value: float) -> float:
    """What a function of arrays gives for one value, in float64."""
    return float(function(EXACT, np.array([value]))[0])


@dataclass(frozen=True)
class Relu(Function):
    """max(0, x), elementwise (Nair & Hinton 2010)."""

    definition = "max(0, x)"
    undone_from = (RESULT,)
    chain = ("∂y where x > 0, else 0",)
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)

    def slope(self, backend: Backend, value: Array) -> Array:
        """1 where y > 0, which is where x > 0."""
        return value > 0.0

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        note = "not above 0: becomes 0" if cell.value <= 0 else "above 0: passes" if cell.value > 0 else "stays NaN"
        return Working((cell.called("x", note),), max(cell.value, 0.0), f"max(0, {spoken(cell.value)})")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        passes = cell.value > 0
        note = "1: x is above 0" if passes else "0: x is not above 0"
        return passed_on(gradient.operand(*index), float(passes), "· slope", note, cell)


@dataclass(frozen=True)
class ReluSquared(Function):
    """max(0, x)², elementwise (So et al. 2021, "Primer", §4)."""

    definition = "max(0, x)²"
    cost = 2
    chain = ("∂y · 2 max(0, x)",)
    slope_text = "2 max(0, x)"
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        result = backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)
        return backend.xp.multiply(result, result, out=result)

    def slope(self, backend: Backend, value: Array) -> Array:
        return 2.0 * backend.xp.maximum(value, 0.0)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        passed = max(cell.value, 0.0)  # in this order NaN stays what it is
        note = "not above 0: becomes 0" if cell.value <= 0 else "above 0: squared" if cell.value > 0 else "stays NaN"
        items = (cell.called("x", note), Value("max(0, x)", passed))
        text = f"max(0, {spoken(cell.value)})"
        return Working(items, passed * passed, f"{text} · {text}")


@dataclass(frozen=True)
class Tanh(Function):
    """tanh(x) = (e^x − e^−x) ÷ (e^x + e^−x)."""

    definition = "tanh(x)"
    equation = "tanh({x})"
    undone_from = (RESULT,)
    slope_text = "1 − y²"
    chain = ("∂y · (1 − y²)",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.tanh(inputs[0], out=backend.like(inputs[0]) if out is None else out)

    def slope(self, backend: Backend, value: Array) -> Array:
        return 1.0 - value * value


@dataclass(frozen=True)
class Sigmoid(Function):
    """1 ÷ (1 + e^−x)."""

    definition = "1 ÷ (1 + e^−x)"
    equation = "1 ÷ (1 + e^({minus}))"
    undone_from = (RESULT,)
    slope_text = "y (1 − y)"
    cost = 3
    signed = False
    chain = ("∂y · (y (1 − y))",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return sigmoid(backend, inputs[0], 1.0, backend.like(inputs[0]) if out is None else out)

    def slope(self, backend: Backend, value: Array) -> Array:
        return value * (1.0 - value)


def sigmoid(backend: Backend, x: Array, steepness: float, out: Array) -> Array:
    """1 ÷ (1 + e^−kx) by tanh, which does not overflow."""
    backend.xp.multiply(x, 0.5 * steepness, out=out)
    backend.xp.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out


@dataclass(frozen=True)
class SoftCap(Function):
    """c · tanh(x ÷ c) (Gemma Team 2024, "Gemma 2", §2)."""

    cost = 3
    undone_from = (RESULT,)
    slope_text = "1 − (y ÷ {op.cap:g})²"
    chain = ("∂y · (1 − (y ÷ c)²)",)
    cap: float

    @property
    def formula(self) -> str:
        return f"{self.cap:g} · tanh(x ÷ {self.cap:g})"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        xp, result = backend.xp, backend.like(inputs[0]) if out is None else out
        xp.divide(inputs[0], self.cap, out=result)
        xp.tanh(result, out=result)
        return xp.multiply(result, self.cap, out=result)

    def slope(self, backend: Backend, value: Array) -> Array:
        share = value / self.cap
        return 1.0 - share * share

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        share = math.tanh(cell.value / self.cap)
        items = (cell.called("x"), Value("c", self.cap), Value("tanh(x ÷ c)", share))
        return Working(items, self.cap * share, f"{spoken(self.cap)} · tanh({spoken(cell.value)} ÷ {spoken(self.cap)})")


@dataclass(frozen=True)
class SelfGated(Function):
    """x · s(x), where the share s(x) goes from 0 to 1.

    Class attributes:
        symbol: What the share is called.
        share_text: The share, written out.
        code: The function of `x`, of type `T`, in C: as a GPU makes it in one pass.
    """

    symbol: ClassVar[str]
    share_text: ClassVar[str]
    code: ClassVar[str]

    @abstractmethod
    def share(self, backend: Backend, x: Array) -> Array:
        """s(x) of an array, in a new one."""

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        result = backend.like(inputs[0]) if out is None else out
        if backend.kernels is not None:
            return backend.kernels.function(self.code, inputs[0], result)

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self.share(backend, x), out=target)

        by_rows(backend, weigh, inputs[0], result, columns=1)
        return result

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        share = at(self.share, cell.value)
        items = (cell.called("x"), Value(self.symbol, share, note=self.share_text))
        return Working(items, cell.value * share, f"{spoken(cell.value)} · {spoken(share)}")


@dataclass(frozen=True)
class Swish(SelfGated):
    """x · σ(k x) with σ(x) = 1 ÷ (1 + e^−x)."""

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The number k."""

    @property
    def code(self) -> str:  # type: ignore[override]  # k is that of an operation
        return f"x * (1 + tanh(x * T({self.steepness / 2}))) / 2"

    def share(self, backend: Backend, x: Array) -> Array:
        return sigmoid(backend, x, self.steepness, backend.like(x))

    def slope(self, backend: Backend, value: Array) -> Array:
        """σ (1 + k x (1 − σ))."""
        share = self.share(backend, value)
        scaled = value if self.steepness == 1.0 else self.steepness * value
        return share * (1.0 + scaled * (1.0 - share))


@dataclass(frozen=True)
class Silu(Swish):
    """x · σ(x), also called swish (Elfwing et al. 2017)."""

    definition = "x ÷ (1 + e^−x)"
    chain = ("∂y · σ(x) (1 + x (1 − σ(x)))",)
    cost = 5
    symbol = "σ(x)"
    share_text = "1 ÷ (1 + e^−x)"
    steepness = 1.0
    slope_text = "σ (1 + x (1 − σ)) at {x}"


@dataclass(frozen=True)
class QuickGelu(Swish):
    """x · σ(1.702 x), close to GELU (Hendrycks & Gimpel 2016, §2)."""

    definition = "x ÷ (1 + e^(−1.702 x))"
    chain = ("∂y · s (1 + 1.702 x (1 − s)), s = σ(1.702 x)",)
    cost = 6
    symbol = "σ(1.702 x)"
    share_text = "1 ÷ (1 + e^(−1.702 x))"
    steepness = 1.702
    slope_text = "s (1 + 1.702 x (1 − s)) at {x}"


@dataclass(frozen=True)
class ClampedSwish(Swish):
    """g σ(α g) with g = min(x, limit) (OpenAI 2025, model card of gpt-oss; Ramachandran et al. 2017)."""

    chain = ("∂y · σ (1 + α g (1 − σ)) where x ≤ limit, else 0",)
    cost = 6
    slope_text = "at {x}"
    steepness: float = 1.702
    limit: float = 7.0

    @property
    def formula(self) -> str:
        return f"g ÷ (1 + e^(−{self.steepness:g} g)), g = min(x, {self.limit:g})"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return super().forward(backend, backend.xp.minimum(inputs[0], self.limit), out=out)

    def slope(self, backend: Backend, value: Array) -> Array:
        return super().slope(backend, backend.xp.minimum(value, self.limit)) * (value <= self.limit)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        kept = min(cell.value, self.limit)
        share = at(self.share, kept)
        items = (
            cell.called("x"),
            Value("g", kept, note=f"min(x, {self.limit:g})"),
            Value("σ(α g)", share, note=f"α = {self.steepness:g}"),
        )
        return Working(items, kept * share, f"{spoken(kept)} · {spoken(share)}")


@dataclass(frozen=True)
class Gelu(SelfGated):
    """x · Φ(x) with Φ(x) = (1 + erf(x / √2)) / 2 (Hendrycks & Gimpel 2016)."""

    definition = "x · (1 + erf(x ÷ √2)) ÷ 2"
    undone_from = (0,)
    chain = ("∂y · (Φ(x) + x φ(x))",)
    cost = 5
    symbol = "Φ(x)"
    share_text = "(1 + erf(x ÷ √2)) ÷ 2"
    code = f"x * (1 + erf(x * T({math.sqrt(0.5)}))) / 2"
    slope_text = "Φ(x) + x φ(x) at {x}"

    def share(self, backend: Backend, x: Array) -> Array:
        phi = backend.erf(x * math.sqrt(0.5))
        phi += 1.0
        phi *= 0.5
        return phi

    def slope(self, backend: Backend, value: Array) -> Array:
        """Φ(x) + x φ(x) with the normal density φ."""
        density = backend.xp.exp(-0.5 * value * value) * (1.0 / math.sqrt(2.0 * math.pi))
        return self.share(backend, value) + value * density


RATE, CUBIC = math.sqrt(2.0 / math.pi), 0.044715


@dataclass(frozen=True)
class GeluTanh(SelfGated):
    """x · (1 + tanh(√(2/π) (x + 0.044715 x³))) ÷ 2, as GPT-2 was trained with (Hendrycks & Gimpel 2016, §2)."""

    definition = "x · (1 + tanh(√(2/π)(x + 0.044715 x³))) ÷ 2"
    chain = ("∂y · slope of x s(x)",)
    cost = 8
    symbol = "share"
    share_text = "(1 + tanh(…)) ÷ 2"
    code = f"x * (1 + tanh(T({RATE}) * x * (1 + T({CUBIC}) * x * x))) / 2"
    slope_text = "of x s(x) at {x}"

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

    def slope(self, backend: Backend, value: Array) -> Array:
        """That is s + x · 2 s (1 − s) · √(2/π) (1 + 3 · 0.044715 x²)."""
        share = self.share(backend, value)
        slope = RATE * (1.0 + 3.0 * CUBIC * value * value)
        return share + value * 2.0 * share * (1.0 - share) * slope
