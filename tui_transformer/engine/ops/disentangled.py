"""Disentangled attention: scores of contents with each other and with the distance between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Item, Source, Sum, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, single
from tui_transformer.engine.ops.scores import Scores
from tui_transformer.engine.spoken import bracketed, spoken

QUERY_TO_DISTANCE, KEY_TO_DISTANCE = "query", "key"


@dataclass(frozen=True)
class DistanceScores(Scores):
    """Scores of tokens with distances (He et al. 2021, "DeBERTa", §3.1).

    Inputs: queries or keys of the tokens (h × n × d_k), keys or queries of the distances (h × r × d_k). Result:
    h × n × r. `side` says which the tokens are: "query" or "key".
    """

    side: str = QUERY_TO_DISTANCE

    @property
    def formula(self) -> str:
        """The product of the paper."""
        return "Q K_rᵀ" if self.side == QUERY_TO_DISTANCE else "K Q_rᵀ"

    def axes(self, *inputs: Axes) -> Axes:
        """Heads × tokens × distances."""
        (head, tokens, _), (_, distances, _) = inputs
        return head, tokens.named(self.side), distances


@dataclass(frozen=True)
class Disentangle(Op):
    """score + (c2p[query, δ] + p2c[key, δ]) · factor, where δ is the row of the distance (He et al. 2021, equation 4).

    Inputs: scores (h × n × m); for each of `sides` the scores of queries (h × n × 2k) or keys (h × m × 2k) with
    distances; places of the queries (n) and of the keys (m).

    Attributes:
        sides: Which of "query" and "key" have scores with distances.
        factor: What those are multiplied by.
        span: k: rows of distances on either side.
        buckets: How many distances have rows of their own, on both sides together; far ones share rows that grow with
            the logarithm. 0 where every distance up to `span` has one.
        farthest: The distance that the last of those rows is for.
    """

    overwrites: ClassVar[bool] = True
    sides: tuple[str, ...]
    factor: float
    span: int
    buckets: int = 0
    farthest: int = 0

    @property
    def formula(self) -> str:
        """The sum."""
        parts = {QUERY_TO_DISTANCE: "Q K_rᵀ[query, δ]", KEY_TO_DISTANCE: "K Q_rᵀ[key, δ]"}
        return f"score + ({' + '.join(parts[side] for side in self.sides)}) · {self.factor:.4g}"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

    def row(self, relative: Any, xp: Any = np) -> Any:
        """δ, the row of distances query − key (whole numbers, of any shape), from 0 to 2k − 1."""
        rows = relative if self.buckets == 0 else self._bucket(relative, xp)
        return xp.clip(rows + self.span, 0, 2 * self.span - 1)

    def _bucket(self, relative: Any, xp: Any) -> Any:
        """Distances up to half of the buckets as they are, then by the logarithm (published code of DeBERTa-v2)."""
        middle = self.buckets // 2
        distance = xp.abs(relative)
        far = xp.log(xp.maximum(distance, middle) / middle) / math.log((self.farthest - 1) / middle) * (middle - 1)
        logarithmic = (xp.ceil(far) + middle).astype(distance.dtype) * xp.sign(relative)
        return xp.where(distance <= middle, relative, logarithmic)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The scores, and those of the distances between query and key."""
        xp, rows = backend.xp, self._rows(backend, *inputs[-2:])
        result = backend.like(inputs[0]) if out is None else out
        relative = [self._at(xp, side, scores, rows) for side, scores in zip(self.sides, inputs[1:-2], strict=True)]
        return xp.add(inputs[0], sum(relative[1:], relative[0]) * self.factor, out=result)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s + (a[query, δ] + b[key, δ]) · factor; a row collects the gradients of all its cells."""
        xp, rows = backend.xp, self._rows(backend, *inputs[-2:])
        gradients = []
        for side, scores in zip(self.sides, inputs[1:-2], strict=True):
            toward = xp.zeros_like(scores)
            batch, heads, lines = (xp.arange(size) for size in toward.shape[:3])
            cells, places = (
                (gradient, rows) if side == QUERY_TO_DISTANCE else (gradient.swapaxes(2, 3), rows.swapaxes(1, 2))
            )
            index = (batch[:, None, None, None], heads[:, None, None], lines[:, None], places[:, None])
            xp.add.at(toward, index, cells * self.factor)
            gradients.append(toward)
        return gradient, *gradients, None, None

    def _rows(self, backend: Backend, queries: Array, keys: Array) -> Array:
        """B × n × m, the row for every query and key."""
        return self.row(queries[:, :, None] - keys[:, None, :], backend.xp)

    def _at(self, xp: Any, side: str, scores: Array, rows: Array) -> Array:
        """H × n × m of the scores of tokens with distances."""
        if side == KEY_TO_DISTANCE:
            rows = rows.swapaxes(1, 2)
        shape = (*scores.shape[:3], rows.shape[-1])
        at_distances = xp.take_along_axis(scores, xp.broadcast_to(rows[:, None], shape), axis=3)
        return at_distances.swapaxes(2, 3) if side == KEY_TO_DISTANCE else at_distances

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same scores, all distances of their queries and keys, and the places of those."""
        heads, rows, columns = region
        lines = {QUERY_TO_DISTANCE: rows, KEY_TO_DISTANCE: columns}
        return region, *((heads, lines[side], range(2 * self.span)) for side in self.sides), (rows,), (columns,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, how far the key is from the query, and what both make of that distance."""
        head, row, column = index
        cell, query, key = sources[0].operand(*index), sources[-2].operand(row), sources[-1].operand(column)
        relative = round(query.value - key.value)
        place = int(self.row(np.int64(relative)))
        items: list[Item] = [
            Value("score", cell.value, cell),
            Value("query", query.value, query, "place of the query"),
            Value("key", key.value, key, "place of the key"),
            Value("δ", place, note=f"row of {2 * self.span} for the distance {relative}"),
        ]
        total, left = cell.value, spoken(cell.value)
        for side, scores in zip(self.sides, sources[1:-2], strict=True):
            operand = scores.operand(head, row if side == QUERY_TO_DISTANCE else column, place)
            items.append(Value(f"+ {side} with δ · {self.factor:.4g}", operand.value * self.factor, operand))
            total += operand.value * self.factor
            left += f" + {bracketed(operand.value * self.factor)}"
        return Working(tuple(items), total, left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working | None:
        """The gradient itself; for a distance of a token, the sum over its cells, times the factor."""
        if toward == 0:
            return passed_on(gradient.operand(*index))
        head, line, place = index
        queries, keys = (source.read((range(source.shape[0]),)) for source in sources[-2:])
        of_a_query = self.sides[toward - 1] == QUERY_TO_DISTANCE
        relative = queries[line] - keys if of_a_query else queries - keys[line]
        others = [int(i) for i in np.flatnonzero(self.row(relative.astype(np.int64)) == place)]
        cells = [(head, line, other) if of_a_query else (head, other, line) for other in others]
        values = np.array([gradient.cell(*cell) for cell in cells], dtype=np.float64)
        factor = Factor(gradient.name, cells.__getitem__, values)
        return single(Sum(f"Σ ∂y · {self.factor:.4g} of the distance", (factor,), values * self.factor, "term"))

    def gradient_formula(self, toward: int) -> str:
        """∂y for the scores, sums of it for the distances."""
        if toward > len(self.sides):
            return ""
        return "∂y" if toward == 0 else "Σ ∂y of the cells at the distance · factor"

    def flops(self, *inputs: Axes) -> int:
        """A product and a sum a cell for each side."""
        return (1 + len(self.sides)) * super().flops(*inputs)
