"""What is added to the scores of an attention: the description of each kind builds its step."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import DistanceBias, RelativeBias
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


def _order(build: Builder, tokens: Sequence) -> str:
    """The input 0, 1, 2 … of a sequence that is computed whole."""
    return build.given(f"{tokens.places.rpartition('.')[0]}.order", *build.known[tokens.places])
