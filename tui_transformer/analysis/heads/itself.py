"""Itself: how much of its attention a head gives to the query's own token.

A_ii (Clark et al. 2019, "What Does BERT Look At?", §3.1). Cross attention has no own token.
"""

from tui_transformer.analysis.heads.measure import Measure, weight_to

ITSELF = Measure(
    name="itself",
    title="the token itself",
    unit="",
    formula="A_ii",
    rows=lambda rows: weight_to(rows, rows.own),
)
