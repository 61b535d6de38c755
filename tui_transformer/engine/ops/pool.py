"""Pool: one vector for a whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Sum, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, single

Shares = Callable[[Any, Array, Array], Array]
"""The share of every row, B × n × 1 or × d, of the array module, x (B × n × d) and what is visible (B × n, floats)."""


def _first(xp: Any, _: Array, visible: Array) -> Array:
    return (xp.arange(visible.shape[1]) == 0).astype(visible.dtype)[None, :, None] + xp.zeros_like(visible)[..., None]


def _last(xp: Any, _: Array, visible: Array) -> Array:
    last = visible.shape[1] - 1 - xp.argmax(visible[:, ::-1], axis=1)
    return (xp.arange(visible.shape[1])[None] == last[:, None]).astype(visible.dtype)[..., None]


def _mean(xp: Any, _: Array, visible: Array) -> Array:
    return (visible / xp.maximum(visible.sum(axis=1, keepdims=True), 1.0))[..., None]


def _mean_sqrt(xp: Any, _: Array, visible: Array) -> Array:
    return (visible / xp.sqrt(xp.maximum(visible.sum(axis=1, keepdims=True), 1.0)))[..., None]


def _weighted(xp: Any, _: Array, visible: Array) -> Array:
    weighted = visible * xp.arange(1, visible.shape[1] + 1).astype(visible.dtype)[None]
    return (weighted / xp.maximum(weighted.sum(axis=1, keepdims=True), 1.0))[..., None]


def _max(xp: Any, x: Array, visible: Array) -> Array:
    hidden = xp.where(visible[..., None] > 0, x, -xp.inf)
    return (xp.arange(x.shape[1])[None, :, None] == xp.argmax(hidden, axis=1)[:, None]).astype(x.dtype)


SHARES: Mapping[str, Shares] = {
    "first": _first,
    "last": _last,
    "mean": _mean,
    "mean over √n": _mean_sqrt,
    "weighted mean": _weighted,
    "max": _max,
}
"""How the rows of the tokens are put together: the first or last token's row alone, their mean, their sum ÷ √n, a mean
in which later tokens count more (token i counts i + 1 times), or of every column the largest."""

FORMULAS: Mapping[str, str] = {
    "first": "x[first token]",
    "last": "x[last token]",
    "mean": "Σ x ÷ n",
    "mean over √n": "Σ x ÷ √n",
    "weighted mean": "Σ i x ÷ Σ i",
    "max": "max x",
}


@dataclass(frozen=True)
class Pool(Op):
    """Σ share · x over the tokens (Reimers & Gurevych 2019, "Sentence-BERT", §3).

    Inputs: x (n × d), visible tokens (n). Result: d.

    Attributes:
        how: A key of `SHARES`.
    """

    chain = ("∂y · share",)
    how: str = "mean"

    @property
    def formula(self) -> str:
        return FORMULAS[self.how]

    def axes(self, *inputs: Axes) -> Axes:
        return (inputs[0][-1],)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return (inputs[0] * self._shares(backend.xp, *inputs)).sum(axis=1)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = Σ share · x; of the largest the share is 1, of the others 0."""
        return gradient[:, None] * self._shares(backend.xp, *inputs), None

    def _shares(self, xp: Any, x: Array, visible: Array) -> Array:
        return SHARES[self.how](xp, x, visible.astype(x.dtype))

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        rows = range(inputs[0][0])
        return (rows, region[0]), (rows,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        (column,) = index
        cells, shares = inputs[0].factor(None, column), self._column(column, *inputs)
        seen = inputs[1].factor(None)
        return single(Sum("Σ share · x", (cells, seen), cells.values * shares, "share · x"))

    def _column(self, column: int, x: Source, visible: Source) -> Any:
        rows = x.factor(None, column).values[None, :, None]
        shares = self._shares(np, rows, visible.read((range(visible.shape[0]),))[None])
        return shares[0, :, 0]

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        if toward:
            return None
        row, column = index
        share = float(self._column(column, *inputs)[row])
        return passed_on(gradient.operand(column), share, "· share", f"token {row}")

    def flops(self, *inputs: Axes) -> int:
        return 2 * inputs[0][0].size * super().flops(*inputs)
