"""Embed: the row of a table for every ID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.explanation import Factor, Index, Source, Value, Working, added
from tui_transformer.engine.ops.base import Gradients, Op, flat, single
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Embed(Op):
    """Rows of a table by ID, times `scale` (√d_model in Vaswani et al. 2017, §3.4; 1 for none).

    Inputs: IDs (n), table (v × d). Result: n × d. IDs must lie inside the table; that is checked where they enter.
    """

    is_lookup: ClassVar[bool] = True
    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("none", "Σ ∂y of the rows with this ID · scale")
    scale: float = 1.0
    ids: str = "id"

    @property
    def formula(self) -> str:
        """Row lookup, scaled or not."""
        return f"E[{self.ids}]" if self.scale == 1.0 else f"E[{self.ids}] · {self.scale:.6g}"

    def axes(self, *inputs: Axes) -> Axes:
        """Tokens × width of the table."""
        (tokens,), (_, width) = inputs
        return tokens, width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """E[id] · scale."""
        ids, table = inputs
        rows = backend.xp.take(table, ids, axis=0, out=out)
        return rows if self.scale == 1.0 else backend.xp.multiply(rows, self.scale, out=rows)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = E[id] · scale; a row that is used several times collects all its gradients."""
        ids, table = inputs
        rows = gradient if self.scale == 1.0 else gradient * self.scale
        result = backend.xp.zeros_like(table)
        if backend.device == "cpu":
            _add_rows(result, ids.reshape(-1), flat(rows))
        else:
            backend.xp.add.at(result, ids, rows)
        return None, result

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """IDs of the rows; of the table, any row may be asked for, but only the columns."""
        rows, columns = region
        return (rows,), (range(inputs[1][0]), columns)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The ID, the table's cell, the scale."""
        row, column = index
        ids, table = sources
        token = ids.operand(row)
        cell = table.operand(int(token.value), column)
        scale = () if self.scale == 1.0 else (Value("scale", self.scale, note="√d_model"),)
        items = (Value(self.ids, token.value, token), Value(f"E[{self.ids}]", cell.value, cell), *scale)
        left = spoken(cell.value) + (f" · {spoken(self.scale)}" if scale else "")
        return Working(items, cell.value * self.scale, left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The sum over the tokens that have the row's ID, times the scale."""
        token, column = index
        rows = np.flatnonzero(sources[0].read((range(sources[0].shape[0]),)) == token)
        cells = gradient.line(None, column)[rows]
        total = added("Σ ∂y of its tokens", Factor(gradient.name, lambda term: (int(rows[term]), column), cells))
        if self.scale == 1.0:
            return single(total)
        return Working((total, Value("· scale", self.scale, note="√d_model")), total.total * self.scale)

    def flops(self, *inputs: Axes) -> int:
        """A lookup computes nothing, unless it scales."""
        return 0 if self.scale == 1.0 else super().flops(*inputs)


def _add_rows(table: Host, ids: Host, rows: Host) -> None:
    """Add each row to the table's row of its ID, those of an ID together: much faster than one at a time."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    table[ids[starts]] = np.add.reduceat(rows[order], starts, axis=0)
