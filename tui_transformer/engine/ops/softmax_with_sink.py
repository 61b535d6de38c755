"""Softmax with a sink: shares of the keys, and a rest that goes to no key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Sum, Value, Working, product
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, single, whole_rows
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class SoftmaxWithSink(Op):
    """e^s ÷ (Σ e^s + e^sink): a score learned for every head takes part and gets a share that no value receives.

    Inputs: scores (h × n × m), sinks (h). Result: h × n × m; a row and the sink's share add up to 1
    (OpenAI 2025, model card of gpt-oss; on sinks, Xiao et al. 2024).
    """

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    chain: ClassVar[tuple[str, ...]] = ("y · (∂y − Σ ∂y y)", "−Σ (1 − Σ y) · Σ ∂y y over the rows")
    signed: ClassVar[bool] = False

    @property
    def formula(self) -> str:
        """Exponentials over their sum with the sink's."""
        return "e^s ÷ (Σ e^s + e^sink)"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

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

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A row is normalised as a whole."""
        return whole_rows(region, shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows, and the sinks of their heads."""
        return region, (region[0],)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, the exponentials and their sum, the sink and what it takes."""
        row, sink = sources[0].factor(*index[:-1], None), sources[1].operand(index[0])
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

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The share times the gradient less the row's Σ ∂y y; the sink's share less the same, over the rows."""
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

    def flops(self, *inputs: Axes) -> int:
        """Maximum, difference, exponential, sum, quotient."""
        return 5 * super().flops(*inputs)
