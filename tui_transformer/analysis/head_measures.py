"""Measures of every head of a model, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Attention, Reader, Rows
from tui_transformer.analysis.head_pictures import SIDE, Pictures, largest
from tui_transformer.analysis.heads import MEASURES, Measure
from tui_transformer.analysis.heads.entropy import ENTROPY
from tui_transformer.analysis.progress import Report, prepared, silent
from tui_transformer.analysis.statistics import row_sample
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace

MOST_WEIGHTS = 1 << 25
"""Weights of one attention step that are read at most; of more, queries are taken at even distances."""

TOGETHER = 8
"""Neighbouring queries that are taken together then."""


@dataclass(frozen=True, eq=False)
class LayerMeasures:
    """The measures of the heads of one attention step.

    Attributes:
        attention: The step.
        values: Measure → a number for every head; NaN where it has none.
        queries: How many queries were read.
        real: How many there are, padding and hidden tokens aside.
        few: Queries that entropy leaves out, as they may look at fewer keys than it asks for.
        pictures: Heads × at most `SIDE` × at most `SIDE`; see `head_pictures`.
    """

    attention: Attention
    values: Mapping[str, tuple[float, ...]]
    queries: int
    real: int
    few: int
    pictures: Host

    @property
    def sampled(self) -> bool:
        """Whether only some queries, at even distances, were read."""
        return self.queries < self.real

    @cached_property
    def largest(self) -> float:
        """The largest cell of all pictures."""
        return largest(self.pictures)


def head_measures(
    trace: Trace, steps: Iterable[Attention], reader: Reader, report: Report = silent
) -> Iterator[LayerMeasures]:
    """The measures of all heads of these steps, one step after the other."""
    return (layer_measures(trace, step, reader, report) for step in steps)


def layer_measures(
    trace: Trace, step: Attention, reader: Reader, report: Report = silent, most: int = MOST_WEIGHTS
) -> LayerMeasures:
    """The mean of every measure over the queries that count, of every head of a step.

    Args:
        trace: Whose weights.
        step: Which attention.
        reader: What is hidden, and what is known of the tokens.
        report: Told how far the work is; what it raises ends it.
        most: Weights that are read; of more, queries at even distances.
    """
    counted = np.flatnonzero(reader.counted(prepared(trace, step.name, report), step))
    runs = _sample(counted, step.heads * step.keys.size, most)
    means, pictures = Means(MEASURES, step.heads), Pictures(step)
    for rows in reader.rows(trace, step, runs):
        report(f"{step.name} · query {rows.queries[0]:,} of {step.queries.size:,}")
        means.add(rows)
        pictures.add(rows)
    return LayerMeasures(
        step, means.means(), sum(map(len, runs)), len(counted), means.few(ENTROPY), pictures.pictures()
    )


def _sample(counted: Host, columns: int, most: int) -> tuple[range, ...]:
    """The queries that are read: all, or neighbours at even distances, so many that every row of a picture has some."""
    together = max(1, min(TOGETHER, most // columns // SIDE))
    return row_sample(counted.tolist(), columns, most, together)


class Means:
    """Sums of measures over queries, and their means.

    Queries that may look at fewer keys than a measure asks for count only where none may look at more.
    """

    def __init__(self, measures: Sequence[Measure], heads: int) -> None:
        self._measures, self._heads = measures, heads
        self._numbers: list[tuple[Host, list[Host]]] = []

    def add(self, rows: Rows) -> None:
        """Count some more queries."""
        self._numbers.append((rows.seen, [measure.rows(rows) for measure in self._measures]))

    @cached_property
    def _seen(self) -> Host:
        return np.concatenate([seen for seen, _ in self._numbers])

    def few(self, measure: Measure) -> int:
        """Queries that a measure leaves out: in every head they may look at fewer keys than it asks for."""
        if not self._numbers or int(self._seen.max(initial=0)) < measure.fewest:
            return 0
        return int((np.atleast_2d(self._seen) < measure.fewest).all(axis=0).sum())

    def means(self) -> dict[str, tuple[float, ...]]:
        """Measure → the mean of every head."""
        if not self._numbers:
            return {measure.name: (math.nan,) * self._heads for measure in self._measures}
        columns = zip(*(numbers for _, numbers in self._numbers), strict=True)
        return {
            measure.name: self._mean(measure, np.concatenate(column, axis=1))
            for measure, column in zip(self._measures, columns, strict=True)
        }

    def _mean(self, measure: Measure, values: Host) -> tuple[float, ...]:
        values = counted_only(values, self._seen, measure.fewest)
        counted = ~np.isnan(values)
        total, count = np.where(counted, values, 0.0).sum(axis=1), counted.sum(axis=1)
        return tuple(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0).tolist())


def left_out(measures: LayerMeasures) -> str:
    """Which queries entropy leaves out: ` (without the 2 queries that see fewer than 3 keys)`; "" for none."""
    queries = "query that sees" if measures.few == 1 else f"{measures.few:,} queries that see"
    return f" (without the {queries} fewer than {ENTROPY.fewest} keys)" if measures.few else ""


def counted_only(values: Host, seen: Host, fewest: int) -> Host:
    """Heads × queries, NaN for queries that may look at fewer keys, unless none may look at more.

    Args:
        values: Heads × queries.
        seen: How many keys each query may look at.
        fewest: How many it should.
    """
    counted: Host = np.where(seen >= min(fewest, int(seen.max(initial=0))), values, np.nan)
    return counted
