"""Norm of sum: several inputs added up, then layer norm, in one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Item, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, whole_rows
from tui_transformer.engine.ops.layer_norm import LayerNorm
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class NormOfSum(Op):
    """Layer norm of the sum of the first `parts` inputs, as BERT's embedding has it (Devlin et al. 2018).

    Inputs: the parts (n × d each), γ (d), β (d).
    """

    chain: ClassVar[tuple[str, ...]] = ("layer norm's, the same for every part",)
    epsilon: float
    parts: int

    @property
    def _norm(self) -> LayerNorm:
        return LayerNorm(self.epsilon)

    @property
    def formula(self) -> str:
        """Layer norm, of a sum."""
        return "(x − μ) ÷ √(σ² + ε) · γ + β of the sum"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the first part."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The sum, normalised in its own memory."""
        total = self._sum(backend, *inputs)
        return self._norm.forward(backend, total, *inputs[self.parts :], out=total)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = norm(a + b + …); each addend gets the whole gradient of the sum."""
        total = self._sum(backend, *inputs)
        toward_sum, *weights = self._norm.backward(backend, gradient, output, total, *inputs[self.parts :])
        return *(toward_sum for _ in range(self.parts)), *weights

    def _sum(self, backend: Backend, *inputs: Array) -> Array:
        total = backend.like(inputs[0])
        total[...] = inputs[0]
        for part in inputs[1 : self.parts]:
            total += part
        return total

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A row is normalised as a whole."""
        return whole_rows(region, shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows of every part, and all of γ and β."""
        return *(region for _ in range(self.parts)), (region[-1],), (region[-1],)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The parts, their sum, and the norm of the sum's row."""
        operands = [source.operand(*index) for source in sources[: self.parts]]
        row = np.sum([source.line(index[0], None) for source in sources[: self.parts]], axis=0)
        gamma, beta = (source.operand(index[1]) for source in sources[self.parts :])
        mean, variance = float(row.mean()), float(row.var())
        normal = (row[index[1]] - mean) / math.sqrt(variance + self.epsilon)
        items: list[Item] = [Value("+" if i else "", part.value, part) for i, part in enumerate(operands)]
        items += [
            Value("sum", float(row[index[1]])),
            Value("μ", mean, note="mean of the summed row"),
            Value("σ²", variance, note="variance of the summed row"),
            Value("ε", self.epsilon),
            Value("(sum − μ) ÷ √(σ² + ε)", float(normal)),
            Value("· γ", gamma.value, gamma),
            Value("+ β", beta.value, beta),
        ]
        left = f"{spoken(float(normal))} · {bracketed(gamma.value)} + {bracketed(beta.value)}"
        return Working(tuple(items), float(normal * gamma.value + beta.value), left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The layer norm's, of the summed rows."""
        parts = sources[: self.parts]
        total = Source("sum", parts[0].shape, lambda region: np.sum([part.read(region) for part in parts], axis=0))
        inner = max(toward - self.parts + 1, 0)
        working = self._norm.explain_backward(index, inner, gradient, output, total, *sources[self.parts :])
        items = tuple(replace(item, source=None) if _is_of(item, total.name) else item for item in working.items)
        return Working(items, working.result)

    def flops(self, *inputs: Axes) -> int:
        """The additions and the norm."""
        return super().flops(*inputs) * (self.parts - 1 + 7)


def _is_of(item: Item, name: str) -> TypeGuard[Value]:
    """Whether a value was read from the sum, which is no step."""
    return isinstance(item, Value) and item.source is not None and item.source.name == name
