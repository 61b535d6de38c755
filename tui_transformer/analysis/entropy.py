"""Entropy: how widely a head spreads its attention.

H_i = −Σ_j A_ij log₂ A_ij in bits, with 0 log 0 = 0, for every query i, averaged over queries (Clark et al. 2019, "What
Does BERT Look At?", §3.3). 0: all on one key; log₂ m: evenly over m keys. The relative entropy H_i ÷ log₂ (keys that
query i may look at) lies from 0 to 1.

A query that sees one or two keys can hardly spread its attention, which makes a causal head look sharper than it is.
So the mean is over real tokens (no padding) that see at least `FEWEST_KEYS` keys, or, in a sentence too short for
that, as many as any query sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.statistics import CELLS, means_of, row_sample
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace

FEWEST_KEYS = 3


@dataclass(frozen=True)
class HeadEntropy:
    """The mean entropy of every head of one attention step.

    Attributes:
        bits: Of every head.
        relative: Of every head, as a share of the most that the visible keys allow; NaN where no query sees two.
        keys: Queries that see fewer keys than this are left out.
        most_keys: The most keys that a query sees.
        queries: How many queries the mean is over.
        real: How many queries are real tokens.
        sampled: Whether only evenly spaced queries were read.
    """

    bits: tuple[float, ...]
    relative: tuple[float, ...]
    keys: int
    most_keys: int
    queries: int
    real: int
    sampled: bool


def row_entropy(weights: Host) -> Host:
    """−Σ A log₂ A in bits along the last axis, summed in float64."""
    logarithms = np.log2(np.maximum(weights, np.finfo(weights.dtype).tiny))
    logarithms *= weights  # 0 log 0 = 0
    return np.asarray(np.maximum(-logarithms.sum(axis=-1, dtype=np.float64), 0.0))


def relative_entropy(entropy: Host, keys: Host) -> Host:
    """Entropy in bits ÷ log₂ of the number of visible keys; NaN where fewer than two are visible."""
    share: Host = np.full(entropy.shape, np.nan)
    return np.divide(entropy, np.log2(np.maximum(keys, 1)), out=share, where=keys > 1)


def head_entropy(trace: Trace, name: str, item: int = 0, cells: int = CELLS) -> HeadEntropy:
    """The entropy of every head of an attention step (`….weights`), from at most about `cells` weights."""
    step = trace.program.step(name)
    heads, queries, keys = step.axes
    real = np.flatnonzero(real_tokens(trace, queries, item))
    runs = row_sample(real.tolist(), heads.size * keys.size, cells)

    def rows(name: str) -> Host:
        parts = (range(heads.size), range(keys.size))
        return np.concatenate([trace.window(name, (parts[0], run, parts[1]), item) for run in runs], axis=1)

    entropy = row_entropy(rows(step.name))
    visible = np.isfinite(rows(step.inputs[0])).sum(axis=-1)
    fewest = min(FEWEST_KEYS, int(visible.max()))
    enough = visible >= fewest
    return HeadEntropy(
        bits=means_of(entropy, enough),
        relative=means_of(relative_entropy(entropy, visible), enough & (visible > 1)),
        keys=fewest,
        most_keys=int(visible.max()),
        queries=int(enough.any(axis=0).sum()),
        real=len(real),
        sampled=entropy.shape[1] < len(real),
    )
