"""`lens`: which words the residual stream spells after each layer."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.head_lens import LOGITS, head_lens
from tui_transformer.analysis.logit_lens import Depth, Lens, lens_of, words_at
from tui_transformer.cli.answers import where
from tui_transformer.cli.commands.lens import Request
from tui_transformer.cli.output import emit
from tui_transformer.cli.session import open_session
from tui_transformer.cli.tables import Table, Value, written
from tui_transformer.errors import InputError, UsageError
from tui_transformer.explorer.state.session import Session

COLUMNS = ("layer", "token", "of", "rank", "id", "word", "probability")
OF_HEADS = ("attention", "layer", "head", "rank", "id", "word", "logit")
EMBEDDING = "embedding"


def run(request: Request) -> None:
    """Print a line a word.

    Raises:
        InputError: The model has no output head, or no such layer or token.
    """
    session = open_session(request)
    if request.by_head:
        _of_heads(session, request)
        return
    if request.less_mean:
        raise UsageError("--less-mean is of --by-head")
    lens = lens_of(session.trace.program)
    tokens = _tokens(lens, request.token)
    rows: list[tuple[Value, ...]] = []
    for depth in _depths(lens, request.layer):
        rows += _rows(session, lens, depth, tokens, request.top)
    names = " → ".join(step.name for step in lens.steps)
    emit(written(Table(COLUMNS, rows, 4, f"what leaves each layer, through {names}"), request.format))


def _of_heads(session: Session, request: Request) -> None:
    """A line a word of every head, at one token: by default where the model answers."""
    trace = session.trace
    if LOGITS not in trace.program.by_name:
        raise InputError("the model has no logits of words: no head spells any")
    row = answer_positions(trace, folder=session.model.folder).start if request.token is None else request.token
    layer = None if request.layer is None else request.layer
    writes = head_lens(trace, row, layer=layer, less_mean=request.less_mean)
    rows: list[tuple[Value, ...]] = [
        (each.attention.group, each.attention.layer, each.head, rank, word, session.labels.word(word), raised)
        for each in writes
        for rank, (word, raised) in enumerate(each.highest(request.top), 1)
    ]
    of = "what every head writes" + (", less its mean over the tokens," if request.less_mean else "")
    note = f"{of} at {where(session, range(row, row + 1))}, norms frozen; logits less their mean over all words"
    emit(written(Table(OF_HEADS, rows, 4, note), request.format))


def _depths(lens: Lens, layer: int | None) -> tuple[Depth, ...]:
    depths = tuple(depth for depth in lens.depths if layer in (None, depth.layer))
    if not depths:
        raise InputError(
            f"there is no layer {layer}: layers are 0 to {lens.depths[-1].layer}, and −1 for the embedding"
        )
    return depths


def _tokens(lens: Lens, token: int | None) -> range:
    if token is None:
        return range(lens.tokens)
    if not 0 <= token < lens.tokens:
        raise InputError(f"there is no token {token}: tokens are 0 to {lens.tokens - 1}")
    return range(token, token + 1)


def _rows(session: Session, lens: Lens, depth: Depth, tokens: range, top: int) -> Iterator[tuple[Value, ...]]:
    spelled = lens.spell(session.trace, depth, tokens, top)
    label = session.labels.of(lens.steps[-1].axes[0])
    layer = EMBEDDING if depth.layer < 0 else str(depth.layer)
    for token in tokens:
        for rank, (word, probability) in enumerate(words_at(spelled, token), 1):
            yield layer, token, label(token), rank, word, session.labels.word(word), probability
