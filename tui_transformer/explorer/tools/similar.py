"""What is similar: the nearest words of a word or a sum, and two sentences by the cosine of their vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from textual.content import Content

from tui_transformer.analysis.similar import (
    POOLED,
    Term,
    Together,
    sentence_vector,
    similar,
    table_name,
    terms_of,
    together,
)
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.actions.dialogs import READER
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to, part_shown
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.session.nearest_tokens import COST, sum_of, tables
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.text.display import fit, visible
from tui_transformer.views.view import Scale

# The nearest words


WORD = 24


def open_nearest(port: Port) -> None:
    """Ask for the words, and list those near to them."""
    session = port.session
    table = tables(session.trace.program).get(port.position.stop) or table_name(session.trace)

    def find(asked: tuple[str, tuple[Term, ...]]) -> None:
        text, terms = asked
        port.look(words=text if len(terms) > 1 else "")
        ask_of_now(
            port,
            "nearest",
            lambda _: similar(session.trace, terms, 30, table, session.model.has_vector),
            lambda nearest: port.open(NearestScreen(session, terms, nearest)),
            COST * math.prod(session.trace.program.shape(table)),
        )

    tokens, row = session.encoding.tokens, port.position.place.row
    here = tokens[row].text.strip() if row < len(tokens) else ""
    prompt = asking(
        "Words near to",
        lambda text: (text, terms_of(session.model, text)),
        find,
        value=here if here.isalnum() else "",
        placeholder="a word, or king - man + woman",
        hint="by the cosine of their rows of the embedding; the words of a sum are left out",
    )
    port.open(*prompt)


class NearestScreen(Dialog[None]):
    """A line a word, the nearest first."""

    ACTIONS = READER

    def __init__(self, session: Session, terms: tuple[Term, ...], nearest: Sequence[tuple[int, float]]) -> None:
        super().__init__(f"Words near to {visible(sum_of(session, terms))}")
        self.session, self.nearest = session, nearest

    def text(self) -> Content:
        lines = [Content.styled(f"{'':>4} {fit('word', WORD)} {'ID':>8}  cosine", "$foreground 65%")]
        for rank, (token, cosine) in enumerate(self.nearest, 1):
            word = fit(self.session.model.word_label(token), WORD)
            lines.append(Content(f"{rank:>4} {word} {token:>8}  {minus(f'{cosine:7.4f}')}"))
        return Content("\n").join(lines)


# Two sentences: the cosine of their vectors, and what every pair of tokens gives to it


class SimilarScreen(Overview, tool="similar"):
    """Tokens of one sentence × tokens of the other: what each pair gives to the cosine."""

    WIDGETS = (WordTable, Legend)

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.compared: list[tuple[Session, Together]] = []  # the other sentence, and what came of it

    def begin(self) -> None:
        self.show_lines()
        self.call_after_refresh(self.action_sentence)

    def action_sentence(self) -> None:
        read = self.session.with_overlay(NOTHING).with_text
        hint = "its words take part in the cosine with the sentence that is explored"
        lately = [other.text for other, _ in reversed(self.compared)]
        self.open(*asking("Compare with", read, self._compare, hint=hint, lately=lately))

    def _compare(self, other: Session) -> None:
        both = (self.session, other)

        def work(task: Task) -> tuple[Session, Together]:
            for session in both:
                session.trace.compute(before=lambda step: task.report(step.name))
            return other, together(*(sentence_vector(session.trace) for session in both))

        programs = [session.trace.program for session in both]
        self.compute(work, self._take, sum(program.flops(step) for program in programs for step in program.steps))

    def _take(self, compared: tuple[Session, Together]) -> None:
        self.compared.append(compared)
        other, shares = compared[0], compared[1].shares
        most = float(np.abs(shares).max()) or 1.0
        scale = Scale("diverging", -most, most)
        row, column = (int(place) for place in np.unravel_index(np.abs(shares).argmax(), shares.shape))

        def cell(row: int, column: int) -> tuple[str, float]:
            share = float(shares[row, column])
            return minus(f"{share:+.3f}"), share

        cells = WordCells(_words(self.session), _words(other), cell, scale, number=lambda _: "")
        self.query_one(WordTable).show(cells, (row, column))
        self.query_one(Legend).show(scale, note="what a pair of tokens gives to the cosine")

    def texts(self) -> Texts:
        if not self.compared:
            hint = self.port.hint("{sentence.edit} asks for the other sentence")
            return Texts("Two sentences", "", ("nothing is compared yet", hint))
        other, together = self.compared[-1]
        cosine, shares = minus(f"{together.cosine:.4f}"), together.shares
        rows, columns = self.query_one(WordTable).shown
        row, column = self.query_one(WordTable).at
        first, second = _words(self.session)[row], _words(other)[column]
        share, of_row, of_column = (
            minus(f"{each:+.4f}") for each in (shares[row, column], shares[row].sum(), shares[:, column].sum())
        )
        parts = part_shown("row", rows, shares.shape[0]), part_shown("column", columns, shares.shape[1])
        return Texts(
            f"cosine {cosine} · rows: {self.session.sentence}",
            " · ".join((f"columns: {other.sentence}", *parts)),
            (
                f"{first} and {second} give {share} of the cosine {cosine}",
                f"{first} with all tokens {of_row} · all tokens with {second} {of_column}",
            ),
            "   ".join(minus(f"{each.cosine:.3f}") for _, each in self.compared[-5:]),
        )

    def chosen(self) -> None:
        if self.compared:
            row, _ = self.query_one(WordTable).at
            step = next(step for step in self.session.trace.program.steps if step.name.startswith(POOLED))
            leave_to(self, step.inputs[0], row=min(row, len(self.session.encoding.tokens) - 1))


def _words(session: Session) -> tuple[str, ...]:
    return (*(session.model.label(token.text) for token in session.encoding.tokens), "(bias)")
