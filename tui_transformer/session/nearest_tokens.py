"""The words nearest to that of a row of an embedding, and to a sum of words that was asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.similar import Term, similar, terms_of
from tui_transformer.engine.ops import Embed
from tui_transformer.engine.program import Program, by_program
from tui_transformer.errors import InputError
from tui_transformer.model.weight_table import TABLE
from tui_transformer.records import dataclass
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session

COUNT = 8
"""Words that are named."""

COST = 4
"""Operations for every number of the table."""

MOST = 1 << 26
"""Numbers of a table that is looked through at every row; of a larger one where it is asked for."""


@dataclass(frozen=True)
class Near:
    """The words nearest to a word or to a sum, with their cosines, the nearest first."""

    of: str
    words: tuple[tuple[str, float], ...]


@by_program
def tables(program: Program) -> Mapping[str, str]:
    """The table of words of every stop that is one, or looks its rows up in one."""
    own = {name: name for name in program.weights if name.endswith(TABLE)}
    looked_up = ((step.name, step.inputs) for step in program.steps if isinstance(step.op, Embed))
    return own | {name: each for name, inputs in looked_up for each in reversed(inputs) if each in own}


@by_program
def with_neighbours(program: Program) -> frozenset[str]:
    """The stops at which neighbours of a row are shown: their table of words is not too large."""
    return frozenset(stop for stop, table in tables(program).items() if math.prod(program.shape(table)) <= MOST)


def near_cost(session: Session, stop: str, asked: str) -> int:
    """About how many operations `near` takes."""
    program = session.trace.program
    table = tables(program).get(stop)
    return 0 if table is None else COST * math.prod(program.shape(table)) * (1 + bool(asked))


def near(session: Session, position: Position, asked: str, report: Report) -> tuple[Near, ...]:
    """The neighbours of the word of a row; then of the sum that was asked for, where the model has its words.

    Args:
        session: The model and its sentence.
        position: The stop and the row.
        asked: The sum, as it was typed; "" for none.
        report: Told what is looked through; may raise to end it.
    """
    trace, table = session.trace, tables(session.trace.program).get(position.stop)
    if table is None:
        return ()
    model, token, written = session.model, position.place.row, table.startswith("decoder.")
    if position.stop in trace.program.by_name:  # its rows are those of tokens
        ids = trace.program.step(position.stop).inputs[0]
        token = int(trace.source(ids).cell(token))
    word = model.target_label if written else model.word_label
    sums: list[tuple[str, tuple[Term, ...]]] = [(word(token), (Term(token, 1),))]
    if not written or model.target_vocabulary is model.vocabulary:
        with suppress(InputError):  # a word of the sum that was asked for is none of this model's
            terms = terms_of(model, asked)
            sums.append((sum_of(session, terms), terms))
    rows = []
    for name, terms in sums:
        report(table)
        try:
            nearest = similar(trace, terms, COUNT, table, model.has_vector)
        except InputError:  # the rows are all 0: they point nowhere
            nearest = []
        rows.append(Near(name, tuple((word(token), cosine) for token, cosine in nearest)))
    return tuple(rows)


def sum_of(session: Session, terms: tuple[Term, ...]) -> str:
    """A sum as it is written: `king − man + woman`."""
    said = " ".join(f"{'+' if term.sign > 0 else '−'} {session.model.word_label(term.token)}" for term in terms)
    return said.removeprefix("+ ")
