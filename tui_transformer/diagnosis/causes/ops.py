"""Operations as somebody might have written them by mistake, with the gradients of what they compute."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Floats, Index, Operand, Source, Sum, Value, Working
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops import Context, Mask, Op, Rotate, Scores, Softmax
from tui_transformer.engine.ops.attention import OfHeads
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.records import dataclass, replace


def by_the_pass(op: Op, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working | None:
    """No terms of a gradient's cell: those of the right step are not its, and the backward pass itself has it."""
    del op, index, toward, gradient, output, inputs
    return None


@dataclass(frozen=True)
class Times(Op):
    """What an operation gives, multiplied by a factor: all of it, or one head."""

    of: Op
    factor: float
    head: int | None = None

    @property
    def formula(self) -> str:
        part = "" if self.head is None else f" in head {self.head}"
        return f"{self.of.formula}, × {self.factor:.4g}{part}"

    def axes(self, *inputs: Axes) -> Axes:
        return self.of.axes(*inputs)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del out
        result = self.of.forward(backend, *inputs)
        if self.head is None:
            return result * self.factor
        result = result.copy()  # it may be a weight itself
        result[:, self.head] *= self.factor
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        del output
        gradient = gradient * self.factor if self.head is None else gradient.copy()
        if self.head is not None:
            gradient[:, self.head] *= self.factor
        return self.of.backward(backend, gradient, self.of.forward(backend, *inputs), *inputs)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        region = self.of.widen(region, inputs, shape)
        return region if self.head is None else (range(shape[0]), *region[1:])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return self.of.reads(region, inputs)

    def explain(self, index: Index, *sources: Source) -> Working:
        right = self.of.explain(index, *sources)
        if self.head not in (None, index[0]):
            return right
        items = (*right.items, Value("· factor", self.factor))
        equation = f"({right.equation}) · {spoken(self.factor)}" if right.equation else ""
        return Working(items, self.factor * right.result, equation)


@dataclass(frozen=True)
class AddedTimes(Times):
    """What an operation adds to its first input, multiplied by a factor."""

    @property
    def formula(self) -> str:
        return f"{self.of.formula}, what is added × {self.factor:.4g}"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del out
        return inputs[0] + (self.of.forward(backend, *inputs) - inputs[0]) * self.factor

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        parts: Sequence[Array] = super().backward(backend, gradient, output, *inputs)
        return parts[0] + gradient * (1.0 - self.factor), *parts[1:]

    def explain(self, index: Index, *sources: Source) -> Working:
        right, cell = self.of.explain(index, *sources).result, sources[0].operand(*index)
        added = right - cell.value
        items = Value("score", cell.value, cell), Value("+ what is added", added), Value("· factor", self.factor)
        equation = f"{spoken(cell.value)} + {spoken(self.factor)} · {bracketed(added)}"
        return Working(items, cell.value + self.factor * added, equation)


@dataclass(frozen=True)
class MaskAround(Mask):
    """The mask with visible and hidden exchanged."""

    @property
    def formula(self) -> str:
        return "−∞ where a query may look"

    def hidden(self, queries: Array, keys: Array, visible: Array) -> Array:
        return ~super().hidden(queries, keys, visible)

    def explain(self, index: Index, *sources: Source) -> Working:
        hidden = super().explain(index, *sources).result == -math.inf
        cell = sources[0].operand(*index)
        note = "hidden by the right mask, seen by this" if hidden else "seen by the right mask, hidden by this"
        mask = Value("mask", 0.0 if hidden else -math.inf, note=note)
        return Working((Value("score", cell.value, cell), mask), cell.value if hidden else -math.inf)

    explain_backward = by_the_pass


@dataclass(frozen=True)
class DownColumns(Softmax):
    """The softmax over the queries in place of the keys."""

    definition = "e^s ÷ Σ e^s down a column"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del out
        turned = backend.like(inputs[0].swapaxes(-1, -2))
        turned[...] = inputs[0].swapaxes(-1, -2)
        return super().forward(backend, turned, out=turned).swapaxes(-1, -2)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        del inputs
        turned = (each.swapaxes(-1, -2) for each in (gradient, output))
        parts: Sequence[Array] = super().backward(backend, *turned)
        return (parts[0].swapaxes(-1, -2),)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        del inputs
        return (*region[:-2], range(shape[-2]), region[-1])

    def explain(self, index: Index, *sources: Source) -> Working:
        *head, row, column = index
        return _share(sources[0], index, (*head, None, column), row)

    explain_backward = by_the_pass


@dataclass(frozen=True)
class NaiveSoftmax(Softmax):
    """The softmax without taking off the largest score first: e^s overflows where a score is large."""

    definition = "e^s ÷ Σ e^s, without − max"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            powers = backend.xp.exp(inputs[0], out=backend.like(inputs[0]) if out is None else out)
            powers /= powers.sum(axis=-1, keepdims=True)
        return powers

    def explain(self, index: Index, *sources: Source) -> Working:
        return _share(sources[0], index, (*index[:-1], None), index[-1], top=0.0)


def _share(scores: Source, index: Index, line: tuple[int | None, ...], place: int, top: float | None = None) -> Working:
    """The share of a cell of its line of scores."""
    line_of_scores, cell = scores.factor(*line), scores.operand(*index)
    most = float(line_of_scores.values.max()) if top is None else top
    most = most if math.isfinite(most) else 0.0
    powers: Floats = np.exp(line_of_scores.values - most)
    total = Sum("Σ e^s" if top == 0.0 else "Σ e^(s − max)", (line_of_scores,), powers, "e^s")
    share = float(powers[place]) / (total.total or 1.0)
    return Working((Value("s", cell.value, cell), total, Value("e^s", float(powers[place]))), share)


class _Tiled(OfHeads):
    """Query head i reads head i mod g of the other input, as where those are tiled; i ÷ share is right."""

    def head_read(self, head: int, groups: int) -> int:
        return head % groups

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        del inputs
        return (range(shape[0]), *region[1:])

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        first, second = inputs
        tiled = backend.xp.tile(second, (1, self.share, 1, 1))
        return super().forward(backend, first, tiled, out=out)  # type: ignore[safe-super]  # of Scores or Context

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        first, second = inputs
        tiled = backend.xp.tile(second, (1, self.share, 1, 1))
        parts: Sequence[Array] = super().backward(backend, gradient, output, first, tiled)
        return parts[0], parts[1].reshape(len(gradient), self.share, *second.shape[1:]).sum(axis=1)

    explain_backward = by_the_pass


@dataclass(frozen=True)
class TiledScores(_Tiled, Scores):
    """The scores of tiled key heads."""

    definition = "Q Kᵀ, key heads tiled"


@dataclass(frozen=True)
class TiledContext(_Tiled, Context):
    """The weighted rows of tiled value heads."""

    definition = "weights · V, value heads tiled"


@dataclass(frozen=True)
class OtherPairs(Rotate):
    """Neighbouring columns turned together, in place of columns half a head apart; or the other way round."""

    is_inverse: bool = False

    @property
    def formula(self) -> str:
        return "columns 2i and 2i + 1 turned by θ = place · frequency"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del out
        x, places = inputs
        order = self._order(x.shape[-1])
        return super().forward(backend, x[..., order], places)[..., np.argsort(order)]

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        order = self._order(gradient.shape[-1])
        parts: Sequence[Array] = super().backward(backend, gradient[..., order], output, *inputs)
        return parts[0][..., np.argsort(order)], *parts[1:]

    def _order(self, width: int) -> list[int]:
        turned = 2 * self.half
        order = [*range(0, turned, 2), *range(1, turned, 2)]
        return [*(np.argsort(order).tolist() if self.is_inverse else order), *range(turned, width)]

    def explain(self, index: Index, *sources: Source) -> Working:
        x, places = sources
        order = self._order(x.shape[-1])

        def read(region: Region) -> Floats:
            *rows, columns = region
            everything: Floats = x.read((*rows, range(x.shape[-1])))
            return everything[..., order][..., columns.start : columns.stop]

        return super().explain((*index[:-1], order.index(index[-1])), _InOrder(x.name, x.shape, read, order), places)

    explain_backward = by_the_pass


@dataclass(frozen=True)
class _InOrder(Source):
    """Columns in another order; operands have their own places."""

    order: Sequence[int] = ()

    def operand(self, *index: int) -> Operand:
        return replace(super().operand(*index), index=(*index[:-1], self.order[index[-1]]))
