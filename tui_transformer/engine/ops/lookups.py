"""Values that are looked up or given, and heads and rows of a cache that are put beside each other."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.axis import Axes, Axis
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working, added
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.base import Gradients, Op, flat, passed_on, single
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class Embed(Op):
    """Rows of a table by ID, times `scale` (√d_model in Vaswani et al. 2017, §3.4; 1 for none).

    Inputs: IDs (n), table (v × d). Result: n × d. IDs must lie inside the table; that is checked where they enter.
    The vector of the ID `silent` is 0, whatever its row holds: that of unknown words, as some tutorials have it.
    """

    is_lookup = True
    undone_from = (0, 1)
    along = ((0,), (None, 1))
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
        if backend.device == "cpu":  # the rows of an ID together: much faster than one at a time
            order = np.argsort(ids.reshape(-1), kind="stable")
            sorted_ids = ids.reshape(-1)[order]
            starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
            result[sorted_ids[starts]] = np.add.reduceat(flat(rows)[order], starts, axis=0)
        else:
            backend.xp.add.at(result, ids, rows)
        return None, result

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        ids, table = inputs
        token = ids.operand(row)
        cell = table.operand(int(token.value), column)
        scale = () if self.scale == 1.0 else (Value("scale", self.scale, note="√d_model"),)
        items = (token.called(self.ids), cell.called(f"E[{self.ids}]"), *scale)
        left = spoken(cell.value) + (f" · {spoken(self.scale)}" if scale else "")
        if int(token.value) == self.silent:
            return Working((*items, Value("known", 0.0, note="an unknown word: its vector is 0")), 0.0, f"{left} · 0")
        return Working(items, cell.value * self.scale, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        token, column = index
        ids = inputs[0].read((range(inputs[0].shape[0]),))
        rows = np.flatnonzero((ids == token) & (ids != self.silent))
        total = added("Σ ∂y of its tokens", gradient.factor(None, column).some(rows))
        if self.scale == 1.0:
            return single(total)
        return Working((total, Value("· scale", self.scale, note="√d_model")), total.total * self.scale)

    def flops(self, *inputs: Axes) -> int:
        return 0 if self.scale == 1.0 else super().flops(*inputs)


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
    """The weight as it is, with a batch axis: a copy, which the step after it may write over."""

    definition = "given"
    chain = ("∂y",)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return inputs[0][None].copy()

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = w."""
        return (gradient.sum(axis=0),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        cell = inputs[0].operand(*index)
        return Working((cell.called("given"),), cell.value)


@dataclass(frozen=True)
class MergeHeads(Op):
    """h × n × d_k → n × h·d_k: column j is column j mod d_k of head j ÷ d_k."""

    definition = "heads side by side"
    whole_rows = True
    cost = 0
    undone_from = (0,)
    along = ((None, 0, None),)
    chain = ("∂y of the head's columns",)

    def axes(self, *inputs: Axes) -> Axes:
        heads, tokens, width = inputs[0]
        return tokens, Axis("heads · width", heads.size * width.size)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A view where the heads already lie side by side in memory."""
        batch, _, rows, _ = inputs[0].shape
        return inputs[0].swapaxes(1, 2).reshape(batch, rows, -1)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = concat(heads)."""
        batch, heads, rows, width = inputs[0].shape
        return (gradient.reshape(batch, rows, heads, width).swapaxes(1, 2),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        head, offset = divmod(column, inputs[0].shape[-1])
        cell = inputs[0].operand(head, row, offset)
        note = f"column {column} is column {offset} of head {head}"
        return Working((cell.called("context", note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        head, row, offset = index
        return passed_on(gradient.operand(row, head * inputs[0].shape[-1] + offset))


@dataclass(frozen=True)
class Extend(Op):
    """A cache of keys or values, one step later (Pope et al. 2022, §3.1).

    Inputs: kept rows (g × p × d_k), new rows (g × n × d_k). Result: g × (p + n) × d_k.
    """

    definition = "kept rows, then new rows"
    cost = 0
    whole_axes = (1, 2)
    along = ((0, None, None),)
    chain = ("∂y of the kept rows", "∂y of the new rows")

    def axes(self, *inputs: Axes) -> Axes:
        (heads, kept, width), (_, new, _) = inputs
        return heads, replace(kept, size=kept.size + new.size), width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A copy of both: the kept rows stay as they are, so one can go back to them."""
        kept, new = inputs
        past, rows = kept.shape[2], new.shape[2]
        out = backend.empty((*new.shape[:2], past + rows, new.shape[3]), new.dtype)
        out[:, :, :past], out[:, :, past:] = kept, new
        return out

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = [kept; new]."""
        past = inputs[0].shape[2]
        return gradient[:, :, :past], gradient[:, :, past:]

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        past = inputs[0].shape[1]
        kept = row < past
        cell = inputs[0].operand(*index) if kept else inputs[1].operand(head, row - past, column)
        note = "kept from an earlier token" if kept else "computed for this token"
        return Working((cell.called("row", note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        head, row, column = index
        return passed_on(gradient.operand(head, row + toward * inputs[0].shape[1], column))
