"""Weighted experts: what the chosen experts of every token say, by their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Item, Source, Value, Working, product
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, single
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class WeightedExperts(Op):
    """Σ share · output of an expert (Shazeer et al. 2017, equation 1).

    Inputs: shares (n × experts), the output of every expert (n × d). Result: n × d.
    """

    chain: ClassVar[tuple[str, ...]] = ("Σ ∂y · output", "∂y · share")
    chosen: int

    @property
    def formula(self) -> str:
        """The sum."""
        return "Σ share · output of the expert"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the outputs."""
        return inputs[1]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Expert by expert, in the rows of the tokens that chose it."""
        shares, *outputs = inputs
        result = backend.xp.zeros(outputs[0].shape, dtype=outputs[0].dtype)
        for expert, places in _chosen(backend, shares):
            result[places] += shares[(*places, expert)][:, None] * outputs[expert][places]
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = Σ share_e y_e. An expert that was not chosen has computed nothing that could be compared."""
        shares, *outputs = inputs
        xp, toward_shares = backend.xp, backend.xp.zeros_like(shares)
        toward = [xp.zeros(each.shape, dtype=gradient.dtype) for each in outputs]
        for expert, places in _chosen(backend, shares):
            rows = gradient[places]
            toward_shares[(*places, expert)] = (rows * outputs[expert][places]).sum(axis=-1)
            toward[expert][places] = rows * shares[(*places, expert)][:, None]
        return toward_shares, *toward

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The shares of the rows, and the same cells of every output."""
        return (region[0], range(inputs[0][1])), *(region for _ in inputs[1:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """The share and the output of every chosen expert."""
        shares, *outputs = sources
        row, items, total = shares.factor(index[0], None), list[Item](), 0.0
        left = list[str]()
        for expert in row.values.nonzero()[0]:
            share, said = row.operand(int(expert)), outputs[expert].operand(*index)
            items += [
                Value(f"share of {expert}", share.value, share),
                Value("· output", said.value, said, f"of expert {expert}"),
            ]
            total += share.value * said.value
            left.append(f"{spoken(share.value)} · {bracketed(said.value)}")
        return Working(tuple(items), total, " + ".join(left))

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y · output toward a share; ∂y · share toward an output."""
        if toward == 0:
            row, expert = index
            share = sources[0].operand(*index)
            if not share.value:
                return Working((Value("share", 0.0, share, "not chosen: its output was not computed"),), 0.0)
            said = sources[1 + expert]
            return single(product("Σ ∂y · output", gradient.factor(row, None), said.factor(row, None)))
        share = sources[0].operand(index[0], toward - 1)
        return passed_on(gradient.operand(*index), share.value, "· share", read=share)

    def flops(self, *inputs: Axes) -> int:
        """A product and a sum for every chosen expert."""
        return 2 * self.chosen * super().flops(*inputs)


def _chosen(backend: Backend, shares: Array) -> list[tuple[int, tuple[Array, ...]]]:
    """The experts that some token chose, and the sentences and tokens that did."""
    places = ((expert, backend.xp.nonzero(shares[..., expert])) for expert in range(shares.shape[-1]))
    return [(expert, chosen) for expert, chosen in places if len(chosen[0])]
