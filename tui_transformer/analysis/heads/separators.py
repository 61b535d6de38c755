"""Separators: how much of its attention a head gives to tokens that part or end texts.

Σ_j A_ij over the keys j that are `[SEP]`, `</s>` and the like, or punctuation marks (Clark et al. 2019, "What Does BERT
Look At?", §3.2). A sentence without any has no such number.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads.measure import Measure, weight_to_all
from tui_transformer.engine.backend import Host


def _weights(rows: Rows) -> Host:
    return weight_to_all(rows, np.broadcast_to(rows.tokens.separating, rows.visible.shape))


SEPARATORS = Measure(
    name="separators",
    title="separators",
    unit="",
    formula="Σ_j A_ij, j: [SEP], </s>, punctuation",
    rows=_weights,
)
