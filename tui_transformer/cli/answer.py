"""`answer`: the most likely tokens at every position, with their words, logits and probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.analysis.effects import LOGITS
from tui_transformer.analysis.score import PROBABILITIES, likely_at
from tui_transformer.cli.commands.answer import Request
from tui_transformer.cli.experiment import has_answers, parse_positions
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.engine.program import LABEL
from tui_transformer.errors import InputError
from tui_transformer.generation.sampling import leading
from tui_transformer.learning.recipes import answers_first
from tui_transformer.session.session import Session

COLUMNS = ("position", "of", "rank", "id", "word", "logit", "probability")
LABEL_COLUMNS = ("position", "of", "rank", "id", "label", "logit", "probability")
FIRST = "; this model was trained to answer at the first token"


def run(request: Request) -> None:
    """Print a line a token.

    Raises:
        InputError: The model has no output head, or no such position.
    """
    session = open_session(request)
    if classifies(session):
        emit(written(Table(LABEL_COLUMNS, list(_labels(session, request)), 4), request.format))
        return
    if not has_answers(session.trace):
        raise InputError(f"{session.model.name} has no output head: it has no answer in words")
    first = answers_first(session.model.folder)
    rows = list(_rows(session, _positions(session, request.position, first=first), request))
    note = f"probability = softmax({LOGITS} ÷ {request.temperature:g})" + FIRST * first
    emit(written(Table(COLUMNS, rows, 4, note), request.format))


def classifies(session: Session) -> bool:
    """Whether the model answers with labels."""
    logits = session.trace.program.by_name.get(LOGITS)
    return logits is not None and logits.axes[-1].name == LABEL


def _labels(session: Session, request: Request) -> Iterator[tuple[Value, ...]]:
    """The likeliest labels of the sentence, or of every token; without shares where the logits are no scores."""
    trace = session.trace
    *tokens, axis = trace.program.axes(LOGITS)
    logits = trace[LOGITS].reshape(-1, axis.size)
    shares = trace[PROBABILITIES].reshape(-1, axis.size) if PROBABILITIES in trace.program.by_name else None
    label, word = session.labels.of(axis), session.labels.of(tokens[0]) if tokens else None
    for position, row in enumerate(logits):
        for rank, number in enumerate(leading(row, request.top).tolist(), 1):
            of = ("", "") if word is None else (position, word(position))
            share = None if shares is None else float(shares[position, number])
            yield *of, rank, number, label(number), float(row[number]), share


def _positions(session: Session, asked: str | None, *, first: bool) -> range:
    """Those that were asked for; else all real tokens, or the one where the model answers."""
    positions = parse_positions(asked or ("0" if first else "all"), session.trace)
    size = session.trace.program.shape(LOGITS)[0]
    if positions is None or positions.stop > size:
        raise InputError(f"there is no position {asked}: use 0 to {size - 1}")
    return positions


def _rows(session: Session, positions: range, request: Request) -> Iterator[tuple[Value, ...]]:
    label = session.labels.of(session.trace.program.axes(LOGITS)[0])
    for position in positions:
        likeliest = likely_at(session.trace, position, request.top, request.temperature)
        for rank, each in enumerate(likeliest, 1):
            word = session.labels.word(each.token)
            yield position, label(position), rank, each.token, word, each.logit, each.probability
