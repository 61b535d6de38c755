"""Measures of a head: their form, and the parts that several share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.engine.backend import Host


@dataclass(frozen=True)
class Measure:
    """A number for every query of every head; that of the head is the mean over its queries.

    Attributes:
        name: A word, for options and tables.
        title: What it is called on screen.
        unit: "bits", or "" for a share from 0 to 1.
        formula: Of one query i.
        rows: Heads × queries; NaN where the query has no such number.
        fewest: Queries that may look at fewer keys are left out: they have little or no choice.
    """

    name: str
    title: str
    unit: str
    formula: str
    rows: Callable[[Rows], Host]
    fewest: int = 2


def weight_to(rows: Rows, keys: Host) -> Host:
    """Heads × queries: the weight of one key for every query; NaN where it may not look at that key."""
    there = (keys >= 0) & (keys < rows.visible.shape[1])
    at, line = np.where(there, keys, 0), np.arange(len(keys))
    there &= rows.visible[line, at]
    weights: Host = np.where(there, rows.weights[:, line, at].astype(np.float64), np.nan)
    return weights


def weight_to_all(rows: Rows, keys: Host) -> Host:
    """Heads × queries: the weights of several keys (true in queries × keys) together; NaN where a query has none."""
    lines, columns = np.nonzero(keys & rows.visible)
    weights: Host = np.full(rows.weights.shape[:2], np.nan)
    if len(lines):
        own, starts = np.unique(lines, return_index=True)
        weights[:, own] = np.add.reduceat(rows.weights[:, lines, columns], starts, axis=1, dtype=np.float64)
    return weights
