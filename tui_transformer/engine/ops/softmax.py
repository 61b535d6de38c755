"""Softmax: scores to shares that sum to 1, or to less where a sink takes its part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Sum, Value, Working, product
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, by_rows, flat, single
from tui_transformer.engine.spoken import bracketed, spoken


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
            none = Value("Σ e^s", 0.0, note="no key is visible")
            return Working(
                (Value("s", cell.value, cell), none, Value("weight", 0.0, note="not 0 ÷ 0 but 0")),
                0.0,
                "no key is visible",
            )
        total = Sum("Σ e^(s − max)", (row,), np.exp(row.values - top), "e^(s−max)")
        share = math.exp(cell.value - top)
        items = (
            Value("s", cell.value, cell),
            Value("max", top, note="row's largest"),
            Value("e^(s − max)", share),
            total,
        )
        return Working(
            items, share / total.total, f"e^({spoken(cell.value)} − {bracketed(top)}) ÷ {spoken(total.total)}"
        )

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        cell, share = gradient.operand(*index), output.operand(*index)
        inner = product("Σ ∂y · y", gradient.factor(*index[:-1], None), output.factor(*index[:-1], None))
        items = (Value("∂y", cell.value, cell), inner, Value("· y", share.value, share))
        left = f"{spoken(share.value)} · ({spoken(cell.value)} − {bracketed(inner.total)})"
        return Working(items, share.value * (cell.value - inner.total), left)


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

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return region, (region[0],)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, sink = inputs[0].factor(*index[:-1], None), inputs[1].operand(index[0])
        cell, top = row.operand(index[-1]), max(float(row.values.max()), sink.value)
        total = Sum("Σ e^(s − max)", (row,), np.exp(row.values - top), "e^(s−max)")
        power, rest = math.exp(cell.value - top), math.exp(sink.value - top)
        whole = total.total + rest
        items = (
            Value("s", cell.value, cell),
            Value("e^(s − max)", power),
            total,
            Value("sink", sink.value, sink, f"its share of the row: {rest / whole:.6g}"),
            Value("+ e^(sink − max)", rest),
        )
        return Working(items, power / whole, f"{spoken(power)} ÷ ({spoken(total.total)} + {spoken(rest)})")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 1:
            return self._toward_sink(index[0], gradient, output)
        cell, share = gradient.operand(*index), output.operand(*index)
        inner = product("Σ ∂y · y", gradient.factor(*index[:-1], None), output.factor(*index[:-1], None))
        items = (Value("∂y", cell.value, cell), inner, Value("· y", share.value, share))
        return Working(items, share.value * (cell.value - inner.total))

    def _toward_sink(self, head: int, gradient: Source, output: Source) -> Working:
        toward, shares = gradient.terms(head, None, None), output.terms(head, None, None)
        rest = 1.0 - shares.values.reshape(-1, output.shape[-1]).sum(axis=-1)
        weighed = np.repeat(rest, output.shape[-1]) * toward.values * shares.values
        factors: tuple[Factor, ...] = (toward, shares)
        return single(Sum("−Σ share of the sink · ∂y · y", factors, -weighed, "− rest · ∂y · y"))
