"""Softmax: scores to shares that sum to 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_rows
from tui_transformer.engine.explanation import Index, Source, Sum, Value, Working, product
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, flat, whole_rows
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class Softmax(Op):
    """e^(s − max) ÷ Σ e^(s − max) along the last axis. A row of −∞ alone gives zeros."""

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    chain: ClassVar[tuple[str, ...]] = ("y · (∂y − Σ ∂y y)",)
    overwrites: ClassVar[bool] = True
    signed: ClassVar[bool] = False

    @property
    def formula(self) -> str:
        """Exponentials over their sum."""
        return "e^s ÷ Σ e^s"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

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

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A row is normalised as a whole."""
        return whole_rows(region, shape)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, the row's maximum, every exponential and their sum."""
        row = sources[0].factor(*index[:-1], None)
        cell = sources[0].operand(*index)
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

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The share times the gradient less the row's Σ ∂y y."""
        cell, share = gradient.operand(*index), output.operand(*index)
        inner = product("Σ ∂y · y", gradient.factor(*index[:-1], None), output.factor(*index[:-1], None))
        items = (Value("∂y", cell.value, cell), inner, Value("· y", share.value, share))
        left = f"{spoken(share.value)} · ({spoken(cell.value)} − {bracketed(inner.total)})"
        return Working(items, share.value * (cell.value - inner.total), left)

    def flops(self, *inputs: Axes) -> int:
        """Maximum, difference, exponential, sum, quotient."""
        return 5 * super().flops(*inputs)
