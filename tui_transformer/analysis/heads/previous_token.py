"""Previous token: how much of its attention a head gives to the token before.

A_i,i−1, for every query that may look there (Vig & Belinkov 2019, "Analyzing the Structure of Attention in a
Transformer Language Model"; Clark et al. 2019, §3.1). Cross attention has no token before.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads.measure import Measure, weight_to
from tui_transformer.engine.backend import Host


def _weights(rows: Rows) -> Host:
    return weight_to(rows, np.where(rows.own > 0, rows.own - 1, -1))


PREVIOUS = Measure(name="previous", title="previous token", unit="", formula="A_i,i−1", rows=_weights)
