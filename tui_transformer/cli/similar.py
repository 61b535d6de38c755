"""`similar`: the words nearest to a word or a sum of words; or sentences, how alike they are."""

from __future__ import annotations

from tui_transformer.analysis.similar import similar, table_name, terms_of
from tui_transformer.cli.commands.similar import Request
from tui_transformer.cli.output import Table, emit, written
from tui_transformer.cli.session import open_session
from tui_transformer.cli.similar_sentences import compare

COLUMNS = ("rank", "id", "word", "cosine")
TOP = 10
"""Words, where nothing is said."""


def run(request: Request) -> None:
    """Print a line a word, the nearest first; of several texts, how alike they are.

    Raises:
        InputError: A word is not one token, the model has no embedding, or makes no vectors of sentences.
    """
    if len(request.words) > 1:
        compare(request)
        return
    session = open_session(request)
    table = table_name(session.trace)
    terms = terms_of(session.model, request.words[0])
    nearest = similar(session.trace, terms, request.top or TOP, among=session.model.has_vector)
    rows = [(rank, token, session.labels.source_word(token), cosine) for rank, (token, cosine) in enumerate(nearest, 1)]
    said = " ".join(f"{'+' if term.sign > 0 else '−'} {session.model.word_label(term.token)}" for term in terms)
    emit(written(Table(COLUMNS, rows, 4, f"cosine with {said.removeprefix('+ ')} · rows of {table}"), request.format))
