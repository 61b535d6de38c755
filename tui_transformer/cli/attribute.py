"""`attribute`: what every head, layer and embedding writes toward a logit."""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attribution import LOGITS, Attribution, Term, attribute
from tui_transformer.analysis.effects import answer_positions
from tui_transformer.cli.commands.attribute import Request
from tui_transformer.cli.experiment import parse_positions
from tui_transformer.cli.metrics import token_ids
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.errors import InputError, UsageError
from tui_transformer.session.session import Session

COLUMNS = ("term", "kind", "number", "value")


def run(request: Request) -> None:
    """Print a line a term, and the logit that they sum to.

    Raises:
        InputError: The model has no logits of words, or there is no such word or position.
    """
    session = open_session(request)
    if request.by != "terms":
        from tui_transformer.cli import attribute_inputs

        attribute_inputs.run(session, request)
        return
    if request.metric is not None or request.targets is not None:
        raise UsageError("--metric and --targets are of --by gradient and integrated: terms are of a logit")
    trace, folder = session.trace, session.model.folder
    if LOGITS not in trace.program.by_name:
        raise InputError("the model has no logits of words: attribution reads these")
    positions = answer_positions(trace, parse_positions(request.position, trace), folder=folder)
    if len(positions) > 1:
        raise UsageError("attribution reads one position: name it with --position")
    attribution = attribute(
        session.trace, *_tokens(session, request, positions[0]), position=positions[0], neurons=request.neurons
    )
    terms = attribution.terms if request.top is None else _largest(attribution, request.top)
    rows: list[tuple[Value, ...]] = [(term.name, term.kind, term.number, term.value) for term in terms]
    emit(written(Table(COLUMNS, rows, 4, _note(session, attribution)), request.format))


def _tokens(session: Session, request: Request, position: int) -> tuple[int, ...]:
    if request.tokens is not None:
        chosen = token_ids(session.model, request.tokens)
        if len(chosen) > 2:
            raise UsageError("--tokens takes a word, or two for the difference of their logits")
        return chosen
    width = session.trace.program.shape(LOGITS)[-1]
    row = session.trace.window(LOGITS, (range(position, position + 1), range(width)))
    return (int(np.argmax(row[0])),)


def _largest(attribution: Attribution, top: int) -> tuple[Term, ...]:
    return tuple(sorted(attribution.terms, key=lambda term: -abs(term.value))[:top])


def _note(session: Session, attribution: Attribution) -> str:
    word, other = (None if each is None else session.labels.word(each) for each in attribution.tokens)
    of = f"logit of {word}" if other is None else f"logit of {word} less that of {other}"
    parts = (
        f"{of} at position {attribution.position}: {attribution.logit:.4f}",
        f"{len(attribution.terms)} terms, norms frozen",
        f"remainder {attribution.remainder:.1e}",
    )
    return " · ".join(parts)
