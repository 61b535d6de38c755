"""Norms of query and key heads: every head by weights of its own, or all heads of a token as one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Floats, Index, Source, Sum, Value, Working
from tui_transformer.engine.ops.base import Gradients, along_column, single
from tui_transformer.engine.ops.layer_norm import LayerNorm
from tui_transformer.engine.ops.rms_norm import RmsNorm


@dataclass(frozen=True)
class LayerNormByHead(LayerNorm):
    """(x − μ) ÷ √(σ² + ε) · γ of the head, over the columns of each head (Dehghani et al. 2023, §2).

    Inputs: x (h × n × d_k), then h times γ (d_k), head by head.
    """

    chain: ClassVar[tuple[str, ...]] = (LayerNorm.chain[0], "Σ ∂y x̂ over the rows of the head")
    undone_from: ClassVar[None] = None  # type: ignore[assignment]

    @property
    def formula(self) -> str:
        """The paper's formula."""
        return "(x − μ) ÷ √(σ² + ε) · γ of the head"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Layer norm, head by head."""
        x, *gammas = inputs
        result = backend.like(x) if out is None else out
        for head, gamma in enumerate(gammas):
            result[:, head] = LayerNorm.forward(self, backend, backend.xp.ascontiguousarray(x[:, head]), gamma)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ in every head."""
        x, *gammas = inputs
        toward_x, toward_gammas = backend.like(x), []
        for head, gamma in enumerate(gammas):
            here, of_gamma = LayerNorm.backward(
                self, backend, gradient[:, head], output[:, head], backend.xp.ascontiguousarray(x[:, head]), gamma
            )
            toward_x[:, head] = here
            toward_gammas.append(of_gamma)
        return toward_x, *toward_gammas

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Every head, with all its columns."""
        return range(shape[0]), region[1], range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows, and all of every γ."""
        return region, *map(whole, inputs[1:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """As a layer norm with γ of the head."""
        return super().explain(index, sources[0], sources[1 + index[0]])

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Toward x as in a layer norm; toward γ from the column of its head."""
        x, *gammas = sources
        if toward == 0:
            return super().explain_backward(index, 0, gradient, output, x, gammas[index[0]])
        head, region = toward - 1, whole(x.shape)
        normal, _ = self._normal(x.read((range(head, head + 1), *region[1:])))
        column = gradient.terms(head, None, index[0])
        return single(along_column(column, normal[..., index[0]].reshape(-1)))


@dataclass(frozen=True)
class RmsNormOfHeads(RmsNorm):
    """x ÷ √(mean x² + ε) · γ over all heads of a token side by side (OLMo Team 2024, §3.2).

    Inputs: x (h × n × d_k), γ (h·d_k).
    """

    @property
    def formula(self) -> str:
        """The paper's formula."""
        return "x ÷ √(mean x² of all heads + ε) · γ"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Mean square of a token, quotient, product."""
        x, gamma = inputs
        result = backend.xp.divide(x, self._token_size(backend, x), out=backend.like(x) if out is None else out)
        result *= self._by_head(x, gamma)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ with x̂ = x / √(mean x² + ε), the mean over heads and columns."""
        x, gamma = inputs
        size = self._token_size(backend, x)
        normal, toward_normal = x / size, gradient * self._by_head(x, gamma)
        along = (toward_normal * normal).mean(axis=(1, 3), keepdims=True)
        toward_gamma = (gradient * normal).sum(axis=(0, 2)).reshape(-1)
        return (toward_normal - normal * along) / size, toward_gamma

    def _token_size(self, backend: Backend, x: Array) -> Array:
        """√(mean x² + ε) of every token, batch × 1 × n × 1."""
        squares = backend.xp.einsum("bhni,bhni->bn", x, x)[:, None, :, None]
        return backend.xp.sqrt(squares / (x.shape[1] * x.shape[3]) + self.epsilon)

    @staticmethod
    def _by_head(x: Array, gamma: Array) -> Array:
        """γ as h × 1 × d_k."""
        return gamma.reshape(x.shape[1], 1, x.shape[3])

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A token is normalised as a whole."""
        return range(shape[0]), region[1], range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The tokens, and all of γ."""
        return region, *map(whole, inputs[1:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """The mean square of the token, ε, the quotient and γ."""
        x, gammas = sources
        head, row, column = index
        token = x.terms(None, row, None)
        cell, gamma = x.operand(*index), gammas.operand(head * x.shape[-1] + column)
        square = Sum("mean x² of all heads", (token,), token.values**2 / len(token.values), "x² ÷ (h · d_k)")
        return self._quotient(cell, square, gamma)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Toward x from the token's mean; toward γ from the column of its head."""
        x, gammas = sources
        if toward == 1:
            head, column = divmod(index[0], x.shape[-1])
            normal, _ = self._tokens(x.read(whole(x.shape)))
            return single(along_column(gradient.terms(head, None, column), normal[head, :, column]))
        head, row, column = index
        normal, size = self._tokens(x.read((range(x.shape[0]), range(row, row + 1), range(x.shape[2]))))
        rows, gamma = gradient.terms(None, row, None), gammas.factor(None)
        along = Sum(
            "mean ∂y γ x̂",
            (rows, gamma),
            rows.values * gamma.values * normal.reshape(-1) / normal.size,
            "∂y γ x̂ ÷ (h · d_k)",
        )
        place = head * x.shape[-1] + column
        own = Value("x̂", float(normal[head, 0, column]), x.operand(*index), "x ÷ √(mean x² + ε)")
        return self._undone(rows.operand(place), gamma.operand(place), along, own, float(size[0]))

    def _tokens(self, x: Floats) -> tuple[Floats, Floats]:
        """Tokens with mean square 1, and √(mean x² + ε) of every token, in float64."""
        size = np.sqrt((x**2).mean(axis=(0, 2)) + self.epsilon)
        return x / size[None, :, None], size
