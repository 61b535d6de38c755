"""Of an expert: another op, for the tokens alone that chose an expert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op


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

    sparse: ClassVar[bool] = True
    op: Op
    expert: int
    chosen: int
    rows: int = 1

    @property
    def formula(self) -> str:
        """That of the op."""
        return f"{self.op.formula}, for the tokens of expert {self.expert}"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the op."""
        return self.op.axes(*inputs[:-1])

    def density(self, *inputs: Axes) -> float:
        """Chosen experts of all: so many rows are computed where the experts are chosen alike."""
        return self.chosen / inputs[-1][-1].size

    def idle(self, shares: Array) -> bool:
        """Whether no token chose the expert."""
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
        """Sentences and tokens that chose the expert."""
        places: tuple[Array, ...] = backend.xp.nonzero(shares[..., self.expert])
        return places

    def _gathered(self, operands: Sequence[Array], places: tuple[Array, ...]) -> list[Array]:
        """The rows of these places as one sentence; weights as they are."""
        return [operand[places][None] if i < self.rows else operand for i, operand in enumerate(operands)]

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """As the op."""
        return self.op.widen(region, inputs[:-1], shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """As the op, and the shares of its rows."""
        return *self.op.reads(region, inputs[:-1]), (region[0], range(inputs[-1][1]))

    def explain(self, index: Index, *sources: Source) -> Working:
        """As the op, where the token chose the expert."""
        *operands, shares = sources
        return self._not_chosen(index, shares) or self.op.explain(index, *operands)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working | None:
        """As the op, from the rows that were computed."""
        *operands, shares = sources
        if toward == len(operands):
            return None
        if toward < self.rows:
            none = self._not_chosen(index, shares)
            return none or self.op.explain_backward(index, toward, gradient, output, *operands)
        places = tuple(int(row) for row in shares.line(None, self.expert).nonzero()[0])
        gradient, output = (_Rows.of(source, places) for source in (gradient, output))
        operands[: self.rows] = [_Rows.of(source, places) for source in operands[: self.rows]]
        return self.op.explain_backward(index, toward, gradient, output, *operands)

    def gradient_formula(self, toward: int) -> str:
        """That of the op."""
        return self.op.gradient_formula(toward)

    def _not_chosen(self, index: Index, shares: Source) -> Working | None:
        cell = shares.operand(index[0], self.expert)
        if cell.value:
            return None
        return Working((Value("share", 0.0, cell, f"the token did not choose expert {self.expert}"),), 0.0)

    def flops(self, *inputs: Axes) -> int:
        """Those of the op, for as many rows as an expert has where all are chosen alike."""
        return self.op.flops(*inputs[:-1]) * self.chosen // inputs[-1][-1].size


@dataclass(frozen=True)
class _Rows(Source):
    """Some rows of an input, as if there were no others; operands have the places that they have among all."""

    places: tuple[int, ...] = ()

    @classmethod
    def of(cls, source: Source, places: tuple[int, ...]) -> _Rows:
        """The rows at these places."""

        def read(region: Region) -> Any:
            return source.read((range(source.shape[0]), *region[1:]))[[places[row] for row in region[0]]]

        return cls(source.name, (len(places), *source.shape[1:]), read, places)

    def factor(self, *index: int | None) -> Factor:
        """As of any input."""
        factor = super().factor(*index)

        def place(term: int) -> Index:
            row, *rest = factor.place(term)
            return (self.places[row], *rest)

        return replace(factor, place=place)
