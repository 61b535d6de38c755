"""Values that are looked up or given: rows of a table, token IDs, weights that are steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.explanation import Factor, Index, Source, Value, Working, added
from tui_transformer.engine.ops.base import Gradients, Op, flat, passed_on, single
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Embed(Op):
    """Rows of a table by ID, times `scale` (√d_model in Vaswani et al. 2017, §3.4; 1 for none).

    Inputs: IDs (n), table (v × d). Result: n × d. IDs must lie inside the table; that is checked where they enter.

    Attributes:
        scale: Factor of every row.
        ids: What an ID is called.
        silent: The ID whose vector is 0, whatever its row holds: that of unknown words, as some tutorials have it.
    """

    is_lookup = True
    undone_from = (0, 1)
    chain = ("none", "Σ ∂y of the rows with this ID · scale")
    scale: float = 1.0
    ids: str = "id"
    silent: int | None = None

    @property
    def formula(self) -> str:
        row = f"E[{self.ids}]" if self.scale == 1.0 else f"E[{self.ids}] · {self.scale:.6g}"
        return row if self.silent is None else f"{row}, 0 where unknown"

    def axes(self, *inputs: Axes) -> Axes:
        (tokens,), (_, width) = inputs
        return tokens, width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        ids, table = inputs
        rows = backend.xp.take(table, ids, axis=0, out=out)
        if self.silent is not None:
            rows[ids == self.silent] = 0.0
        return rows if self.scale == 1.0 else backend.xp.multiply(rows, self.scale, out=rows)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = E[id] · scale; a row that is used several times collects all its gradients."""
        ids, table = inputs
        rows = gradient if self.scale == 1.0 else gradient * self.scale
        if self.silent is not None:
            rows = backend.xp.where((ids == self.silent)[..., None], 0.0, rows)
        result = backend.xp.zeros_like(table)
        if backend.device == "cpu":
            _add_rows(result, ids.reshape(-1), flat(rows))
        else:
            backend.xp.add.at(result, ids, rows)
        return None, result

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        rows, columns = region
        return (rows,), (range(inputs[1][0]), columns)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        ids, table = inputs
        token = ids.operand(row)
        cell = table.operand(int(token.value), column)
        scale = () if self.scale == 1.0 else (Value("scale", self.scale, note="√d_model"),)
        items = (Value(self.ids, token.value, token), Value(f"E[{self.ids}]", cell.value, cell), *scale)
        left = spoken(cell.value) + (f" · {spoken(self.scale)}" if scale else "")
        if int(token.value) == self.silent:
            return Working((*items, Value("known", 0.0, note="an unknown word: its vector is 0")), 0.0, f"{left} · 0")
        return Working(items, cell.value * self.scale, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        token, column = index
        ids = inputs[0].read((range(inputs[0].shape[0]),))
        rows = np.flatnonzero((ids == token) & (ids != self.silent))
        cells = gradient.line(None, column)[rows]
        total = added("Σ ∂y of its tokens", Factor(gradient.name, lambda term: (int(rows[term]), column), cells))
        if self.scale == 1.0:
            return single(total)
        return Working((total, Value("· scale", self.scale, note="√d_model")), total.total * self.scale)

    def flops(self, *inputs: Axes) -> int:
        return 0 if self.scale == 1.0 else super().flops(*inputs)


def _add_rows(table: Host, ids: Host, rows: Host) -> None:
    """Add each row to the table's row of its ID, those of an ID together: much faster than one at a time."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    table[ids[starts]] = np.add.reduceat(rows[order], starts, axis=0)


@dataclass(frozen=True)
class Given(Op):
    """The input as it is."""

    definition = "ID of each token in the vocabulary"
    integer = True
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return inputs[0]

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        return (None,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        value = inputs[0].cell(*index)
        return Working((Value("id", value, note="from the tokenizer"),), value)


@dataclass(frozen=True)
class Parameter(Op):
    """The weight as it is, with a batch axis."""

    definition = "given"
    chain = ("∂y",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return inputs[0][None]

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = w."""
        return (gradient.sum(axis=0),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        return Working((Value("given", cell.value, cell),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        return passed_on(gradient.operand(*index))
