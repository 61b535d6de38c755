"""Attention: how well every query fits every key, which keys are hidden, and the values weighted by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Sum, Value, Working, product
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, by_rows, flat, passed_on, single
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class OfHeads(Op):
    """A product of the heads of two inputs: of rows with rows, or with columns.

    Class attributes:
        by_rows: The columns of the result are made from the rows of the second input, not from its columns.
        sums: The titles of the sums of a cell, and of those of the gradients of both inputs.

    Attributes:
        share: Query heads that read one key and value head; 1 unless these are grouped (Ainslie et al. 2023).
    """

    undone_from = (0, 1)
    by_rows: ClassVar[bool]
    sums: ClassVar[tuple[str, str, str]]
    share: int = 1

    def head_read(self, head: int, groups: int) -> int:
        """Which of the heads of the second input, of so many, a query head reads."""
        del groups
        return head // self.share

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: Y = A Bᵀ or A B; ∂A = ∂Y B or ∂Y Bᵀ, ∂B = ∂Yᵀ A or Aᵀ ∂Y."""
        first, second = inputs
        matmul, groups = backend.xp.matmul, second.shape[1]
        across = second if self.by_rows else second.swapaxes(-1, -2)
        left, right = (gradient, first) if self.by_rows else (first, gradient)
        if first.shape[1] == groups:
            room = concat_like(backend, first) if self.by_rows else backend.like(first)
            toward_first = matmul(gradient, across, out=room)
            return toward_first, matmul(left.swapaxes(-1, -2), right, out=concat_like(backend, second))
        left, right = grouped(left, groups), grouped(right, groups)
        toward_second = matmul(left.swapaxes(-1, -2), right).sum(axis=2)
        return ungrouped(matmul(grouped(gradient, groups), across[:, :, None])), toward_second

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """All query heads of every group that the region touches, unless it is of a single head."""
        heads = region[0]
        if self.share == 1 or len(heads) == 1:
            return region
        start, stop = heads.start // self.share, -(-heads.stop // self.share)
        return range(start * self.share, stop * self.share), *region[1:]

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        heads, rows, columns = region
        inner = range(inputs[0][-1])
        read = range(heads.start // self.share, (heads.stop - 1) // self.share + 1)
        return (heads, rows, inner), (read, columns, inner) if self.by_rows else (read, inner, columns)

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        first, second = inputs
        line = (column, None) if self.by_rows else (None, column)
        read = second.factor(self.head_read(head, second.shape[0]), *line)
        return single(product(self.sums[0], first.factor(head, row, None), read))

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        first, second = inputs
        head, row, column = index
        if toward == 0:
            line = (None, column) if self.by_rows else (column, None)
            shared = second.factor(head // self.share, *line)
            return single(product(self.sums[1], gradient.factor(head, row, None), shared))
        left, right = (gradient, first) if self.by_rows else (first, gradient)
        heads = range(head * self.share, (head + 1) * self.share)
        return single(product(self.sums[2], left.factor(heads, None, row), right.factor(heads, None, column)))

    def flops(self, *inputs: Axes) -> int:
        """Two a product term."""
        return 2 * super().flops(*inputs) * inputs[0][-1].size


@dataclass(frozen=True)
class Scores(OfHeads):
    """Q Kᵀ in every head (Vaswani et al. 2017, §3.2.1). Inputs: Q (h × n × d_k), K (g × m × d_k). Result: h × n × m."""

    definition = "Q Kᵀ"
    chain = ("∂y K", "∂yᵀ Q")
    by_rows = True
    sums = ("Σ q · k", "Σ ∂y · k", "Σ ∂y · q")

    def axes(self, *inputs: Axes) -> Axes:
        (head, queries, _), (_, keys, _) = inputs
        return head, queries.named("query"), keys.named("key")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        query, key = inputs
        out = backend.empty((*query.shape[:-1], key.shape[-2]), query.dtype)
        if query.shape[1] == key.shape[1]:
            return backend.xp.matmul(query, key.swapaxes(-1, -2), out=out)
        groups = key.shape[1]
        backend.xp.matmul(grouped(query, groups), key[:, :, None].swapaxes(-1, -2), out=grouped(out, groups))
        return out


@dataclass(frozen=True)
class Context(OfHeads):
    """weights · V in every head. Inputs: weights (h × n × m), V (g × m × d_k). Result: h × n × d_k."""

    definition = "weights · V"
    chain = ("∂y Vᵀ", "weightsᵀ ∂y")
    by_rows = False
    sums = ("Σ weight · v", "Σ ∂y · v", "Σ weight · ∂y")

    def axes(self, *inputs: Axes) -> Axes:
        (head, queries, _), (_, _, width) = inputs
        return head, queries.named("token"), width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Written with the heads of a token side by side in memory, so that joining them copies nothing."""
        weights, value = inputs
        batch, heads, rows, _ = weights.shape
        merged = backend.empty((batch, rows, heads, value.shape[-1]), weights.dtype)
        result = merged.swapaxes(1, 2)
        if heads == value.shape[1]:
            backend.xp.matmul(weights, value, out=result)
        else:
            result[...] = ungrouped(backend.xp.matmul(grouped(weights, value.shape[1]), value[:, :, None]))
        return result


@dataclass(frozen=True)
class Mask(Op):
    """Scores, with −∞ for padding keys and, where `causal`, for keys after the query (Vaswani et al. 2017, §3.2.3).

    Causal with a `window` W, a query sees W keys, its own and those right before it (Beltagy et al. 2020, §3.1; Jiang
    et al. 2023, §2): keys W or more places before the query have −∞ too. Without `causal`, keys W or more places on
    either side have.

    Inputs: scores (h × n × m), places of the queries (n), places of the keys (m), visible keys (m).
    """

    undone_from = (1, 2, 3)
    along = ((0, 1, 2), (1,), (2,))
    chain = ("∂y where visible, else 0",)
    overwrites = True
    causal: bool = False
    window: int | None = None

    @property
    def formula(self) -> str:
        if self.window is not None and not self.causal:
            return f"score; −∞ {self.window} or more tokens away, on padding"
        if self.window is not None:
            return f"score; −∞ outside the last {self.window} keys, on padding"
        return "score; −∞ after the query, on padding" if self.causal else "score; −∞ on padding"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The scores, at most −∞ where they are hidden and at most ∞ elsewhere: the same for all heads."""
        if backend.kernels is not None and type(self) is Mask:  # a mask with a mistake hides otherwise
            result = backend.like(inputs[0]) if out is None else out
            return backend.kernels.mask(inputs, self.window, result, causal=self.causal)
        scores, hidden = inputs[0], self.hidden(*inputs[1:])
        if backend.device == "cpu" and not hidden.any():  # the same memory says it, and nobody else writes there
            same = scores.view()
            same.flags.writeable = out is not None
            return same
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

    def explain(self, index: Index, *inputs: Source) -> Working:
        _, row, column = index
        cell, reasons = inputs[0].operand(*index), self._reasons(row, column, *inputs[1:])
        masks = [Value("+ mask", -math.inf, note=reason) for reason in reasons]
        items = masks or [Value("+ mask", 0.0, note="the query may look here")]
        return Working((cell.called("score"), *items), -math.inf if masks else cell.value)

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
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        _, row, column = index
        hidden = bool(self._reasons(row, column, *inputs[1:]))
        note = "0: the key is hidden" if hidden else "1: the query may look here"
        return passed_on(gradient.operand(*index), float(not hidden), "· visible", note)


def grouped(heads: Array, groups: int) -> Array:
    """B × h × n × m → B × g × h/g × n × m: the heads that share a key head, side by side."""
    batch, count, *rest = heads.shape
    return heads.reshape(batch, groups, count // groups, *rest)


def ungrouped(heads: Array) -> Array:
    """B × g × h/g × n × m → B × h × n × m."""
    batch, groups, share, *rest = heads.shape
    return heads.reshape(batch, groups * share, *rest)


def concat_like(backend: Backend, heads: Array) -> Array:
    """An array for as many heads (B × h × n × d_k), with those of a token side by side in memory."""
    batch, count, rows, width = heads.shape
    return backend.empty((batch, rows, count, width), heads.dtype).swapaxes(1, 2)


@dataclass(frozen=True)
class Softmax(Op):
    """e^(s − max) ÷ Σ e^(s − max) along the last axis. A row of −∞ alone gives zeros."""

    definition = "e^s ÷ Σ e^s"
    whole_rows = True
    cost = 5
    undone_from = (RESULT,)
    chain = ("y · (∂y − Σ ∂y y)",)
    overwrites = True
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The largest score is taken off first, so that no exponential overflows."""
        xp, result = backend.xp, backend.like(inputs[0]) if out is None else out
        if backend.kernels is not None:
            return backend.kernels.softmax(inputs[0], result)
        limits = np.finfo(result.dtype)
        lowest, least = float(limits.min), float(limits.tiny)

        def share(scores: Array, shares: Array) -> None:
            scores, shares = flat(scores), flat(shares)
            largest = scores.argmax(axis=-1)  # many times faster than NumPy's max over short rows
            top = scores[xp.arange(len(scores)), largest][:, None]
            xp.maximum(top, lowest, out=top)  # a row of −∞ alone
            xp.subtract(scores, top, out=shares)
            xp.exp(shares, out=shares)
            total = xp.einsum("ij->i", shares)[:, None]
            xp.maximum(total, least, out=total)
            xp.divide(shares, total, out=shares)

        by_rows(backend, share, inputs[0], result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = e^s / Σ e^s; ∂s = y · (∂y − Σ ∂y y)."""
        inner = backend.xp.einsum("...i,...i->...", gradient, output)[..., None]
        toward_scores = backend.xp.subtract(gradient, inner, out=backend.like(output))
        toward_scores *= output
        return (toward_scores,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row = inputs[0].factor(*index[:-1], None)
        cell = inputs[0].operand(*index)
        top = float(row.values.max())
        if top == -math.inf:
            hidden = "no key is visible"
            none = Value("Σ e^s", 0.0, note=hidden), Value("weight", 0.0, note="not 0 ÷ 0 but 0")
            return Working((cell.called("s"), *none), 0.0, hidden)
        total = Sum("Σ e^(s − max)", (row,), np.exp(row.values - top), "e^(s−max)")
        share = math.exp(cell.value - top)
        items = (cell.called("s"), Value("max", top, note="row's largest"), Value("e^(s − max)", share), total)
        return Working(
            items, share / total.total, f"e^({spoken(cell.value)} − {bracketed(top)}) ÷ {spoken(total.total)}"
        )

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        return toward_scores(index, gradient, output)


@dataclass(frozen=True)
class SoftmaxWithSink(Op):
    """e^s ÷ (Σ e^s + e^sink): a score learned for every head takes part and gets a share that no value receives.

    Inputs: scores (h × n × m), sinks (h). Result: h × n × m; a row and the sink's share add up to 1
    (OpenAI 2025, model card of gpt-oss; on sinks, Xiao et al. 2024).
    """

    definition = "e^s ÷ (Σ e^s + e^sink)"
    whole_rows = True
    cost = 5
    undone_from = (RESULT,)
    along = ((0, 1, 2), (0,))
    chain = ("y · (∂y − Σ ∂y y)", "−Σ (1 − Σ y) · Σ ∂y y over the rows")
    signed = False

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The largest is taken off first, so that no exponential overflows; the sink is finite."""
        scores, sinks = inputs
        sink = sinks[:, None, None]
        top = backend.xp.maximum(scores.max(axis=-1, keepdims=True), sink)
        powers = backend.xp.exp(scores - top)
        powers /= powers.sum(axis=-1, keepdims=True) + backend.xp.exp(sink - top)
        return powers

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = e^s / (Σ e^s + e^sink); the sink's share is 1 − Σ y."""
        inner = (gradient * output).sum(axis=-1, keepdims=True)
        rest = 1.0 - output.sum(axis=-1, keepdims=True)
        return output * (gradient - inner), -(rest * inner).sum(axis=(0, 2, 3))

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, sink = inputs[0].factor(*index[:-1], None), inputs[1].operand(index[0])
        cell, top = row.operand(index[-1]), max(float(row.values.max()), sink.value)
        total = Sum("Σ e^(s − max)", (row,), np.exp(row.values - top), "e^(s−max)")
        power, rest = math.exp(cell.value - top), math.exp(sink.value - top)
        whole = total.total + rest
        items = (
            cell.called("s"),
            Value("e^(s − max)", power),
            total,
            sink.called("sink", f"its share of the row: {rest / whole:.6g}"),
            Value("+ e^(sink − max)", rest),
        )
        return Working(items, power / whole, f"{spoken(power)} ÷ ({spoken(total.total)} + {spoken(rest)})")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 0:
            return replace(toward_scores(index, gradient, output), equation="")
        toward_rows, shares = gradient.factor(index[0], None, None), output.factor(index[0], None, None)
        rest = 1.0 - shares.values.reshape(-1, output.shape[-1]).sum(axis=-1)
        weighed = np.repeat(rest, output.shape[-1]) * toward_rows.values * shares.values
        return single(Sum("−Σ share of the sink · ∂y · y", (toward_rows, shares), -weighed, "− rest · ∂y · y"))


def toward_scores(index: Index, gradient: Source, output: Source) -> Working:
    """The terms of y · (∂y − Σ ∂y y)."""
    cell, share = gradient.operand(*index), output.operand(*index)
    inner = product("Σ ∂y · y", gradient.factor(*index[:-1], None), output.factor(*index[:-1], None))
    items = (cell.called("∂y"), inner, share.called("· y"))
    left = f"{spoken(share.value)} · ({spoken(cell.value)} − {bracketed(inner.total)})"
    return Working(items, share.value * (cell.value - inner.total), left)
