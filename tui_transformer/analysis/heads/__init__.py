"""Measures of attention heads: one file each, with its formula and source; listed here in the order of the screen."""

from tui_transformer.analysis.heads.entropy import ENTROPY
from tui_transformer.analysis.heads.first_token import FIRST
from tui_transformer.analysis.heads.induction import INDUCTION
from tui_transformer.analysis.heads.itself import ITSELF
from tui_transformer.analysis.heads.measure import Measure
from tui_transformer.analysis.heads.previous_token import PREVIOUS
from tui_transformer.analysis.heads.separators import SEPARATORS

MEASURES: tuple[Measure, ...] = (ENTROPY, PREVIOUS, FIRST, ITSELF, SEPARATORS, INDUCTION)

__all__ = ["ENTROPY", "FIRST", "INDUCTION", "ITSELF", "MEASURES", "PREVIOUS", "SEPARATORS", "Measure"]
