"""`similar`: the words nearest to a word or a sum of words."""

from __future__ import annotations

from tui_transformer.analysis.similar import similar, table_name, terms_of
from tui_transformer.cli.commands.similar import Request
from tui_transformer.cli.output import emit
from tui_transformer.cli.session import open_session
from tui_transformer.cli.tables import Table, written

COLUMNS = ("rank", "id", "word", "cosine")


def run(request: Request) -> None:
    """Print a line a word, the nearest first.

    Raises:
        InputError: A word is not one token, or the model has no embedding.
    """
    session = open_session(request)
    table = table_name(session.trace)
    terms = terms_of(session.model, request.words)
    nearest = similar(session.trace, terms, request.top)
    rows = [(rank, token, session.labels.word(token), cosine) for rank, (token, cosine) in enumerate(nearest, 1)]
    said = " ".join(f"{'+' if term.sign > 0 else '−'} {session.model.word(term.token)}" for term in terms)
    emit(written(Table(COLUMNS, rows, 4, f"cosine with {said.removeprefix('+ ')} · rows of {table}"), request.format))
