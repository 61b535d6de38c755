"""The vector of a sentence: its rows pooled, several vectors side by side, and the same direction with the length 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Sum, Value, Working
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, single
from tui_transformer.records import dataclass, replace

Shares = Callable[[Any, Array, Array], Array]
"""The share of every row, B × n × 1 or × d, of the array module, x (B × n × d) and what is visible (B × n, floats)."""


def _first(xp: Any, _: Array, visible: Array) -> Array:
    return (xp.arange(visible.shape[1]) == 0).astype(visible.dtype)[None, :, None] + xp.zeros_like(visible)[..., None]


def _last(xp: Any, _: Array, visible: Array) -> Array:
    last = visible.shape[1] - 1 - xp.argmax(visible[:, ::-1], axis=1)
    return (xp.arange(visible.shape[1])[None] == last[:, None]).astype(visible.dtype)[..., None]


def _mean(xp: Any, _: Array, weights: Array) -> Array:
    return (weights / xp.maximum(weights.sum(axis=1, keepdims=True), 1.0))[..., None]


def _mean_sqrt(xp: Any, _: Array, visible: Array) -> Array:
    return (visible / xp.sqrt(xp.maximum(visible.sum(axis=1, keepdims=True), 1.0)))[..., None]


def _weighted(xp: Any, x: Array, visible: Array) -> Array:
    return _mean(xp, x, visible * xp.arange(1, visible.shape[1] + 1).astype(visible.dtype)[None])


def _max(xp: Any, x: Array, visible: Array) -> Array:
    hidden = xp.where(visible[..., None] > 0, x, -xp.inf)
    return (xp.arange(x.shape[1])[None, :, None] == xp.argmax(hidden, axis=1)[:, None]).astype(x.dtype)


SHARES: Mapping[str, tuple[str, Shares]] = {
    "first": ("x[first token]", _first),
    "last": ("x[last token]", _last),
    "mean": ("Σ x ÷ n", _mean),
    "mean over √n": ("Σ x ÷ √n", _mean_sqrt),
    "weighted mean": ("Σ i x ÷ Σ i", _weighted),
    "max": ("max x", _max),
}
"""How the rows of the tokens are put together, formula and shares: the first or last token's row alone, their mean,
their sum ÷ √n, a mean in which later tokens count more (token i counts i + 1 times), or of every column the largest."""


@dataclass(frozen=True)
class Pool(Op):
    """Σ share · x over the tokens (Reimers & Gurevych 2019, "Sentence-BERT", §3).

    Inputs: x (n × d), visible tokens (n). Result: d. The kind is a key of `SHARES`.
    """

    along = ((None, 0), (None,))
    chain = ("∂y · share",)
    kind: str = "mean"

    @property
    def formula(self) -> str:
        return SHARES[self.kind][0]

    def axes(self, *inputs: Axes) -> Axes:
        return (inputs[0][-1],)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return (inputs[0] * self.shares(backend.xp, *inputs)).sum(axis=1)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = Σ share · x; of the largest the share is 1, of the others 0."""
        return gradient[:, None] * self.shares(backend.xp, *inputs), None

    def shares(self, xp: Any, x: Array, visible: Array) -> Array:
        """The share of every row, B × n × 1 or × d."""
        return SHARES[self.kind][1](xp, x, visible.astype(x.dtype))

    def explain(self, index: Index, *inputs: Source) -> Working:
        (column,) = index
        cells, shares = inputs[0].factor(None, column), self._column(column, *inputs)
        seen = inputs[1].factor(None)
        return single(Sum("Σ share · x", (cells, seen), cells.values * shares, "share · x"))

    def _column(self, column: int, x: Source, visible: Source) -> Any:
        rows = x.factor(None, column).values[None, :, None]
        shares = self.shares(np, rows, visible.read((range(visible.shape[0]),))[None])
        return shares[0, :, 0]

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        row, column = index
        share = float(self._column(column, *inputs)[row])
        return passed_on(gradient.operand(column), share, "· share", f"token {row}")

    def flops(self, *inputs: Axes) -> int:
        return 2 * inputs[0][0].size * super().flops(*inputs)


@dataclass(frozen=True)
class Concat(Op):
    """Vectors of one width (… × d each), one behind the other on the last axis: … × k·d."""

    definition = "one behind the other"
    whole_rows = True
    cost = 0
    undone_from = (0,)
    along = ((0, None),)
    chain = ("∂y of its columns",)

    def axes(self, *inputs: Axes) -> Axes:
        *first, last = inputs[0]
        return (*first, replace(last, size=sum(axes[-1].size for axes in inputs)))

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.concatenate(inputs, axis=-1)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = [a; b; …]."""
        width, count = inputs[0].shape[-1], len(inputs)
        return tuple(gradient[..., place * width : (place + 1) * width] for place in range(count))

    def explain(self, index: Index, *inputs: Source) -> Working:
        place, column = divmod(index[-1], inputs[0].shape[-1])
        cell = inputs[place].operand(*index[:-1], column)
        note = f"column {index[-1]} is column {column} of the vector {place}"
        return Working((cell.called("x", note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        width = inputs[0].shape[-1]
        return passed_on(gradient.operand(*index[:-1], toward * width + index[-1]))


@dataclass(frozen=True)
class UnitLength(Op):
    """x ÷ max(‖x‖, ε) over the last axis: products of such vectors are cosines. Input: x (… × d).

    Attributes:
        least: ε; a vector that is shorter is divided by it.
    """

    definition = "x ÷ ‖x‖"
    whole_rows = True
    cost = 3
    chain = ("(∂y − y Σ ∂y y) ÷ ‖x‖",)
    least: float = 1e-12

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        (x,) = inputs
        return x / self._divisor(backend, x)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x / ‖x‖; of a vector that is shorter than ε, x / ε."""
        divisor = self._divisor(backend, inputs[0])
        along = (gradient * output).sum(axis=-1, keepdims=True) * (divisor > self.least)
        return ((gradient - output * along) / divisor,)

    def _divisor(self, backend: Backend, x: Array) -> Array:
        squares = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        return backend.xp.maximum(backend.xp.sqrt(squares), self.least)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row = inputs[0].factor(*index[:-1], None)
        cell, squares = inputs[0].operand(*index), Sum("Σ x²", (row,), row.values**2, "x²")
        length = max(float(np.sqrt(squares.total)), self.least)
        items = (cell.called("x"), squares, Value("÷ ‖x‖", length, note="√ Σ x²"))
        return Working(items, cell.value / length, equation=f"{spoken(cell.value)} ÷ {spoken(length)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        line = (*index[:-1], None)
        row, made = gradient.factor(*line), output.factor(*line)
        length = max(float(np.sqrt((inputs[0].line(*line) ** 2).sum())), self.least)
        along = Sum("Σ ∂y y", (row, made), row.values * made.values * (length > self.least), "∂y y")
        cell, own = row.operand(index[-1]), made.operand(index[-1])
        items = (cell.called("∂y"), own.called("y"), along, Value("÷ ‖x‖", length, note="√ Σ x²"))
        return Working(items, (cell.value - own.value * along.total) / length)
