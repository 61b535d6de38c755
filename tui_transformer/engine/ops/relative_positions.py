"""Scores that depend on the distance from query to key: by a table, by a slope, by scores of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Item, Source, Sum, Value, Working, added
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.attention import Scores
from tui_transformer.engine.ops.base import EXACT, Gradients, Op, passed_on, single
from tui_transformer.records import dataclass


@functools.lru_cache(maxsize=64)
def bucket_of_distance(count: int, limit: int) -> tuple[int, ...]:
    """The bucket of every distance from 0 to `limit`, of `count` buckets; farther ones are in the last bucket too.

    The first half holds one distance each, the rest grow with the logarithm of the distance (Raffel et al. 2020, §2.1).
    """
    exact = count // 2
    whole = math.log(limit / exact)
    # The quotient comes first, as in the published models: another order rounds 64 of T5 down to the bucket before.
    far = (exact + int(math.log(distance / exact) / whole * (count - exact)) for distance in range(exact, limit))
    return *range(exact), *(min(bucket, count - 1) for bucket in far), count - 1


@dataclass(frozen=True)
class RelativeBias(Op):
    """Scores + B[bucket of key − query] of the head (Raffel et al. 2020, §2.1, as in T5).

    Inputs: scores (h × n × m), B (buckets × h), places of the queries (n), places of the keys (m). Keys from `limit`
    tokens away share the last bucket. `bidirectional` gives the second half of the buckets to keys after the query;
    without it those count as distance 0.
    """

    definition = "score + B[bucket(key − query)]"
    along = ((0, 1, 2), (None, 0), (1,), (2,))
    chain = ("∂y", "Σ ∂y of the cells in the bucket")
    overwrites = True
    limit: int
    bidirectional: bool

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Rows of B by bucket, brought from n × m × h to h × n × m."""
        scores, table, queries, keys = inputs
        buckets = self._buckets(backend, len(table), keys[:, None, :] - queries[:, :, None])
        bias = backend.xp.take(table, buckets, axis=0).swapaxes(2, 3).swapaxes(1, 2)
        return backend.xp.add(scores, bias, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s + B[bucket]; a bucket collects the gradients of all its cells."""
        _, table, queries, keys = inputs
        toward_table, cells = backend.xp.zeros_like(table), gradient.swapaxes(1, 2).swapaxes(2, 3)
        buckets = self._buckets(backend, len(table), keys[:, None, :] - queries[:, :, None])
        backend.xp.add.at(toward_table, buckets, cells)
        return gradient, toward_table, None, None

    def _buckets(self, backend: Backend, count: int, relative: Array) -> Array:
        """The rows, of so many of the table, for distances key − query (whole numbers, of any shape)."""
        xp, side = backend.xp, count // 2 if self.bidirectional else count
        distance = xp.abs(relative) if self.bidirectional else xp.maximum(-relative, 0)
        distance = xp.where(distance > self.limit, self.limit, distance)
        buckets = xp.take(backend.integers(bucket_of_distance(side, self.limit)), distance, axis=0)
        return xp.where(relative > 0, buckets + side, buckets) if self.bidirectional else buckets

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        scores, table, queries, keys = inputs
        cell, distance = scores.operand(*index), places_of(queries, row, keys, column)
        relative = int(distance[1].value - distance[0].value)
        bucket = int(self._buckets(EXACT, table.shape[0], np.int64(relative)))
        bias = table.operand(bucket, head)
        items = (
            cell.called("score"),
            *distance,
            Value("key − query", relative),
            Value("bucket", bucket, note=f"of {table.shape[0]}"),
            bias.called("+ B[bucket]"),
        )
        return Working(items, cell.value + bias.value, f"{spoken(cell.value)} + {bracketed(bias.value)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 0:
            return passed_on(gradient.operand(*index))
        bucket, head = index
        queries, keys = (source.line(None).astype(np.int64) for source in inputs[2:])
        found = np.flatnonzero(self._buckets(EXACT, inputs[1].shape[0], keys - queries[:, None]) == bucket)
        return single(added("Σ ∂y of the bucket", gradient.factor(head, None, None).some(found)))


def places_of(queries: Source, row: int, keys: Source, column: int) -> tuple[Value, Value]:
    """The places of a query and a key, as an explanation lists them."""
    query, key = queries.operand(row), keys.operand(column)
    return query.called("query", "place of the query"), key.called("key", "place of the key")


@dataclass(frozen=True)
class DistanceBias(Op):
    """score − slope of the head · |query − key| (Press et al. 2022, "Train Short, Test Long", §3).

    Inputs: scores (h × n × m), places of the queries (n), places of the keys (m).
    """

    definition = "score − slope · |query − key|"
    cost = 2
    undone_from = ()
    whole_axes = (0,)  # some of the heads would not know which slopes are their own
    along = ((0, 1, 2), (1,), (2,))
    chain = ("∂y",)
    overwrites = True
    slopes: tuple[float, ...]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        xp, (scores, queries, keys) = backend.xp, inputs
        distance = xp.abs(queries[:, None, :, None] - keys[:, None, None, :]).astype(scores.dtype)
        slopes = xp.asarray(self.slopes, dtype=scores.dtype)[:, None, None]
        return xp.subtract(scores, slopes * distance, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s − slope · distance; the places have no gradient."""
        return gradient, None, None

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        cell, places = inputs[0].operand(*index), places_of(inputs[1], row, inputs[2], column)
        distance = abs(places[0].value - places[1].value)
        items = (
            cell.called("score"),
            *places,
            Value("− slope · |query − key|", self.slopes[head] * distance, note=f"slope {self.slopes[head]:.6g}"),
        )
        left = f"{spoken(cell.value)} − {spoken(self.slopes[head])} · {spoken(distance)}"
        return Working(items, cell.value - self.slopes[head] * distance, left)


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
        return "Q K_rᵀ" if self.side == QUERY_TO_DISTANCE else "K Q_rᵀ"

    def axes(self, *inputs: Axes) -> Axes:
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

    overwrites = True
    sides: tuple[str, ...]
    factor: float
    span: int
    buckets: int = 0
    farthest: int = 0

    @property
    def formula(self) -> str:
        parts = {QUERY_TO_DISTANCE: "Q K_rᵀ[query, δ]", KEY_TO_DISTANCE: "K Q_rᵀ[key, δ]"}
        return f"score + ({' + '.join(parts[side] for side in self.sides)}) · {self.factor:.4g}"

    def row(self, relative: Any, xp: Any = np) -> Any:
        """δ, the row of distances query − key (whole numbers, of any shape), from 0 to 2k − 1."""
        if self.buckets:  # up to half of them as they are, then by the logarithm (published code of DeBERTa-v2)
            middle, distance = self.buckets // 2, xp.abs(relative)
            far = xp.log(xp.maximum(distance, middle) / middle) / math.log((self.farthest - 1) / middle) * (middle - 1)
            logarithmic = (xp.ceil(far) + middle).astype(distance.dtype) * xp.sign(relative)
            relative = xp.where(distance <= middle, relative, logarithmic)
        return xp.clip(relative + self.span, 0, 2 * self.span - 1)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        xp, rows = backend.xp, self._rows(backend, *inputs[-2:])
        relative = []
        for side, scores in zip(self.sides, inputs[1:-2], strict=True):  # h × n × m of tokens with distances
            turned = rows.swapaxes(1, 2) if side == KEY_TO_DISTANCE else rows
            places = xp.broadcast_to(turned[:, None], (*scores.shape[:3], turned.shape[-1]))
            at_distances = xp.take_along_axis(scores, places, axis=3)
            relative.append(at_distances.swapaxes(2, 3) if side == KEY_TO_DISTANCE else at_distances)
        result = backend.like(inputs[0]) if out is None else out
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
        return self.row(queries[:, :, None] - keys[:, None, :], backend.xp)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        heads, rows, columns = region
        lines = {QUERY_TO_DISTANCE: rows, KEY_TO_DISTANCE: columns}
        return region, *((heads, lines[side], range(2 * self.span)) for side in self.sides), (rows,), (columns,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        cell, places = inputs[0].operand(*index), places_of(inputs[-2], row, inputs[-1], column)
        relative = round(places[0].value - places[1].value)
        place = int(self.row(np.int64(relative)))
        items: list[Item] = [
            cell.called("score"),
            *places,
            Value("δ", place, note=f"row of {2 * self.span} for the distance {relative}"),
        ]
        total, left = cell.value, spoken(cell.value)
        for side, scores in zip(self.sides, inputs[1:-2], strict=True):
            operand = scores.operand(head, row if side == QUERY_TO_DISTANCE else column, place)
            items.append(Value(f"+ {side} with δ · {self.factor:.4g}", operand.value * self.factor, operand))
            total += operand.value * self.factor
            left += f" + {bracketed(operand.value * self.factor)}"
        return Working(tuple(items), total, left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        if toward == 0:
            return passed_on(gradient.operand(*index))
        head, line, place = index
        queries, keys = (source.read((range(source.shape[0]),)) for source in inputs[-2:])
        of_a_query = self.sides[toward - 1] == QUERY_TO_DISTANCE
        relative = queries[line] - keys if of_a_query else queries - keys[line]
        cells = gradient.factor(head, line, None) if of_a_query else gradient.factor(head, None, line)
        cells = cells.some(np.flatnonzero(self.row(relative.astype(np.int64)) == place))
        return single(Sum(f"Σ ∂y · {self.factor:.4g} of the distance", (cells,), cells.values * self.factor, "term"))

    def gradient_formula(self, toward: int) -> str:
        if toward > len(self.sides):
            return ""
        return "∂y" if toward == 0 else "Σ ∂y of the cells at the distance · factor"

    def flops(self, *inputs: Axes) -> int:
        return (1 + len(self.sides)) * super().flops(*inputs)
