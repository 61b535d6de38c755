"""`lens`: which words the residual stream spells after each layer, or every head raises; plain, and tuned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.head_lens import LOGITS, head_lens, writing_attentions
from tui_transformer.analysis.logit_lens import Affine, Depth, Lens, lens_of, words_at
from tui_transformer.cli.commands.lens import Request
from tui_transformer.cli.experiment import where
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.progress import show
from tui_transformer.cli.session import open_session, unknown_words
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.options import texts_of, traced
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible

COLUMNS = ("layer", "token", "of", "rank", "id", "word", "probability")
OF_HEADS = ("attention", "layer", "head", "rank", "id", "word", "logit")
TUNED = ("tuned id", "tuned word", "tuned probability", "divergence", "tuned divergence")
TUNED_HEADS = ("tuned id", "tuned word", "tuned logit")
EMBEDDING = "embedding"

Maps = Mapping[int, Affine]
"""A fitted map for every layer."""


def run(request: Request) -> None:
    """Print a line a word.

    Raises:
        InputError: The model has no output head, or no such layer or token, or the file of a lens cannot be read.
    """
    session = open_session(request)
    if request.less_mean and not request.by_head:
        raise UsageError("--less-mean is of --by-head")
    table = _of_heads(session, request) if request.by_head else _of_layers(session, request)
    emit(written(table, request.format))


def _of_layers(session: Session, request: Request) -> Table:
    lens = lens_of(session.trace.program)
    tokens, depths = _tokens(lens, request.token), _depths(lens, request.layer)
    rows: list[tuple[Value, ...]] = []
    note = f"what leaves each layer, through {' → '.join(step.name for step in lens.steps)}"
    if request.tuned is None:
        for depth in depths:
            rows += _rows(session, lens, depth, tokens, request.top)
        return Table(COLUMNS, rows, 4, note)
    tuned = lens_of(session.trace.program, _fitted(session, request.tuned, request.layer))
    for depth in depths:
        rows += _compared(session, (lens, tuned), depth, tokens, request.top)
    note += f" · {_said(request.tuned, tuned.tuned)} · divergences from the model's answer in nats"
    return Table(COLUMNS + TUNED, rows, 4, note)


def _of_heads(session: Session, request: Request) -> Table:
    """A line a word of every head, at one token: by default where the model answers."""
    trace = session.trace
    if LOGITS not in trace.program.by_name:
        raise InputError("the model has no logits of words: no head spells any")
    writing_attentions(trace.program)
    row = answer_positions(trace, folder=session.model.folder).start if request.token is None else request.token
    maps = None if request.tuned is None else _fitted(session, request.tuned, request.layer)
    writes = [
        list(head_lens(trace, row, layer=request.layer, less_mean=request.less_mean, tuned=each))
        for each in ([None] if maps is None else [None, maps])
    ]
    rows: list[tuple[Value, ...]] = []
    for of_head in zip(*writes, strict=True):
        first, words = of_head[0], [each.highest(request.top) for each in of_head]
        place = first.attention.group, first.attention.layer, first.head
        for rank, pairs in enumerate(zip(*words, strict=True), 1):
            cells = (cell for word, raised in pairs for cell in (word, session.labels.word(word), raised))
            rows.append((*place, rank, *cells))
    of = "what every head writes" + (", less its mean over the tokens," if request.less_mean else "")
    note = f"{of} at {where(session, range(row, row + 1))}, norms frozen; logits less their mean over all words"
    if request.tuned is None or maps is None:
        return Table(OF_HEADS, rows, 4, note)
    return Table(OF_HEADS + TUNED_HEADS, rows, 4, f"{note} · {_said(request.tuned, maps)}")


def _fitted(session: Session, path: Path, layer: int | None) -> Maps:
    """The maps of the layers that are shown, fitted on the lines of a file."""
    from tui_transformer.analysis.logit_lens import fit_lens

    model = session.model
    try:
        with unknown_words(model, visible(str(path))) as listen:
            traces = traced(model, texts_of(path), listen)
            return fit_lens(traces, None if layer is None else [layer], show)
    finally:
        show(None)


def _said(path: Path, maps: Maps) -> str:
    tokens = next((each.tokens for each in maps.values()), 0)
    fitted = (
        f"affine maps fitted on {tokens:,} tokens of {visible(str(path))}" if maps else "no map after the last layer"
    )
    return f"tuned: {fitted}"


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


def _compared(
    session: Session, lenses: tuple[Lens, Lens], depth: Depth, tokens: range, top: int
) -> Iterator[tuple[Value, ...]]:
    """The rows of the plain lens, those of the tuned one beside them, and how far both are from the answer."""
    far = [lens.divergences(session.trace, depth, tokens) for lens in lenses]
    for plain, tuned in zip(*(_rows(session, lens, depth, tokens, top) for lens in lenses), strict=True):
        at = int(plain[1] or 0) - tokens.start
        yield (*plain, *tuned[4:], *(float(each[at]) for each in far))
