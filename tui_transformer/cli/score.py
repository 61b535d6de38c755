"""`score`: how likely a text is, token by token and in all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from tui_transformer.analysis.score import Score, TokenScore, score, text_targets
from tui_transformer.cli.commands.score import Request
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.cli.session import open_session
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.engine.program import LABEL
from tui_transformer.errors import InputError
from tui_transformer.model.targets import predicts_next
from tui_transformer.report.text import finite
from tui_transformer.session.session import Session

COLUMNS = ("position", "of", "id", "word", "rank", "probability", "log_probability", "cross_entropy", "perplexity")
ALL = "all"


def run(request: Request) -> None:
    """Print a line a token, and one for all.

    Raises:
        InputError: The model has no probabilities of words, the targets do not fit, or nothing is predicted.
    """
    session = open_session(request)
    targets = _targets(session, request)
    scored = score(session.trace, targets, temperature=request.temperature, smoothing=request.label_smoothing)
    if request.format == "json":
        emit(_json(session, request, scored))
    else:
        rows = [*_rows(session, scored.tokens), _row_of_all(scored)]
        emit(written(Table(COLUMNS, rows, 4, _note(session, request)), request.format))


def _targets(session: Session, request: Request) -> Sequence[int]:
    """Those that were given, else the tokens themselves; none for padding."""
    program = session.trace.program
    if LOGITS not in program.by_name or program.axes(LOGITS)[-1].name == LABEL:
        raise InputError(f"{session.model.name} gives words no probability: it has no {LOGITS} of words")
    positions, words = program.shape(LOGITS)
    if request.targets is None:
        return text_targets(session.trace, session.predicted)
    targets = parse_ids(request.targets.replace("−", "-"), "--targets")
    if len(targets) != positions:
        raise InputError(f"--targets: {len(targets)} for {positions} positions: give one for each, -1 for none")
    for target in targets:
        if not NOT_COUNTED <= target < words:
            raise InputError(f"--targets: there is no token {target}: IDs go from 0 to {words - 1}, -1 for none")
    return targets


def _rows(session: Session, tokens: Sequence[TokenScore]) -> Iterator[tuple[Value, ...]]:
    label = session.labels.of(session.trace.program.axes(LOGITS)[0])
    for token in tokens:
        own = token.log_probability
        perplexity = math.exp(-own) if own > -math.log(1e308) else math.inf
        word = session.labels.word(token.token)
        shown = token.rank, token.probability, own, token.cross_entropy, perplexity
        yield token.position, label(token.position), token.token, word, *shown


def _row_of_all(scored: Score) -> tuple[Value, ...]:
    total = scored.log_probability
    return ALL, "", "", "", "", math.exp(total), total, scored.cross_entropy, scored.perplexity


def _note(session: Session, request: Request) -> str:
    """The tokens that each is scored from, the unit and the temperature, in words."""
    ahead = predicts_next(session.trace.program)
    how = "each token from those before it" if ahead else "each token where it stands, which the model sees"
    smoothed = f" · label smoothing {request.label_smoothing:g}" if request.label_smoothing else ""
    return f"{how} · nats · softmax({LOGITS} ÷ {request.temperature:g}){smoothed}"


def _json(session: Session, request: Request, scored: Score) -> Iterator[str]:
    data = {
        "model": session.model.name,
        "temperature": request.temperature,
        "label_smoothing": request.label_smoothing,
        "tokens": [dict(zip(COLUMNS, map(_finite, row), strict=True)) for row in _rows(session, scored.tokens)],
        "counted": len(scored.tokens),
        "log_probability": finite(scored.log_probability),
        "probability": math.exp(scored.log_probability),
        "cross_entropy": finite(scored.cross_entropy),
        "perplexity": finite(scored.perplexity),
    }
    yield json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _finite(value: Value) -> Value:
    return finite(value) if isinstance(value, float) else value
