"""Traces that graphs are made of in these tests, and what holds in every graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tui_transformer import Features, Graph, Model, Trace

DICTIONARIES = Path(__file__).parent.parent / "features"
SMALL = {"d_model": 32, "heads": 4, "layers": 2, "norm": "pre", "dtype": "float64"}
FED = "decoder.{}.feed_forward.norm"


def with_features(*placed: tuple[str, str | None], replace: bool = False) -> Trace:
    model = Model.load("decoder", **SMALL)
    for name, at in placed:
        model = model.with_features(Features.load(DICTIONARIES / name), at, replace=replace)
    return model.trace(ids=[3, 5, 4, 6])


def off(found: Graph) -> float:
    """How far the edges into a node and its constants are from what it is, at most."""
    return float(np.abs(found.weights.sum(axis=1) + found.constants - found.sums).max())
