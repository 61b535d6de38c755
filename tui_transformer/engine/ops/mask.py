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

    Causal with a `window` W, a query sees W keys, its own and those right before it (Beltagy et al. 2020, §3.1; Jiang
    et al. 2023, §2): keys W or more places before the query have −∞ too. Without `causal`, keys W or more places on
    either side have.

    Inputs: scores (h × n × m), places of the queries (n), places of the keys (m), visible keys (m).
    """

    undone_from: ClassVar[tuple[int, ...]] = (1, 2, 3)
    chain: ClassVar[tuple[str, ...]] = ("∂y where visible, else 0",)
    overwrites: ClassVar[bool] = True
    causal: bool = False
    window: int | None = None

    @property
    def formula(self) -> str:
        """Which masks there are."""
        if self.window is not None and not self.causal:
            return f"score; −∞ {self.window} or more tokens away, on padding"
        if self.window is not None:
            return f"score; −∞ outside the last {self.window} keys, on padding"
        return "score; −∞ after the query, on padding" if self.causal else "score; −∞ on padding"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The scores, at most −∞ where they are hidden and at most ∞ elsewhere: the same for all heads."""
        scores, hidden = inputs[0], self.hidden(*inputs[1:])
        limit = backend.empty(hidden.shape, scores.dtype)
        limit[...] = math.inf
        backend.xp.copyto(limit, -math.inf, where=hidden)
        return backend.xp.minimum(scores, limit, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s where visible, −∞ elsewhere."""
        visible = ~self.hidden(*inputs[1:])
        return backend.xp.multiply(gradient, visible, out=backend.like(gradient)), None, None, None

    def hidden(self, queries: Array, keys: Array, visible: Array) -> Array:
        """B × 1 × n (or 1) × m, true where a query may not look."""
        hidden = ~visible[:, None, None, :]
        keys, queries = keys[:, None, None, :], queries[:, None, :, None]
        if self.causal:
            hidden = hidden | (keys > queries)
        if self.window is None:
            return hidden
        hidden = hidden | (keys <= queries - self.window)
        return hidden if self.causal else hidden | (keys >= queries + self.window)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same scores, and the places of its queries and keys."""
        _, rows, columns = region
        return region, (rows,), (columns,), (columns,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, and what hides it."""
        _, row, column = index
        cell, reasons = sources[0].operand(*index), self._reasons(row, column, *sources[1:])
        masks = [Value("+ mask", -math.inf, note=reason) for reason in reasons]
        items = masks or [Value("+ mask", 0.0, note="the query may look here")]
        return Working((Value("score", cell.value, cell), *items), -math.inf if masks else cell.value)

    def _reasons(self, row: int, column: int, queries: Source, keys: Source, visible: Source) -> list[str]:
        """Why a query may not look at a key."""
        distance = queries.cell(row) - keys.cell(column)
        reasons = {
            "the key is padding": not visible.cell(column),
            "the key comes after the query": self.causal and distance < 0,
            f"outside the window of {self.window}": self.window is not None
            and (distance if self.causal else abs(distance)) >= self.window,
        }
        return [reason for reason, holds in reasons.items() if holds]

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient where the query may look, else 0."""
        _, row, column = index
        hidden = bool(self._reasons(row, column, *sources[1:]))
        note = "0: the key is hidden" if hidden else "1: the query may look here"
        return passed_on(gradient.operand(*index), float(not hidden), "· visible", note)
