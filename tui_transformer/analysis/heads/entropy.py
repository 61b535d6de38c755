"""Entropy of a head: how widely it spreads its attention.

H_i = −Σ_j A_ij log₂ A_ij in bits, 0 log 0 = 0 (Shannon 1948; of heads: Clark et al. 2019, "What Does BERT Look At?",
§3.3). 0: all on one key; log₂ m: evenly over m keys. Queries that see fewer than three keys are left out, as they can
hardly spread their attention.
"""

from tui_transformer.analysis.entropy import FEWEST_KEYS, row_entropy
from tui_transformer.analysis.heads.measure import Measure

ENTROPY = Measure(
    name="entropy",
    title="entropy",
    unit="bits",
    formula="−Σ_j A_ij log₂ A_ij",
    rows=lambda rows: row_entropy(rows.weights),
    fewest=FEWEST_KEYS,
)
