"""`chart`: a chart of a step, as text or as a figure."""

from __future__ import annotations

import shutil
import sys

from tui_transformer.cli.commands.chart import Request
from tui_transformer.cli.output import deliver, note
from tui_transformer.cli.session import open_session
from tui_transformer.cli.show import place_of_cell
from tui_transformer.engine.names import find, listed
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.explorer.widgets.chart_drawing import HEIGHT, WIDTH, chart_text, export_chart
from tui_transformer.report.svg import chart_svg
from tui_transformer.session.session import Session
from tui_transformer.views.chart_data import Kind, chart, charts_for
from tui_transformer.views.charts import Chart
from tui_transformer.views.step_view import Place, view_of


def run(request: Request) -> None:
    """Draw what is asked for.

    Raises:
        InputError: There is no such step, cell or chart, or the file cannot be written.
    """
    session = open_session(request)
    drawn = _chart(session, request)
    if request.out is not None and request.format is None:
        export_chart(drawn, request.out)
        note(f"wrote {request.out}")
    elif request.format == "svg":
        deliver([chart_svg(drawn)], request.out)
    else:
        deliver([_text(drawn)], request.out)


def _chart(session: Session, request: Request) -> Chart:
    program = session.trace.program
    names = find((*program.names, *program.weights), request.step)
    if len(names) > 1:
        raise UsageError(f"a chart is of one step, and {len(names)} match: {listed(names)}")
    kind = _kind(program, names[0], request.kind)
    view = view_of(session.trace, names[0], session.labels, head=request.head or 0)
    place = place_of_cell(view, request.cell, "--cell") if request.cell is not None else Place(view.head or 0)
    return chart(kind, session.trace, view, place, word=session.labels.word, among=session.model.has_vector)


def _kind(program: Program, name: str, wanted: str | None) -> Kind:
    """The kind that is meant; a dash may stand for a space."""
    kinds = charts_for(program, name)
    if not kinds:
        raise InputError(f"{name} has no chart: its values are names, not sizes")
    if wanted is None:
        return kinds[0]
    named = next((kind for kind in kinds if kind == wanted.strip().replace("-", " ").casefold()), None)
    if named is None:
        raise UsageError(f"{name} has no chart of {wanted[:40]!r}: use {', '.join(kinds)}")
    return named


def _text(drawn: Chart) -> str:
    size = shutil.get_terminal_size((WIDTH, HEIGHT)) if sys.stdout.isatty() else None
    return chart_text(drawn) if size is None else chart_text(drawn, size.columns, size.lines - 1)
