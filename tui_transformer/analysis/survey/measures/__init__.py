"""Measures of a survey: one file each, listed here; adding one is adding a file and a name to the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_transformer.analysis.survey.measures.ablation import ABLATION
from tui_transformer.analysis.survey.measures.activation import ACTIVATION
from tui_transformer.analysis.survey.measures.distance import DISTANCE
from tui_transformer.analysis.survey.measures.heads import HEADS
from tui_transformer.analysis.survey.measures.kinds import KIND
from tui_transformer.analysis.survey.measures.lens import LENS
from tui_transformer.analysis.survey.measures.measure import Measure, QueryMeasure
from tui_transformer.errors import UsageError

AnyMeasure = Measure | QueryMeasure

_LISTED: tuple[AnyMeasure, ...] = (*HEADS, DISTANCE, KIND, *ABLATION, LENS, *ACTIVATION)

MEASURES: Mapping[str, AnyMeasure] = {measure.name: measure for measure in _LISTED}
"""By name, in the order of help."""

USUAL = tuple(measure.name for measure in HEADS)
"""Measures that are made where none is named."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Names of measures, each once, in the order of the table.

    Raises:
        UsageError: There is no such measure.
    """
    for name in names:
        if name not in MEASURES:
            raise UsageError(f"no measure is called {name[:40]!r}: use {', '.join(MEASURES)}")
    return tuple(name for name in MEASURES if name in names)


def unit_of(row: str) -> str:
    """The unit of a row of results."""
    measure = MEASURES.get(row.partition(":")[0])
    return "" if measure is None or row in measure.without else measure.unit
