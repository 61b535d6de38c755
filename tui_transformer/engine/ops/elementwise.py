"""Ops that make every cell of the result from the same cell of several inputs: sums, factors, gates, dropout."""

from __future__ import annotations

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working, added
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import Gradients, Op, by_rows, passed_on
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Add(Op):
    """a + b (+ c …), elementwise."""

    overwrites = True
    undone_from = ()
    chain = ("∂y",)
    formula: str = "x + sublayer(x)"

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
        items = tuple(operand.called("+" if i else "") for i, operand in enumerate(operands))
        return Working(items, sum(operand.value for operand in operands))

    def flops(self, *inputs: Axes) -> int:
        return super().flops(*inputs) * (len(inputs) - 1)


@dataclass(frozen=True)
class Subtract(Op):
    """a − b, elementwise; b may be a vector, which is taken from every row. `formula` says what they are."""

    undone_from = (1,)
    along = ((-3, -2, -1),)
    chain = ("∂y", "−∂y")
    formula: str = "a − b"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.subtract(inputs[0], inputs[1])

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a − b; of a vector b the sum over the rows."""
        rows = tuple(range(gradient.ndim - inputs[1].ndim))
        return gradient, -(gradient.sum(axis=rows) if rows else gradient)

    def explain(self, index: Index, *inputs: Source) -> Working:
        first, second = inputs[0].operand(*index), inputs[1].operand(*index[-len(inputs[1].shape) :])
        items = first.called(""), second.called("−")
        return Working(items, first.value - second.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 0:
            return passed_on(gradient.operand(*index))
        if len(index) == len(gradient.shape):
            return passed_on(gradient.operand(*index), -1.0, "· −1")
        total = added("Σ ∂y over the rows", gradient.factor(None, index[-1]))
        return Working((total, Value("· −1", -1.0)), -total.total)


@dataclass(frozen=True)
class Scale(Op):
    """x · factor; `expression` says what the factor is, as "÷ √d_k", and `of` what x is."""

    overwrites = True
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
        result = backend.like(inputs[0]) if out is None else out
        by_rows(backend, lambda x, y: backend.xp.multiply(x, self.factor, out=y), inputs[0], result, columns=1)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x · factor."""
        return (backend.xp.multiply(gradient, self.factor, out=backend.like(gradient)),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        if self.expression.startswith("÷") and self.factor:
            by = Value(self.expression, 1.0 / self.factor)
        elif self.expression.startswith("·"):
            by = Value(self.expression, self.factor)
        else:
            by = Value("· factor", self.factor, note=self.expression)
        return Working((cell.called(self.of), by), cell.value * self.factor)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        return passed_on(gradient.operand(*index), self.factor, "· factor", self.expression)


@dataclass(frozen=True)
class Gate(Op):
    """a · b, elementwise (Shazeer 2020). Inputs: the activated gate and the hidden values."""

    overwrites = True
    definition = "f(gate) · hidden"
    chain = ("∂y · hidden", "∂y · f(gate)")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.multiply(inputs[0], inputs[1], out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a · b."""
        return gradient * inputs[1], gradient * inputs[0]

    def explain(self, index: Index, *inputs: Source) -> Working:
        gate, hidden = (source.operand(*index) for source in inputs)
        return Working((gate.called("f(gate)"), hidden.called("· hidden")), gate.value * hidden.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        other, symbol = inputs[1 - toward].operand(*index), ("· hidden", "· f(gate)")[toward]
        return passed_on(gradient.operand(*index), other.value, symbol, read=other)


@dataclass(frozen=True)
class Dropout(Op):
    """x ÷ (1 − p) where kept, else 0: the expected value is x (Srivastava et al. 2014, §10: inverted dropout).

    Inputs: x, and which of its cells are kept. p is the share that is dropped. Only programs for training have it.
    """

    overwrites = True
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
        items = (cell.called("x"), kept.called("kept"), Value("1 ÷ (1 − p)", self._factor, note=f"p = {self.rate:g}"))
        left = f"{spoken(cell.value)} · {spoken(kept.value)} · {spoken(self._factor)}"
        return Working(items, cell.value * kept.value * self._factor, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        kept = inputs[1].operand(*index)
        return passed_on(gradient.operand(*index), kept.value * self._factor, "kept ÷ (1 − p)", read=kept)


@dataclass(frozen=True)
class ClampedGate(Op):
    """a · (h + 1) with h = hidden kept within ±limit. Inputs: the activated gate a and the hidden values."""

    overwrites = True
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
            gate.called("f(gate)"),
            hidden.called("hidden"),
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
        return max(min(hidden, self.limit), -self.limit)
