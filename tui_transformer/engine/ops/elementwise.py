"""Ops that make every cell of the result from the same cell of their inputs: sums, factors, gates, dropout."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, passed_on


@dataclass(frozen=True)
class Elementwise(Op):
    """Every cell of the result from the same cell of the inputs; the result may lie where the first input was."""

    overwrites = True


@dataclass(frozen=True)
class Function(Elementwise):
    """A function of one value.

    Class attributes:
        slope_from: Of which value the slope is worked out: 0 for the input, `RESULT` for the result.
    """

    slope_from: ClassVar[int] = 0

    @abstractmethod
    def slope_at(self, value: float) -> tuple[float, str]:
        """The derivative at one value, in float64, and how it is written."""

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        cell = (output if self.slope_from == RESULT else inputs[0]).operand(*index)
        slope, note = self.slope_at(cell.value)
        return passed_on(gradient.operand(*index), slope, "· slope", note, cell)


@dataclass(frozen=True)
class Add(Elementwise):
    """a + b (+ c …), elementwise."""

    undone_from = ()
    chain = ("∂y",)
    expression: str = "x + sublayer(x)"

    @property
    def formula(self) -> str:
        return self.expression

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        total = backend.xp.add(inputs[0], inputs[1], out=backend.like(inputs[0]) if out is None else out)
        for extra in inputs[2:]:
            total = backend.xp.add(total, extra, out=total)
        return total

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a + b; each addend gets the whole gradient."""
        return tuple(gradient for _ in inputs)

    def explain(self, index: Index, *inputs: Source) -> Working:
        operands = [source.operand(*index) for source in inputs]
        items = tuple(Value("+" if i else "", operand.value, operand) for i, operand in enumerate(operands))
        return Working(items, sum(operand.value for operand in operands))

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        return passed_on(gradient.operand(*index))

    def flops(self, *inputs: Axes) -> int:
        return super().flops(*inputs) * (len(inputs) - 1)


@dataclass(frozen=True)
class Scale(Elementwise):
    """x · factor; `expression` says what the factor is, as "÷ √d_k", and `of` what x is."""

    undone_from = ()
    chain = ("∂y · factor",)
    factor: float
    expression: str
    of: str = "score"

    @property
    def formula(self) -> str:
        return f"{self.of} {self.expression}"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A Python float keeps float32 arrays float32."""
        return backend.xp.multiply(inputs[0], self.factor, out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x · factor."""
        return (backend.xp.multiply(gradient, self.factor, out=backend.like(gradient)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        return Working((Value(self.of, cell.value, cell), self._value()), cell.value * self.factor)

    def _value(self) -> Value:
        """The number that the cell is divided by or multiplied with, as it is written."""
        if self.expression.startswith("÷") and self.factor:
            return Value(self.expression, 1.0 / self.factor)
        if self.expression.startswith("·"):
            return Value(self.expression, self.factor)
        return Value("· factor", self.factor, note=self.expression)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        return passed_on(gradient.operand(*index), self.factor, "· factor", self.expression)


@dataclass(frozen=True)
class Gate(Elementwise):
    """a · b, elementwise (Shazeer 2020). Inputs: the activated gate and the hidden values."""

    definition = "f(gate) · hidden"
    chain = ("∂y · hidden", "∂y · f(gate)")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.multiply(inputs[0], inputs[1], out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a · b."""
        return gradient * inputs[1], gradient * inputs[0]

    def explain(self, index: Index, *inputs: Source) -> Working:
        gate, hidden = (source.operand(*index) for source in inputs)
        return Working(
            (Value("f(gate)", gate.value, gate), Value("· hidden", hidden.value, hidden)), gate.value * hidden.value
        )

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        other, symbol = inputs[1 - toward].operand(*index), ("· hidden", "· f(gate)")[toward]
        return passed_on(gradient.operand(*index), other.value, symbol, read=other)


@dataclass(frozen=True)
class Dropout(Elementwise):
    """x ÷ (1 − p) where kept, else 0: the expected value is x (Srivastava et al. 2014, §10: inverted dropout).

    Inputs: x, and which of its cells are kept. p is the share that is dropped. Only programs for training have it.
    """

    definition = "x · kept ÷ (1 − p)"
    undone_from = (1,)
    chain = ("∂y · kept ÷ (1 − p)", "")
    cost = 2
    rate: float

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, kept = inputs
        result = backend.xp.multiply(x, kept, out=backend.like(x) if out is None else out)
        result *= self._factor
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x · kept ÷ (1 − p)."""
        toward_x = backend.xp.multiply(gradient, inputs[1], out=backend.like(gradient))
        toward_x *= self._factor
        return toward_x, None

    @property
    def _factor(self) -> float:
        return 1.0 / (1.0 - self.rate)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell, kept = (source.operand(*index) for source in inputs)
        items = (
            Value("x", cell.value, cell),
            Value("kept", kept.value, kept),
            Value("1 ÷ (1 − p)", self._factor, note=f"p = {self.rate:g}"),
        )
        left = f"{spoken(cell.value)} · {spoken(kept.value)} · {spoken(self._factor)}"
        return Working(items, cell.value * kept.value * self._factor, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        kept = inputs[1].operand(*index)
        return passed_on(gradient.operand(*index), kept.value * self._factor, "kept ÷ (1 − p)", read=kept)


@dataclass(frozen=True)
class SoftCap(Function):
    """c · tanh(x ÷ c) (Gemma Team 2024, "Gemma 2", §2)."""

    cost = 3
    undone_from = (RESULT,)
    slope_from = RESULT
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

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = c tanh(x / c); ∂x = ∂y (1 − (y / c)²)."""
        share = output / self.cap
        return (gradient * (1.0 - share * share),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        share = math.tanh(cell.value / self.cap)
        items = (Value("x", cell.value, cell), Value("c", self.cap), Value("tanh(x ÷ c)", share))
        return Working(items, self.cap * share, f"{spoken(self.cap)} · tanh({spoken(cell.value)} ÷ {spoken(self.cap)})")

    def slope_at(self, value: float) -> tuple[float, str]:
        return 1.0 - (value / self.cap) ** 2, f"1 − (y ÷ {self.cap:g})²"


@dataclass(frozen=True)
class ClampedSwish(Function):
    """g σ(α g) with g = min(x, limit) (OpenAI 2025, model card of gpt-oss; Ramachandran et al. 2017)."""

    chain = ("∂y · σ (1 + α g (1 − σ)) where x ≤ limit, else 0",)
    cost = 6
    alpha: float = 1.702
    limit: float = 7.0

    @property
    def formula(self) -> str:
        return f"g ÷ (1 + e^(−{self.alpha:g} g)), g = min(x, {self.limit:g})"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        kept = backend.xp.minimum(inputs[0], self.limit)
        return backend.xp.multiply(kept, self._share(backend, kept), out=backend.like(kept) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = g σ(α g); ∂x = ∂y σ (1 + α g (1 − σ)) below the limit."""
        kept = backend.xp.minimum(inputs[0], self.limit)
        share = self._share(backend, kept)
        slope = share * (1.0 + self.alpha * kept * (1.0 - share))
        return (gradient * slope * (inputs[0] <= self.limit),)

    def _share(self, backend: Backend, kept: Array) -> Array:
        return 0.5 * (1.0 + backend.xp.tanh(kept * (0.5 * self.alpha)))

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        kept, share = self._at(cell.value)
        items = (
            Value("x", cell.value, cell),
            Value("g", kept, note=f"min(x, {self.limit:g})"),
            Value("σ(α g)", share, note=f"α = {self.alpha:g}"),
        )
        return Working(items, kept * share, f"{spoken(kept)} · {spoken(share)}")

    def _at(self, x: float) -> tuple[float, float]:
        kept = min(x, self.limit)
        return kept, 0.5 * (1.0 + math.tanh(0.5 * self.alpha * kept))

    def slope_at(self, value: float) -> tuple[float, str]:
        kept, share = self._at(value)
        slope = share * (1.0 + self.alpha * kept * (1.0 - share)) if value <= self.limit else 0.0
        return slope, f"at {value:.6g}"


@dataclass(frozen=True)
class ClampedGate(Elementwise):
    """a · (h + 1) with h = hidden kept within ±limit. Inputs: the activated gate a and the hidden values."""

    chain = ("∂y · (h + 1)", "∂y · f(gate) where |hidden| ≤ limit, else 0")
    cost = 4
    limit: float = 7.0

    @property
    def formula(self) -> str:
        return f"f(gate) · (1 + hidden), hidden within ±{self.limit:g}"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        gate, hidden = inputs
        kept = backend.xp.clip(hidden, -self.limit, self.limit) + 1.0
        return backend.xp.multiply(gate, kept, out=backend.like(gate) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a (h + 1)."""
        gate, hidden = inputs
        kept = backend.xp.clip(hidden, -self.limit, self.limit)
        return gradient * (kept + 1.0), gradient * gate * (kept == hidden)

    def explain(self, index: Index, *inputs: Source) -> Working:
        gate, hidden = (source.operand(*index) for source in inputs)
        kept = self._kept(hidden.value)
        items = (
            Value("f(gate)", gate.value, gate),
            Value("hidden", hidden.value, hidden),
            Value("h", kept, note=f"within ±{self.limit:g}"),
            Value("· (h + 1)", kept + 1.0),
        )
        return Working(items, gate.value * (kept + 1.0), f"{spoken(gate.value)} · ({spoken(kept)} + 1)")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        gate, hidden = (source.operand(*index) for source in inputs)
        kept = self._kept(hidden.value)
        cell = gradient.operand(*index)
        if toward == 0:
            return passed_on(cell, kept + 1.0, "· (h + 1)", f"hidden within ±{self.limit:g}", hidden)
        inside = kept == hidden.value
        return passed_on(cell, gate.value * inside, "· f(gate)", "" if inside else "beyond the limit: 0", gate)

    def _kept(self, hidden: float) -> float:
        return max(-self.limit, min(self.limit, hidden))
