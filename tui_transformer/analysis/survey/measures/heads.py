"""Every measure of heads: the mean over the queries of a text, as `tui-transformer heads` shows it of one."""

from __future__ import annotations

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads import MEASURES, Measure
from tui_transformer.analysis.survey.measures.measure import QueryMeasure
from tui_transformer.engine.backend import Host


def _surveyed(measure: Measure) -> QueryMeasure:
    def columns(rows: Rows) -> dict[str, Host]:
        return {measure.name: measure.rows(rows)}

    return QueryMeasure(measure.name, measure.title, measure.unit, columns, measure.fewest)


HEADS = tuple(map(_surveyed, MEASURES))
