"""Norms of query and key heads: every head by weights of its own, or all heads of a token as one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.engine.axis import Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.ops.norms import LayerNorm, RmsNorm


@dataclass(frozen=True)
class LayerNormByHead(LayerNorm):
    """(x − μ) ÷ √(σ² + ε) · γ of the head, over the columns of each head (Dehghani et al. 2023, §2).

    Inputs: x (h × n × d_k), then h times γ (d_k), head by head.
    """

    definition = "(x − μ) ÷ √(σ² + ε) · γ of the head"
    chain = (LayerNorm.chain[0], "Σ ∂y x̂ over the rows of the head")
    undone_from = None

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
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
        return range(shape[0]), region[1], range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return region, *map(whole, inputs[1:])

    def explain(self, index: Index, *inputs: Source) -> Working:
        return super().explain(index, inputs[0], inputs[1 + index[0]])

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, *gammas = inputs
        if toward == 0:
            return super().explain_backward(index, 0, gradient, output, x, gammas[index[0]])
        rows = x.read((range(toward - 1, toward), *whole(x.shape)[1:]))
        return self.toward_gamma(rows, (0, None, index[0]), gradient.terms(toward - 1, None, index[0]))


@dataclass(frozen=True)
class RmsNormOfHeads(RmsNorm):
    """x ÷ √(mean x² + ε) · γ over all heads of a token side by side (OLMo Team 2024, §3.2).

    Inputs: x (h × n × d_k), γ (h·d_k).
    """

    definition = "x ÷ √(mean x² of all heads + ε) · γ"
    mean_over = (-3, -1)
    texts = ("mean x² of all heads", "x² ÷ (h · d_k)", "∂y γ x̂ ÷ (h · d_k)")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, gamma = inputs
        result = backend.xp.divide(x, self.size(backend, x), out=backend.like(x) if out is None else out)
        result *= gamma.reshape(x.shape[1], 1, x.shape[3])
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ with x̂ = x / √(mean x² + ε), the mean over heads and columns."""
        x, gamma = inputs
        size = self.size(backend, x)
        normal, toward_normal = x / size, gradient * gamma.reshape(x.shape[1], 1, x.shape[3])
        along = (toward_normal * normal).mean(axis=self.mean_over, keepdims=True)
        return (toward_normal - normal * along) / size, (gradient * normal).sum(axis=(0, 2)).reshape(-1)

    def size(self, backend: Backend, x: Array) -> Array:
        """√(mean x² + ε) of every token, batch × 1 × n × 1."""
        squares = backend.xp.einsum("bhni,bhni->bn", x, x)[:, None, :, None]
        return backend.xp.sqrt(squares / (x.shape[1] * x.shape[3]) + self.epsilon)

    def row(self, index: Index) -> tuple[int | None, ...]:
        return (None, index[1], None)

    def place(self, index: Index, shape: Shape) -> int:
        return index[0] * shape[-1] + index[2]

    def column(self, place: int, shape: Shape) -> tuple[int | None, ...]:
        head, column = divmod(place, shape[-1])
        return (head, None, column)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        return range(shape[0]), region[1], range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return region, *map(whole, inputs[1:])
