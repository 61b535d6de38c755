"""Mask: −∞ where a query may not look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class Mask(Op):
    """Scores, with −∞ for padding keys and, where `causal`, for keys after the query (Vaswani et al. 2017, §3.2.3).

    Inputs: scores (h × n × m), places of the queries (n), places of the keys (m), visible keys (m).
    """

    undone_from: ClassVar[tuple[int, ...]] = (1, 2, 3)
    chain: ClassVar[tuple[str, ...]] = ("∂y where visible, else 0",)
    overwrites: ClassVar[bool] = True
    causal: bool = False

    @property
    def formula(self) -> str:
        """Which masks there are."""
        return "−∞ after the query and on padding" if self.causal else "−∞ on padding"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The scores, at most −∞ where they are hidden and at most ∞ elsewhere: the same for all heads."""
        scores, hidden = inputs[0], self._hidden(*inputs[1:])
        limit = backend.empty(hidden.shape, scores.dtype)
        limit[...] = math.inf
        backend.xp.copyto(limit, -math.inf, where=hidden)
        return backend.xp.minimum(scores, limit, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s where visible, −∞ elsewhere."""
        visible = ~self._hidden(*inputs[1:])
        return backend.xp.multiply(gradient, visible, out=backend.like(gradient)), None, None, None

    def _hidden(self, queries: Array, keys: Array, visible: Array) -> Array:
        """B × 1 × n (or 1) × m, true where a query may not look."""
        hidden = ~visible[:, None, None, :]
        return hidden | (keys[:, None, None, :] > queries[:, None, :, None]) if self.causal else hidden

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same scores, and the places of its queries and keys."""
        _, rows, columns = region
        return region, (rows,), (columns,), (columns,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, and what hides it."""
        _, row, column = index
        scores, queries, keys, visible = sources
        cell = scores.operand(*index)
        padding = not visible.cell(column)
        later = self.causal and keys.cell(column) > queries.cell(row)
        items = [Value("score", cell.value, cell)]
        if padding:
            items.append(Value("mask", -math.inf, note="the key is padding"))
        if later:
            items.append(Value("mask", -math.inf, note="the key comes after the query"))
        if not padding and not later:
            items.append(Value("mask", 0.0, note="the query may look here"))
        return Working(tuple(items), -math.inf if padding or later else cell.value)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient where the query may look, else 0."""
        _, row, column = index
        _, queries, keys, visible = sources
        hidden = not visible.cell(column) or (self.causal and keys.cell(column) > queries.cell(row))
        note = "0: the key is hidden" if hidden else "1: the query may look here"
        return passed_on(gradient.operand(*index), float(not hidden), "· visible", note)
