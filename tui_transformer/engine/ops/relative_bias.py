"""Relative bias: scores plus a number for the head and the distance from query to key."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Value, Working, added
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, single
from tui_transformer.engine.spoken import bracketed, spoken


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

    chain: ClassVar[tuple[str, ...]] = ("∂y", "Σ ∂y of the cells in the bucket")
    overwrites: ClassVar[bool] = True
    limit: int
    bidirectional: bool

    @property
    def formula(self) -> str:
        """The sum."""
        return "score + B[bucket(key − query)]"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Rows of B by bucket, brought from n × m × h to h × n × m."""
        scores, table = inputs[:2]
        bias = backend.xp.take(table, self._buckets(backend, *inputs[1:]), axis=0).swapaxes(2, 3).swapaxes(1, 2)
        return backend.xp.add(scores, bias, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s + B[bucket]; a bucket collects the gradients of all its cells."""
        toward_table = backend.xp.zeros_like(inputs[1])
        cells = gradient.swapaxes(1, 2).swapaxes(2, 3)
        backend.xp.add.at(toward_table, self._buckets(backend, *inputs[1:]), cells)
        return gradient, toward_table, None, None

    def _buckets(self, backend: Backend, table: Array, queries: Array, keys: Array) -> Array:
        """B × n × m, the row of the table for every query and key."""
        xp, side = backend.xp, self._side(table.shape[0])
        relative = keys[:, None, :] - queries[:, :, None]
        distance = xp.abs(relative) if self.bidirectional else xp.maximum(-relative, 0)
        distance = xp.where(distance > self.limit, self.limit, distance)
        buckets = xp.take(backend.integers(bucket_of_distance(side, self.limit)), distance, axis=0)
        return xp.where(relative > 0, buckets + side, buckets) if self.bidirectional else buckets

    def _side(self, count: int) -> int:
        """How many buckets the keys on one side of the query have."""
        return count // 2 if self.bidirectional else count

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same scores, the heads' columns of the table, and the places of its queries and keys."""
        heads, rows, columns = region
        return region, (range(inputs[1][0]), heads), (rows,), (columns,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, how far the key is from the query, its bucket, and the bucket's bias."""
        head, row, column = index
        scores, table, queries, keys = sources
        cell, query, key = scores.operand(*index), queries.operand(row), keys.operand(column)
        relative = int(key.value - query.value)
        bucket = self._bucket(relative, table.shape[0])
        bias = table.operand(bucket, head)
        items = (
            Value("score", cell.value, cell),
            Value("query", query.value, query, "place of the query"),
            Value("key", key.value, key, "place of the key"),
            Value("key − query", relative),
            Value("bucket", bucket, note=f"of {table.shape[0]}"),
            Value("+ B[bucket]", bias.value, bias),
        )
        return Working(items, cell.value + bias.value, f"{spoken(cell.value)} + {bracketed(bias.value)}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient itself; for a bucket of a head, the sum over its cells."""
        if toward == 0:
            return passed_on(gradient.operand(*index))
        bucket, head = index
        queries, keys = (source.read((range(source.shape[0]),)) for source in sources[2:])
        places = [
            (head, row, column)
            for row, query in enumerate(queries)
            for column, key in enumerate(keys)
            if self._bucket(int(key - query), sources[1].shape[0]) == bucket
        ]
        cells = gradient.terms(head, None, None).values.reshape(len(queries), len(keys))
        values = np.array([cells[place[1:]] for place in places], dtype=np.float64)
        return single(added("Σ ∂y of the bucket", Factor(gradient.name, places.__getitem__, values)))

    def _bucket(self, relative: int, count: int) -> int:
        """The bucket of one distance."""
        distance = abs(relative) if self.bidirectional else max(-relative, 0)
        bucket = bucket_of_distance(self._side(count), self.limit)[min(distance, self.limit)]
        return bucket + self._side(count) if self.bidirectional and relative > 0 else bucket
