"""First token: how much of its attention a head gives to the first token of the sequence.

A_i,0 (Vig & Belinkov 2019, §4.2: heads look at the first token when they have found nothing else; Xiao et al. 2023,
"Efficient Streaming Language Models with Attention Sinks").
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads.measure import Measure, weight_to
from tui_transformer.engine.backend import Host


def _weights(rows: Rows) -> Host:
    return weight_to(rows, np.zeros(len(rows.queries), dtype=np.int64))


FIRST = Measure(name="first", title="first token", unit="", formula="A_i,0", rows=_weights)
