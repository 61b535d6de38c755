"""Terms that are added to the scores of an attention: the description of each kind builds its step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Disentangle, DistanceBias, DistanceScores, Project, RelativeBias
from tui_transformer.engine.program import Builder
from tui_transformer.model.sequence import Sequence


@dataclass(frozen=True)
class RelativePositions:
    """A number for the head and the distance of query and key, from a table (Raffel et al. 2020, §2.1).

    Attributes:
        table: The weight, by its whole name: the layers of a stack may share one.
        buckets: Its rows.
        limit: Keys from so many tokens away share the last bucket.
        bidirectional: Half of the buckets is for keys after the query.
        in_order: Distances count tokens, whatever places they have in a table of positions.
    """

    table: str
    buckets: int
    limit: int
    bidirectional: bool
    in_order: bool = False

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`."""
        del key
        axes = Axis("bucket", self.buckets), build.known[query][0]
        table = build.shared_weight(self.table, *axes)
        places = (_order(build, queries),) * 2 if self.in_order else (queries.places, keys.keys)
        return build("biased", RelativeBias(self.limit, self.bidirectional), scores, table, *places)


@dataclass(frozen=True)
class Distances:
    """The distance of query and key times a slope of the head, taken off (Press et al. 2022, §3).

    Attributes:
        slopes: One for every head.
    """

    slopes: tuple[float, ...]

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`."""
        del query, key
        return build("biased", DistanceBias(self.slopes), scores, queries.places, keys.keys)


@dataclass(frozen=True)
class Disentangled:
    """Scores of queries and of keys with the distance between them (He et al. 2021, "DeBERTa", §3.1).

    Attributes:
        vectors: The step that holds a vector for every distance.
        sides: Which of "query" and "key" are compared with distances.
        factor: What those scores are multiplied by.
        shared: Distances are projected like tokens, by the same matrices.
        span: Rows of distances on either side.
        buckets: Rows whose distances grow with the logarithm, on both sides; 0 for one a distance.
        farthest: The distance that the last of them is for.
    """

    vectors: str
    sides: tuple[str, ...]
    factor: float
    shared: bool
    span: int
    buckets: int
    farthest: int

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`, and the projections of distances and their scores before it."""
        tokens = {"query": query, "key": key}
        projections = [self._side(build, side, tokens[side]) for side in self.sides]
        op = Disentangle(self.sides, self.factor, self.span, self.buckets, self.farthest)
        return build("biased", op, scores, *projections, queries.places, keys.keys)

    def _side(self, build: Builder, side: str, tokens: str) -> str:
        """Queries with the keys of distances, or keys with their queries."""
        other, letter = {"query": ("key", "K_r"), "key": ("query", "Q_r")}[side]
        head, _, width = build.known[tokens]
        weights, axis = other if self.shared else f"distance_{other}", Axis("heads · width", head.size * width.size)
        matrix = build.weight(f"{weights}.weight", build.known[self.vectors][-1], axis)
        bias = build.weight(f"{weights}.bias", axis)
        distances = build(f"distance_{other}", Project(width.size, letter), self.vectors, matrix, bias)
        return build(f"{side}_distance_scores", DistanceScores(side=side), tokens, distances)


def _order(build: Builder, tokens: Sequence) -> str:
    return build.given(f"{tokens.places.rpartition('.')[0]}.order", *build.known[tokens.places])


def alibi_slopes(heads: int, divisor: float = 1.0) -> tuple[float, ...]:
    """Slopes of the heads as published: 2^(−8/h), 2^(−16/h) … for a power of 2; else those and every second between.

    Press et al. 2022, §3, and the code that goes with it. ÷ `divisor` where biased scores are divided after it.
    """
    whole = 2 ** int(math.log2(heads))
    first = tuple(2.0 ** (-8.0 * (i + 1) / whole) for i in range(whole))
    between = tuple(2.0 ** (-8.0 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole))
    return tuple(slope / divisor for slope in first + between)
