"""Attention by token kind: how much of its attention a head gives to the tokens of each kind.

Σ_j A_ij over the keys j of a kind, for every query that may look at one (Clark et al. 2019, "What Does BERT Look At?",
§3.2, for `[SEP]` and punctuation). Every token has one kind: `special` ([CLS], </s> …), `punctuation`, `number` (its
first character is a digit), `word`, or `other`.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads.measure import weight_to_all
from tui_transformer.analysis.survey.measures.measure import QueryMeasure
from tui_transformer.analysis.tokens import KINDS
from tui_transformer.engine.backend import Host


def _columns(rows: Rows) -> dict[str, Host]:
    kinds = rows.tokens.kinds
    return {
        f"kind:{name}": weight_to_all(rows, np.broadcast_to(kinds == number, rows.visible.shape))
        for number, name in enumerate(KINDS)
    }


KIND = QueryMeasure("kind", "attention to special tokens, punctuation, numbers, words and others", "", _columns)
