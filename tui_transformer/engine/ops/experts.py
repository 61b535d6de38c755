"""Mixtures of experts: the shares of a router, an op for the tokens of an expert, and the weighted sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Floats, Index, Item, Source, Sum, Value, Working, product
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, passed_on, single
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class ExpertWeights(Op):
    """Softmax of a router's logits, for the largest of every row; 0 for the others (Shazeer et al. 2017, §2.1).

    Inputs: logits (n × experts). Result: n × experts.

    Attributes:
        chosen: Experts that a token chooses.
        among_chosen: The shares of the chosen add up to 1 (Jiang et al. 2024, §2.1); otherwise they are what a
            softmax over all experts gives them.
    """

    whole_rows = True
    undone_from = (0, RESULT)
    chain = ("p · (∂y − Σ ∂y y)",)
    signed = False
    chosen: int
    among_chosen: bool = True

    @property
    def formula(self) -> str:
        over = "chosen" if self.among_chosen else "all"
        return f"e^z ÷ Σ e^z over {over}, for the {self.chosen} largest z"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
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

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, expert = inputs[0].factor(index[0], None), index[1]
        order, powers = self._of_row(row.values)
        total = Sum("Σ e^(z − max)", (row,), powers, "e^(z−max)")
        last = row.operand(int(order[-1]))
        items = (
            row.operand(expert).called("z"),
            last.called("smallest chosen z", f"{self.chosen} of {len(row.values)} are chosen"),
        )
        if expert not in order:
            return Working((*items, Value("share", 0.0, note="not chosen")), 0.0, "not chosen")
        power = float(powers[expert])
        left = f"{spoken(power)} ÷ {spoken(total.total)}"
        return Working((*items, Value("e^(z − max)", power), total), power / total.total, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        row, expert = inputs[0].line(index[0], None), index[1]
        order, powers = self._of_row(row)
        inner = product("Σ ∂y · y", gradient.factor(index[0], None), output.factor(index[0], None))
        cell, share = gradient.operand(*index), float(powers[expert] / powers.sum())
        taken = float(expert in order)
        items = (
            cell.called("∂y"),
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
        return (5 + math.ceil(math.log2(inputs[0][-1].size + 1))) * super().flops(*inputs)


@dataclass(frozen=True)
class OfExpert(Op):
    """An op that makes rows from rows, for the tokens that gave an expert a share; the rows of the others are 0.

    Inputs: those of the op, then the shares (n × experts). Where no token chose the expert nothing is computed, and the
    op's weights are not read.

    Attributes:
        op: What is computed.
        expert: Whose rows.
        chosen: How many experts a token chooses.
        rows: How many of the op's inputs have a row for every token; the others are weights.
    """

    sparse = True
    op: Op
    expert: int
    chosen: int
    rows: int = 1

    @property
    def formula(self) -> str:
        return f"{self.op.formula}, for the tokens of expert {self.expert}"

    def axes(self, *inputs: Axes) -> Axes:
        return self.op.axes(*inputs[:-1])

    def density(self, *inputs: Axes) -> float:
        return self.chosen / inputs[-1][-1].size

    def idle(self, shares: Array) -> bool:
        return not shares[..., self.expert].any()

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The rows of the tokens that chose the expert, computed together."""
        *operands, shares = inputs
        result = backend.xp.zeros((*shares.shape[:-1], operands[-1].shape[-1]), dtype=operands[0].dtype)
        places = self._places(backend, shares)
        if len(places[0]):
            result[places] = self.op.forward(backend, *self._gathered(operands, places))[0]
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = f(x) in the rows of the expert, else 0."""
        *operands, shares = inputs
        places = self._places(backend, shares)
        slopes = [backend.xp.zeros(operand.shape, dtype=gradient.dtype) for operand in operands]
        if len(places[0]):
            rows = self._gathered(operands, places)
            parts = self.op.backward(backend, gradient[places][None], output[places][None], *rows)
            for place, part in enumerate(parts):
                if part is not None:
                    slopes[place][places if place < self.rows else ...] = part[0] if place < self.rows else part
        return *slopes, None

    def _places(self, backend: Backend, shares: Array) -> tuple[Array, ...]:
        places: tuple[Array, ...] = backend.xp.nonzero(shares[..., self.expert])
        return places

    def _gathered(self, operands: Sequence[Array], places: tuple[Array, ...]) -> list[Array]:
        """The rows of these places as one sentence; weights as they are."""
        return [operand[places][None] if i < self.rows else operand for i, operand in enumerate(operands)]

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        return self.op.widen(region, inputs[:-1], shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return *self.op.reads(region, inputs[:-1]), (region[0], range(inputs[-1][1]))

    def explain(self, index: Index, *inputs: Source) -> Working:
        *operands, shares = inputs
        return self._not_chosen(index, shares) or self.op.explain(index, *operands)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        *operands, shares = inputs
        if toward < self.rows:
            none = self._not_chosen(index, shares)
            return none or self.op.explain_backward(index, toward, gradient, output, *operands)
        places = tuple(int(row) for row in shares.line(None, self.expert).nonzero()[0])
        gradient, output = (_Rows.from_source(source, places) for source in (gradient, output))
        operands[: self.rows] = [_Rows.from_source(source, places) for source in operands[: self.rows]]
        return self.op.explain_backward(index, toward, gradient, output, *operands)

    def gradient_formula(self, toward: int) -> str:
        return self.op.gradient_formula(toward)

    def _not_chosen(self, index: Index, shares: Source) -> Working | None:
        cell = shares.operand(index[0], self.expert)
        if cell.value:
            return None
        return Working((Value("share", 0.0, cell, f"the token did not choose expert {self.expert}"),), 0.0)

    def flops(self, *inputs: Axes) -> int:
        return self.op.flops(*inputs[:-1]) * self.chosen // inputs[-1][-1].size


@dataclass(frozen=True)
class _Rows(Source):
    """Some rows of an input, as if there were no others; operands have the places that they have among all."""

    places: tuple[int, ...] = ()

    @classmethod
    def from_source(cls, source: Source, places: tuple[int, ...]) -> _Rows:

        def read(region: Region) -> Any:
            return source.read((range(source.shape[0]), *region[1:]))[[places[row] for row in region[0]]]

        return cls(source.name, (len(places), *source.shape[1:]), read, places)

    def factor(self, *index: int | range | None) -> Factor:
        factor = super().factor(*index)

        def place(term: int) -> Index:
            row, *rest = factor.place(term)
            return (self.places[row], *rest)

        return replace(factor, place=place)


@dataclass(frozen=True)
class WeightedExperts(Op):
    """Σ share · output of an expert (Shazeer et al. 2017, equation 1).

    Inputs: shares (n × experts), the output of every expert (n × d). Result: n × d.
    """

    definition = "Σ share · output of the expert"
    along = ((0, None), (0, 1))
    chain = ("Σ ∂y · output", "∂y · share")
    chosen: int

    def axes(self, *inputs: Axes) -> Axes:
        return inputs[1]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
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

    def explain(self, index: Index, *inputs: Source) -> Working:
        shares, *outputs = inputs
        row, items, total = shares.factor(index[0], None), list[Item](), 0.0
        left = list[str]()
        for expert in row.values.nonzero()[0]:
            share, said = row.operand(int(expert)), outputs[expert].operand(*index)
            items += [share.called(f"share of {expert}"), said.called("· output", f"of expert {expert}")]
            total += share.value * said.value
            left.append(f"{spoken(share.value)} · {bracketed(said.value)}")
        items = items or [Value("share", 0.0, note="0 of every expert")]
        return Working(tuple(items), total, " + ".join(left))

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 0:
            row, expert = index
            share = inputs[0].operand(*index)
            if not share.value:
                return Working((Value("share", 0.0, share, "not chosen: its output was not computed"),), 0.0)
            said = inputs[1 + expert]
            return single(product("Σ ∂y · output", gradient.factor(row, None), said.factor(row, None)))
        share = inputs[0].operand(index[0], toward - 1)
        return passed_on(gradient.operand(*index), share.value, "· share", read=share)

    def flops(self, *inputs: Axes) -> int:
        return 2 * self.chosen * super().flops(*inputs)


def _chosen(backend: Backend, shares: Array) -> list[tuple[int, tuple[Array, ...]]]:
    """The experts that some token chose, and the sentences and tokens that did."""
    places = ((expert, backend.xp.nonzero(shares[..., expert])) for expert in range(shares.shape[-1]))
    return [(expert, chosen) for expert, chosen in places if len(chosen[0])]
