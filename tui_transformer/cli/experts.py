"""`experts`: how many tokens each expert got, and which experts every token chose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_transformer.analysis.expert_load import ExpertLoad, expert_load, expert_steps
from tui_transformer.cli.commands.experts import Request
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.engine.program import Step
from tui_transformer.errors import InputError
from tui_transformer.session.session import Session

COLUMNS = ("layer", "expert", "tokens", "even", "mean share")
WHO = ("layer", "token", "of", "rank", "expert", "share")


def run(request: Request) -> None:
    """Print a line an expert, or a line for every choice of a token.

    Raises:
        InputError: The model has no experts, or no such layer has.
    """
    session = open_session(request)
    steps = _steps(session, request.layer)
    loads = [(layer, expert_load(session.trace, step)) for layer, step in steps]
    if request.who:
        table = Table(WHO, list(_choices(session, loads)), 4)
    else:
        note = "tokens = how many real tokens chose it; mean share = over those"
        table = Table(COLUMNS, list(_loads(loads)), 4, note)
    emit(written(table, request.format))


def _steps(session: Session, layer: int | None) -> Sequence[tuple[int, Step]]:
    """The shares of the experts with the numbers of their layers."""
    numbered = [(int(step.layer.rpartition(".")[2]), step) for step in expert_steps(session.trace.program)]
    if not numbered:
        raise InputError(f"{session.model.name} has no experts: its feed-forward layers are read by all tokens")
    chosen = [(number, step) for number, step in numbered if layer in (None, number)]
    if not chosen:
        raise InputError(f"layer {layer} has no experts: {', '.join(str(number) for number, _ in numbered)} have")
    return chosen


def _loads(loads: Sequence[tuple[int, ExpertLoad]]) -> Iterator[tuple[Value, ...]]:
    for layer, load in loads:
        for expert, (tokens, share) in enumerate(zip(load.tokens, load.mean_shares, strict=True)):
            yield str(layer), str(expert), tokens, load.even, share


def _choices(session: Session, loads: Sequence[tuple[int, ExpertLoad]]) -> Iterator[tuple[Value, ...]]:
    for layer, load in loads:
        label = session.labels.of(session.trace.program.axes(load.step)[0])
        for token in load.real.nonzero()[0].tolist():
            for rank, (expert, share) in enumerate(load.of_token(token), 1):
                yield str(layer), token, label(token), rank, expert, share
