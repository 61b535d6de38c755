"""Measures: a number of every head, neuron or layer, in one text or in each of many; their form and what heads have.

A measure of queries has a number for every query of every head, from the attention weights; that of a text is the mean
over its queries. All of them are read in one pass over the weights, be it of one text (`head_measures.py`) or of many
(`survey/measures.py`), where other measures read a text as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Attention, Rows, attentions
from tui_transformer.analysis.metrics import AnyMetric, MetricName
from tui_transformer.analysis.statistics import means_of
from tui_transformer.analysis.tokens import KINDS
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
from tui_transformer.records import dataclass

WHOLE = -2
"""The layer of what is measured of the model as a whole."""

EMBEDDING = -1
"""The layer of what enters layer 0."""

HEAD, NEURON, FEATURE, MODEL = "head", "neuron", "feature", "model"


@dataclass(frozen=True)
class Measure:
    """Something that is measured, by its queries or of a text as a whole.

    The rows of a survey have its `name`, or begin with it and a colon; those in `without` have no unit. The `formula`
    is of one query i.

    `columns`, by the names of rows, are the numbers of some queries (heads × queries), NaN where a query has none; the
    names are the same for all queries of a step. Queries that may look at fewer than `fewest` keys are left out: they
    have little or no choice. A measure that is not of queries has `readings` of a text instead.
    """

    name: str
    title: str
    unit: str = ""
    formula: str = ""
    columns: Callable[[Rows], Mapping[str, Host]] | None = None
    fewest: int = 2
    readings: Callable[[Text], Iterable[Reading]] | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class Place:
    """The part of the model that a measure is of.

    `part`: `decoder self-attention`, `encoder feed-forward` …, or "" for the model as a whole; `layer`: from 0,
    `EMBEDDING` or `WHOLE`; `measure`: `induction`, `distance:1`; `unit`: what there is a number of, `HEAD`, `NEURON`,
    `FEATURE` or `MODEL`.
    """

    part: str
    layer: int
    measure: str
    unit: str = HEAD


@dataclass(frozen=True, eq=False)
class Reading:
    """A measure in one text: of every unit its number (NaN for none), the largest of a token, and that token."""

    place: Place
    values: Host
    strongest: Host
    positions: Host

    @classmethod
    def of_tokens(cls, place: Place, values: Host, tokens: Host) -> Reading:
        """From a number for every token (units × tokens, NaN where it has none): the mean, and the largest."""
        mean = np.array(means_of(values, ~np.isnan(values)), np.float64)
        if not values.shape[1]:
            return cls(place, mean, mean, np.zeros(len(mean), np.int64))
        at = np.where(np.isnan(values), -np.inf, values).argmax(axis=1)
        largest = np.take_along_axis(values, at[:, None], axis=1)[:, 0].astype(np.float64)
        return cls(place, mean, largest, np.asarray(tokens)[at])


@dataclass(frozen=True, eq=False)
class Text:
    """One text as a model reads it.

    Only `layers` are looked at, None for all. Ablations are measured by the `metric`, or that of a name and its tokens;
    None for the usual one.
    """

    model: Model
    trace: Trace
    layers: frozenset[int] | None = None
    metric: tuple[MetricName, tuple[int, ...]] | AnyMetric | None = None

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The attention steps of those layers."""
        return tuple(each for each in attentions(self.trace.program) if self.covers(each.layer))

    def covers(self, layer: int) -> bool:
        """True if a layer is looked at."""
        return self.layers is None or layer in self.layers


# Measures of queries

FEWEST_KEYS = 3


def row_entropy(weights: Host) -> Host:
    """−Σ A log₂ A in bits along the last axis, summed in float64."""
    logarithms = np.log2(np.maximum(weights, np.finfo(weights.dtype).tiny))
    logarithms *= weights  # 0 log 0 = 0
    return np.asarray(np.maximum(-logarithms.sum(axis=-1, dtype=np.float64), 0.0))


def weight_to(rows: Rows, keys: Host) -> Host:
    """Heads × queries: the weight of one key for every query; NaN where it may not look at that key."""
    there = (keys >= 0) & (keys < rows.visible.shape[1])
    at, line = np.where(there, keys, 0), np.arange(len(keys))
    there &= rows.visible[line, at]
    return np.asarray(np.where(there, rows.weights[:, line, at].astype(np.float64), np.nan))


def weight_to_all(rows: Rows, keys: Host) -> Host:
    """Heads × queries: the weights of several keys (true in queries × keys) together; NaN where a query has none."""
    lines, columns = np.nonzero(keys & rows.visible)
    weights: Host = np.full(rows.weights.shape[:2], np.nan)
    if len(lines):
        own, starts = np.unique(lines, return_index=True)
        weights[:, own] = np.add.reduceat(rows.weights[:, lines, columns], starts, axis=1, dtype=np.float64)
    return weights


def _after_the_same(rows: Rows) -> Host:
    """Queries × keys, true where the key comes right after an earlier occurrence of the query's token."""
    ids = rows.tokens.ids
    before = np.concatenate([[-1], np.where(rows.tokens.real, ids, -1)[:-1]])
    own = np.where(rows.own >= 0, ids[rows.own], -1)
    return np.asarray((before == own[:, None]) & (own >= 0)[:, None] & (np.arange(len(ids)) <= rows.own[:, None]))


def _of_heads(
    name: str, title: str, formula: str, numbers: Callable[[Rows], Host], unit: str = "", fewest: int = 2
) -> Measure:
    return Measure(name, title, unit, formula, lambda rows: {name: numbers(rows)}, fewest)


ENTROPY = _of_heads(
    "entropy", "entropy", "−Σ_j A_ij log₂ A_ij", lambda rows: row_entropy(rows.weights), "bits", FEWEST_KEYS
)
"""How widely a head spreads its attention (Shannon 1948; of heads: Clark et al. 2019, "What Does BERT Look At?", §3.3).

0: all on one key; log₂ m: evenly over m keys. Queries that see fewer than three keys are left out, as they can hardly
spread their attention.
"""

HEAD_MEASURES = (
    ENTROPY,
    # Attention to the token before, for every query that may look there (Vig & Belinkov 2019, "Analyzing the Structure
    # of Attention in a Transformer Language Model"; Clark et al. 2019, §3.1). Cross attention has no token before.
    _of_heads(
        "previous", "previous token", "A_i,i−1", lambda rows: weight_to(rows, np.where(rows.own > 0, rows.own - 1, -1))
    ),
    # Attention to the first token (Vig & Belinkov 2019, §4.2: heads look at it when they have found nothing else; Xiao
    # et al. 2023, "Efficient Streaming Language Models with Attention Sinks").
    _of_heads(
        "first", "first token", "A_i,0", lambda rows: weight_to(rows, np.full(len(rows.queries), rows.tokens.first))
    ),
    # Attention to the query's own token (Clark et al. 2019, §3.1). Cross attention has no own token.
    _of_heads("itself", "the token itself", "A_ii", lambda rows: weight_to(rows, rows.own)),
    # Attention to tokens that part or end texts (Clark et al. 2019, §3.2). A sentence without any has no such number.
    _of_heads(
        "separators",
        "separators",
        "Σ_j A_ij, j: [SEP], </s>, punctuation",
        lambda rows: weight_to_all(rows, np.broadcast_to(rows.tokens.separating, rows.visible.shape)),
    ),
    # Attention to what came after earlier occurrences of the same token: the prefix-matching score of Olsson et al.
    # 2022, "In-context Learning and Induction Heads". Only queries whose token came before have it, so a text without
    # repetition has none. Such a head copies: in `A B … A` it finds B.
    _of_heads(
        "induction",
        "induction",
        "Σ_j A_ij, token j−1 = token i, j ≤ i",
        lambda rows: weight_to_all(rows, _after_the_same(rows)),
    ),
)
"""Measures of heads, in the order of the screen."""


def _by_kind(rows: Rows) -> dict[str, Host]:
    kinds = rows.tokens.kinds
    return {
        f"kind:{name}": weight_to_all(rows, np.broadcast_to(kinds == number, rows.visible.shape))
        for number, name in enumerate(KINDS)
    }


KIND = Measure("kind", "attention to special tokens, punctuation, numbers, words and others", columns=_by_kind)
"""Σ_j A_ij over the keys j of a kind, for every query that may look at one (Clark et al. 2019, §3.2).

Every token has one kind: `special` ([CLS], </s> …), `punctuation`, `number` (its first character is a digit), `word`,
or `other`.
"""

ALONE = 4
"""Distances below this one are groups of their own."""


def _by_distance(rows: Rows) -> dict[str, Host]:
    keys, line = rows.visible.shape[1], np.arange(len(rows.own))
    if not len(line) or rows.own[0] < 0:
        return {}
    weights, visible, means = _running(rows.weights), _running(rows.visible), dict[str, Host]()
    for near, far in groups(keys):
        low, high = sorted((near, far))
        first, end = np.clip(rows.own - high, 0, keys), np.clip(rows.own - low + 1, 0, keys)
        total = weights[:, line, end] - weights[:, line, first]
        count = visible[line, end] - visible[line, first]
        name = f"distance:{low}" if low == high else f"distance:{low}..{high}"
        means[name] = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return means


def groups(keys: int) -> Iterator[tuple[int, int]]:
    """The groups of distances among so many keys: nearest and farthest, negative for keys behind the query."""
    before = [(distance, distance) for distance in range(min(ALONE, keys))]
    nearest = ALONE
    while nearest < keys:
        before.append((nearest, 2 * nearest - 1))
        nearest *= 2
    yield from ((-near, -far) for near, far in reversed(before[1:]))
    yield from before


def _running(values: Host) -> Host:
    """Sums up to each key along the last axis, 0 in front, in float64."""
    kind = np.int64 if values.dtype == np.bool_ else np.float64
    sums: Host = np.zeros((*values.shape[:-1], values.shape[-1] + 1), kind)
    np.cumsum(values, axis=-1, dtype=kind, out=sums[..., 1:])
    return sums


DISTANCE = Measure("distance", "mean weight of a key by its distance before the query", columns=_by_distance)
"""The mean of A_ij over the keys j that query i may look at with i − j in a group of distances.

Groups: 0, 1, 2, 3, 4..7, 8..15 … before, and -1, -2, -3, -7..-4 … for keys behind the query (Vig & Belinkov 2019, §4.3,
for the distance of attention). Cross attention has no distance.
"""
