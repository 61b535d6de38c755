"""Measures of every head of a model, layer by layer, and pictures of what it looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Attention, Reader, Report, Rows, prepared, silent
from tui_transformer.analysis.measures import ENTROPY, FEWEST_KEYS, HEAD_MEASURES, Measure, row_entropy
from tui_transformer.analysis.statistics import CELLS, means_of, row_sample
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass

MOST_WEIGHTS = 1 << 25
"""Weights of one attention step that are read at most; of more, queries are taken at even distances."""

TOGETHER = 8
"""Neighbouring queries that are taken together then."""


@dataclass(frozen=True, eq=False)
class LayerMeasures:
    """The measures of one attention step: of each a number for every head, NaN where it has none.

    So many `queries` were read of the `real` ones, padding and hidden tokens aside; entropy leaves out `few`, as they
    may look at fewer keys than it asks for. `pictures`: heads × at most `SIDE` × at most `SIDE`; see `Pictures`.
    """

    attention: Attention
    values: Mapping[str, tuple[float, ...]]
    queries: int
    real: int
    few: int
    pictures: Host

    @property
    def sampled(self) -> bool:
        """True if only some queries, at even distances, were read."""
        return self.queries < self.real

    @cached_property
    def largest(self) -> float:
        """The largest cell of all pictures."""
        return largest(self.pictures)


def layer_measures(
    trace: Trace, step: Attention, reader: Reader, report: Report = silent, most: int = MOST_WEIGHTS
) -> LayerMeasures:
    """The mean of every measure over the queries that count, of every head of a step.

    Of more weights than `most` queries are read at even distances. `report` is told how far the work is; what it raises
    ends it.
    """
    counted = np.flatnonzero(reader.counted(prepared(trace, step.name, report), step))
    columns = step.heads * step.keys.size
    runs = row_sample(counted.tolist(), columns, most, max(1, min(TOGETHER, most // columns // SIDE)))
    pictures = Pictures(step)

    def blocks() -> Iterator[Rows]:
        for rows in reader.rows(trace, step, runs):
            report(f"{step.name} · query {rows.queries[0]:,} of {step.queries.size:,}")
            pictures.add(rows)
            yield rows

    seen, numbers = query_numbers(blocks(), HEAD_MEASURES)
    none = np.full((step.heads, 0), np.nan)
    values = {each.name: numbers.get(each.name, none) for each in HEAD_MEASURES}
    means = {name: means_of(each, ~np.isnan(each)) for name, each in values.items()}
    few = int((seen < ENTROPY.fewest).sum()) if (seen >= ENTROPY.fewest).any() else 0
    return LayerMeasures(step, means, sum(map(len, runs)), len(counted), few, pictures.pictures())


def query_numbers(blocks: Iterable[Rows], measures: Sequence[Measure]) -> tuple[Host, dict[str, Host]]:
    """How many keys each query may look at, and row of a measure → heads × queries.

    Queries that may look at fewer keys than a measure asks for have NaN, unless none may look at more.
    """
    seen: list[Host] = []
    parts: dict[str, tuple[Measure, list[Host]]] = {}
    for rows in blocks:
        seen.append(rows.seen)
        for measure in measures:
            for name, values in (measure.columns(rows) if measure.columns else {}).items():
                parts.setdefault(name, (measure, []))[1].append(values)
    keys = np.concatenate(seen) if seen else np.zeros(0, np.int64)
    most = int(keys.max(initial=0))
    return keys, {
        name: np.where(keys >= min(measure.fewest, most), np.concatenate(values, axis=1), np.nan)
        for name, (measure, values) in parts.items()
    }


def left_out(measures: LayerMeasures) -> str:
    """Which queries entropy leaves out: ` (without the 2 queries that see fewer than 3 keys)`; "" for none."""
    queries = "query that sees" if measures.few == 1 else f"{measures.few:,} queries that see"
    return f" (without the {queries} fewer than {ENTROPY.fewest} keys)" if measures.few else ""


# Entropy as a chart shows it


@dataclass(frozen=True)
class HeadEntropy:
    """The mean entropy of every head of one attention step, and that relative to the most that the visible keys allow.

    Relative ones are NaN where no query sees two keys. The means are over so many `queries` of the `real` tokens: those
    that see at least `keys` keys; the most that a query sees are `most_keys`. `sampled`: only evenly spaced queries
    were read.
    """

    bits: tuple[float, ...]
    relative: tuple[float, ...]
    keys: int
    most_keys: int
    queries: int
    real: int
    sampled: bool


def relative_entropy(entropy: Host, keys: Host) -> Host:
    """Entropy in bits ÷ log₂ of the number of visible keys; NaN where fewer than two are visible."""
    share: Host = np.full(entropy.shape, np.nan)
    return np.divide(entropy, np.log2(np.maximum(keys, 1)), out=share, where=keys > 1)


def head_entropy(trace: Trace, name: str, item: int = 0, cells: int = CELLS) -> HeadEntropy:
    """The entropy of every head of an attention step (`….weights`), from at most about `cells` weights."""
    step = Attention.of(trace.program.step(name))
    real = np.flatnonzero(real_tokens(trace, step.queries, item))
    rows = [*Reader(item=item).rows(trace, step, row_sample(real.tolist(), step.heads * step.keys.size, cells))]
    entropy = np.concatenate([row_entropy(each.weights) for each in rows], axis=1)
    visible = np.concatenate([each.seen for each in rows])
    fewest = min(FEWEST_KEYS, int(visible.max()))
    enough = np.broadcast_to(visible >= fewest, entropy.shape)
    return HeadEntropy(
        bits=means_of(entropy, enough),
        relative=means_of(relative_entropy(entropy, visible), enough & (visible > 1)),
        keys=fewest,
        most_keys=int(visible.max()),
        queries=int(enough.any(axis=0).sum()),
        real=len(real),
        sampled=entropy.shape[1] < len(real),
    )


# Pictures

SIDE = 32
"""The most rows and columns of a picture."""


class Pictures:
    """The attention of the heads of one step in a few cells, whatever the number of tokens, from some of its queries.

    Neighbouring queries and keys are taken together: a cell is Σ_j A_ij over the keys of a group, averaged over the
    queries of a group. So a picture is attention again: the shares that a group of queries gives to groups of keys,
    every row summing to 1. Where there are few tokens, a group is one token and the cell its weight.
    """

    def __init__(self, step: Attention) -> None:
        self._queries, self._keys = step.queries.size, step.keys.size
        height, width = min(SIDE, self._queries), min(SIDE, self._keys)
        self._starts = [-(-self._keys * column // width) for column in range(width)]
        self._sums = np.zeros((step.heads, height, width))
        self._counts = np.zeros(height)
        self._visible = np.zeros((height, width), dtype=np.bool_)

    def add(self, rows: Rows) -> None:
        """Count some more queries."""
        height = len(self._counts)
        group = np.arange(height)[:, None] == rows.queries * height // self._queries  # groups × queries
        self._sums += group.astype(np.float32) @ np.add.reduceat(rows.weights, self._starts, axis=2)
        self._counts += group.sum(axis=1)
        visible = np.logical_or.reduceat(rows.visible, self._starts, axis=1)
        self._visible |= group.astype(np.float32) @ visible > 0

    def pictures(self) -> Host:
        """Heads × rows × columns; NaN where no query of a group may look at any key of a group."""
        counts = np.maximum(self._counts, 1.0)[:, None]
        return np.asarray(np.where(self._visible, self._sums / counts, np.nan).astype(np.float32))


def largest(pictures: Host) -> float:
    """The largest cell of pictures (… × rows × columns) in rows that have a choice of several columns; 1 for none."""
    seen = ~np.isnan(pictures)
    free = seen & (seen.sum(axis=-1, keepdims=True) > 1)
    return float(np.max(pictures, initial=0.0, where=free)) or 1.0


def smaller(picture: Host, height: int, width: int) -> Host:
    """A picture with at most so many rows and columns: columns added up, rows averaged, in groups."""
    rows, columns = picture.shape
    if columns > width:
        picture = _grouped(picture, width, axis=1)
    if rows <= height:
        return picture
    counts = np.add.reduceat(~np.isnan(picture).all(axis=1), _starts(rows, height))
    return np.asarray(_grouped(picture, height, axis=0) / np.maximum(counts, 1)[:, None])


def _grouped(picture: Host, size: int, axis: int) -> Host:
    """Sums of groups; NaN where all of a group is NaN."""
    starts = _starts(picture.shape[axis], size)
    total = np.add.reduceat(np.nan_to_num(picture), starts, axis=axis)
    empty = np.logical_and.reduceat(np.isnan(picture), starts, axis=axis)
    return np.asarray(np.where(empty, np.nan, total))


def _starts(count: int, size: int) -> list[int]:
    return [count * group // size for group in range(size)]
