"""`heads`: the measures of every head."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.analysis.attentions import Attention, Reader, attentions, chosen_group, in_layer
from tui_transformer.analysis.head_measures import LayerMeasures, head_measures, left_out
from tui_transformer.analysis.measures import HEAD_MEASURES
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.cli.commands.heads import Request
from tui_transformer.cli.output import Table, Value, by_size, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.errors import UsageError
from tui_transformer.session.session import Session


def run(request: Request) -> None:
    """Print a line a head.

    Raises:
        InputError: There is no such attention or layer.
    """
    if request.sort not in (None, *(measure.name for measure in HEAD_MEASURES)):
        known = ", ".join(measure.name for measure in HEAD_MEASURES)
        raise UsageError(f"--sort {request.sort[:40] if request.sort else ''!r} is no measure: use {known}")
    session = open_session(request)
    steps = chosen_steps(session, request.of, request.layer)
    hidden = Hidden(request.hide_special, request.hide_first)
    layers = list(head_measures(session.trace, steps, Reader(session.model.vocabulary, hidden)))
    emit(written(_table(layers, request, _note(layers[0], hidden)), request.format))


def chosen_steps(session: Session, of: str | None, layer: int | None) -> Sequence[Attention]:
    """The attention of one stack and kind, of a layer or all."""
    program = session.trace.program
    return in_layer(attentions(program, chosen_group(program, of)), layer)


def _table(layers: Sequence[LayerMeasures], request: Request, note: str) -> Table:
    columns = ("layer", "head", *(measure.name for measure in HEAD_MEASURES))
    rows = [_row(layer, head) for layer in layers for head in range(layer.attention.heads)]
    if request.sort is not None:
        at, sign = columns.index(request.sort), 1 if request.reverse else -1
        rows.sort(key=lambda row: by_size(row[at], sign))
    elif request.reverse:
        rows.reverse()
    return Table(columns, rows, note=note)


def _row(layer: LayerMeasures, head: int) -> tuple[Value, ...]:
    return layer.attention.layer, head, *(layer.values[measure.name][head] for measure in HEAD_MEASURES)


def _note(first: LayerMeasures, hidden: Hidden) -> str:
    which = (
        f"{first.queries:,} of {first.real:,} queries, evenly spaced" if first.sampled else f"{first.real:,} queries"
    )
    parts = (
        first.attention.group,
        f"mean over {which}",
        f"entropy in bits{left_out(first)}, the rest shares of attention",
        hidden.text,
    )
    return " · ".join(part for part in parts if part)
