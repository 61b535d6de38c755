"""`patch --each`: a table of what every position, head or layer brings over from another sentence."""

from __future__ import annotations

import math

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import Measured, Table, sweep, table_of
from tui_transformer.cli import output
from tui_transformer.cli.commands.patch import Request
from tui_transformer.cli.experiment import parse_positions, where
from tui_transformer.cli.metrics import chosen
from tui_transformer.cli.output import emit
from tui_transformer.cli.progress import counted
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.report import svg
from tui_transformer.session.session import Session
from tui_transformer.views.view import Axis, View, window_of

START = "embedding"


def run(session: Session, other: Trace, request: Request) -> None:
    """Patch every place alone, and show the metric with it.

    Raises:
        InputError: The sentences have different lengths, or the model has no such places or words.
    """
    if request.step is not None or request.rows is not None or request.head is not None:
        raise UsageError("--each names the places itself: leave out STEP, --rows and --head")
    trace = session.trace
    table = table_of(trace.program, ":".join(filter(None, (request.each, request.of))))
    metric = chosen(session, request) or Metric("divergence")
    positions = answer_positions(trace, parse_positions(request.position, trace), folder=session.model.folder)
    own, others = (metric.measure(each, trace, positions) for each in (trace, other))
    names = (f"{place.step} {place.column}" for place in table.places)
    effects = list(counted(sweep(trace, other, table, metric, positions), names))
    if request.format == "svg":
        emit([svg.view_svg(_view(session, table, effects, metric))])
        return
    said = metric.said(session.labels.word) + ("" if metric.targets else f" at {where(session, positions)}")
    note = f"{said}: {own:.4g} as it is, {others:.4g} of the other sentence"
    columns = ("step", "layer", table.columns, "token", metric.name, "share of the way")
    rows = [_row(session, table, each, own, others) for each in effects]
    emit(output.written(output.Table(columns, rows, 4, note), request.format))


def _row(session: Session, table: Table, each: Measured, own: float, others: float) -> tuple[output.Value, ...]:
    place, way = each.place, others - own
    share = (each.value - own) / way if way else math.nan
    token = _label(session, table, place.step, place.column) if table.columns == "position" else None
    return place.step, _layer(place.row), place.column, token, each.value, share


def _layer(row: int) -> str:
    return START if row < 0 else str(row)


def _label(session: Session, table: Table, step: str, column: int) -> str:
    if table.columns != "position":
        return str(column)
    return session.labels.of(session.trace.program.axes(step)[-2])(column)


def _view(session: Session, table: Table, effects: list[Measured], metric: Metric) -> View:
    """Layers × positions or heads, as a heat map."""
    rows = sorted({each.place.row for each in effects})
    columns = range(1 + max(each.place.column for each in effects))
    values = np.full((len(rows), len(columns)), np.nan)
    for each in effects:
        values[rows.index(each.place.row), each.place.column] = each.value

    step = effects[-1].place.step
    return View(
        f"patch each {table.columns}",
        f"{metric.name} with each {table.columns} patched",
        Axis(table.rows, len(rows), lambda i: _layer(rows[i])),
        Axis(table.columns, len(columns), lambda i: _label(session, table, step, i)),
        "diverging" if np.nanmin(values) < 0 else "sequential",
        window_of(values),
    )
