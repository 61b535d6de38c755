"""`links`: the largest attention weights."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.analysis.attentions import Attention, Reader
from tui_transformer.analysis.rollout import Link, Wanted, links
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.cli.commands.links import Request
from tui_transformer.cli.heads import chosen_steps
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.errors import InputError
from tui_transformer.session.session import Session

COLUMNS = ("weight", "layer", "head", "query", "from", "key", "to", "step")


def run(request: Request) -> None:
    """Print a line a link, the strongest first.

    Raises:
        InputError: There is no such attention, layer or head.
    """
    session = open_session(request)
    steps = chosen_steps(session, request.of, request.layer)
    head, heads = request.head, steps[0].heads
    if head is not None and not 0 <= head < heads:
        raise InputError(f"there is no head {head}: heads are 0 to {heads - 1}")
    hidden = Hidden(request.hide_special, request.hide_first)
    reader = Reader(session.model.vocabulary, hidden)
    *_, strongest = links(session.trace, steps, reader, Wanted(request.top, head, request.itself))
    note = " · ".join(part for part in (steps[0].group, hidden.text) if part)
    emit(written(Table(COLUMNS, _rows(session, steps, strongest), 4, note), request.format))


def _rows(session: Session, steps: Sequence[Attention], strongest: Sequence[Link]) -> list[tuple[Value, ...]]:
    by_name = {step.name: step for step in steps}
    return [_row(session, by_name[link.step], link) for link in strongest]


def _row(session: Session, step: Attention, link: Link) -> tuple[Value, ...]:
    who, whom = session.labels.of(step.queries)(link.query), session.labels.of(step.keys)(link.key)
    return link.weight, link.layer, link.head, link.query, who, link.key, whom, link.step
