"""Expert weights: the share of every expert, 0 for those that a token does not choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Floats, Index, Source, Sum, Value, Working, product
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, whole_rows
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class ExpertWeights(Op):
    """Softmax of a router's logits, for the largest of every row; 0 for the others (Shazeer et al. 2017, §2.1).

    Inputs: logits (n × experts). Result: n × experts.

    Attributes:
        chosen: Experts that a token chooses.
        among_chosen: The shares of the chosen add up to 1 (Jiang et al. 2024, §2.1); otherwise they are what a
            softmax over all experts gives them.
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, RESULT)
    chain: ClassVar[tuple[str, ...]] = ("p · (∂y − Σ ∂y y)",)
    signed: ClassVar[bool] = False
    chosen: int
    among_chosen: bool = True

    @property
    def formula(self) -> str:
        """Exponentials over their sum, of the chosen."""
        over = "chosen" if self.among_chosen else "all"
        return f"e^z ÷ Σ e^z over {over}, for the {self.chosen} largest z"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the logits."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The shares, and 0 where an expert is not among the largest."""
        taken = self._taken(backend, inputs[0])
        return self._shares(backend, inputs[0], taken) * taken

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = p · taken; ∂z = taken p ∂y − p Σ ∂y y, which experts are taken held fast."""
        taken = self._taken(backend, inputs[0])
        inner = (gradient * output).sum(axis=-1, keepdims=True)
        return (self._shares(backend, inputs[0], taken) * (gradient * taken - inner),)

    def _taken(self, backend: Backend, logits: Array) -> Array:
        """1 for the largest logits of every row, the first of several that are alike; 0 for the others."""
        order = backend.xp.argsort(-logits, axis=-1, kind="stable")
        ranks = backend.xp.argsort(order, axis=-1)
        return (ranks < self.chosen).astype(logits.dtype)

    def _shares(self, backend: Backend, logits: Array, taken: Array) -> Array:
        """Softmax over the chosen experts (0 for the others), or over all."""
        powers = backend.xp.exp(logits - logits.max(axis=-1, keepdims=True))
        if self.among_chosen:
            powers *= taken
        return powers / powers.sum(axis=-1, keepdims=True)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A token chooses among all experts."""
        return whole_rows(region, shape)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The logit, the smallest that was chosen, the exponentials and their sum."""
        row, expert = sources[0].factor(index[0], None), index[1]
        order, powers = self._of_row(row.values)
        total = Sum("Σ e^(z − max)", (row,), powers, "e^(z−max)")
        last = row.operand(int(order[-1]))
        items = (
            Value("z", float(row.values[expert]), row.operand(expert)),
            Value("smallest chosen z", last.value, last, f"{self.chosen} of {len(row.values)} are chosen"),
        )
        if expert not in order:
            return Working((*items, Value("share", 0.0, note="not chosen")), 0.0, "not chosen")
        power = float(powers[expert])
        left = f"{spoken(power)} ÷ {spoken(total.total)}"
        return Working((*items, Value("e^(z − max)", power), total), power / total.total, left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The share times the gradient (of a chosen expert) less the row's Σ ∂y y."""
        row, expert = sources[0].line(index[0], None), index[1]
        order, powers = self._of_row(row)
        inner = product("Σ ∂y · y", gradient.factor(index[0], None), output.factor(index[0], None))
        cell, share = gradient.operand(*index), float(powers[expert] / powers.sum())
        taken = float(expert in order)
        items = (
            Value("∂y", cell.value, cell),
            Value("chosen", taken),
            inner,
            Value("· p", share, note="softmax before the choice" if not self.among_chosen else "share"),
        )
        return Working(items, share * (cell.value * taken - inner.total))

    def _of_row(self, row: Floats) -> tuple[Any, Floats]:
        """The chosen experts of a row of logits, the largest first, and what the softmax adds up for every expert."""
        order = np.argsort(-row, kind="stable")[: self.chosen]
        powers = np.exp(row - row.max())
        return order, np.where(np.isin(np.arange(len(row)), order), powers, 0.0) if self.among_chosen else powers

    def flops(self, *inputs: Axes) -> int:
        """Maximum, difference, exponential, sum, quotient, and the choice."""
        return (5 + math.ceil(math.log2(inputs[0][-1].size + 1))) * super().flops(*inputs)
