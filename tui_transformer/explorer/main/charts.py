"""Which charts there are of a stop: of its values, and of the gradients where they are beside."""

from __future__ import annotations

from typing import cast

from tui_transformer.explorer.state.session import Session
from tui_transformer.views.chart_data import Kind, chart, charts_for
from tui_transformer.views.charts import Chart
from tui_transformer.views.gradient_charts import GRADIENT_KINDS, GradientKind, gradient_chart
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import View

ChartKind = Kind | GradientKind


def kinds_of(session: Session, name: str) -> tuple[ChartKind, ...]:
    """The kinds of chart of a step or weight, in the order in which they are offered."""
    kinds = charts_for(session.trace.program, name)
    return (*GRADIENT_KINDS, *kinds) if session.backward and session.has_loss else kinds


def chart_of(session: Session, kind: ChartKind, view: View, place: Place) -> Chart:
    """A chart of what is drawn."""
    if kind in GRADIENT_KINDS:
        gradient_kind: GradientKind = kind
        return gradient_chart(gradient_kind, session.trace.program, session.gradients.values, view.name)
    return chart(cast(Kind, kind), session.trace, view, place, word=session.labels.word, among=session.model.has_vector)
