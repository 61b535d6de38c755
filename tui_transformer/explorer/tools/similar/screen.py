"""Two sentences: the cosine of their together, and what every pair of tokens gives to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.similar import POOLED, Together, sentence_vector, together
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.actions.tools import SIMILAR
from tui_transformer.explorer.shell.overview import Overview, leave_to, part_shown
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.view import Scale

BIASES = "(bias)"
NO_VECTOR = "this model makes no vector of a sentence: open a folder of sentence-transformers"


def open_from(port: Port) -> None:
    """Compare the sentence that is explored with another; says so where the model makes no together."""
    if POOLED not in port.session.trace.program.by_name:
        port.say(NO_VECTOR)
        return
    port.open(SimilarScreen(port))


@dataclass(frozen=True, eq=False)
class Compared:
    """The other sentence, and what came of comparing it."""

    other: Session
    together: Together


class SimilarScreen(Overview):
    """Tokens of one sentence × tokens of the other: what each pair gives to the cosine."""

    ACTIONS = SIMILAR
    HELP_TOPIC, KIND = "similar", "similar"

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.compared: list[Compared] = []

    def content(self) -> ComposeResult:
        """The shares, and what their colours mean."""
        yield WordTable(id="similar")
        yield Legend(id="similar-legend")

    def on_mount(self) -> None:
        """Ask for the other sentence."""
        self.query_one(WordTable).focus()
        self.show_lines()
        self.call_after_refresh(self.action_sentence)

    # Comparing

    def action_sentence(self) -> None:
        """Ask for another sentence."""
        here, made = self.session.with_overlay(NOTHING), list[Session]()

        def check(text: str) -> None:
            made[:] = [here.with_text(text)]

        def answered(text: str | None) -> None:
            if text is not None:
                self._compare(made[0])

        hint = "its words take part in the cosine with the sentence that is explored"
        lately = [each.other.text for each in reversed(self.compared)]
        self.open(PromptScreen("Compare with", hint=hint, check=check, lately=lately), answered)

    def _compare(self, other: Session) -> None:
        programs = [session.trace.program for session in (self.session, other)]
        cost = sum(program.flops(step) for program in programs for step in program.steps)
        self.requests.ask(self.KIND, cost, lambda task: self._vectors(other, task), self._take)

    def _vectors(self, other: Session, task: Task) -> Compared:
        for session in (self.session, other):
            session.trace.compute(before=lambda step: task.report(step.name))
        return Compared(other, together(*(sentence_vector(session.trace) for session in (self.session, other))))

    def _take(self, compared: Compared) -> None:
        self.compared.append(compared)
        shares = compared.together.shares
        most = float(np.abs(shares).max()) or 1.0
        scale = Scale("diverging", -most, most)
        table = self.query_one(WordTable)
        row, column = (int(place) for place in np.unravel_index(np.abs(shares).argmax(), shares.shape))
        cells = WordCells(_words(self.session), _words(compared.other), self._cell, scale)
        table.show(cells, (row, column))
        self.query_one(Legend).show(scale, note="what a pair of tokens gives to the cosine")
        self.show_lines()

    def _cell(self, row: int, column: int) -> tuple[str, float]:
        share = float(self.compared[-1].together.shares[row, column])
        return minus(f"{share:+.3f}"), share

    # What is said

    def heading(self) -> str:
        """How alike the sentences are."""
        if not self.compared:
            return "Two sentences"
        return f"cosine {minus(f'{self.compared[-1].together.cosine:.4f}')} · rows: {self._sentence(self.session)}"

    def note(self) -> str:
        """The other sentence, and what part is on screen."""
        if not self.compared:
            return ""
        rows, columns = self.query_one(WordTable).shown
        shares = self.compared[-1].together.shares
        return " · ".join(
            (
                f"columns: {self._sentence(self.compared[-1].other)}",
                part_shown("row", rows, shares.shape[0]),
                part_shown("column", columns, shares.shape[1]),
            )
        )

    @staticmethod
    def _sentence(session: Session) -> str:
        return session.text or session.encoding.text

    def progress(self) -> str:
        """The cosines so far."""
        return "   ".join(minus(f"{each.together.cosine:.3f}") for each in self.compared[-5:])

    def detail(self) -> tuple[str, str]:
        """The pair under the cursor, and what the token gives with all of the other sentence."""
        if not self.compared:
            return "nothing is compared yet", self.port.hint("{sentence.edit} asks for the other sentence")
        row, column = self.query_one(WordTable).cursor
        together, other = self.compared[-1].together, self.compared[-1].other
        first, second = _words(self.session)[row], _words(other)[column]
        shares = together.shares
        share, of_row, of_column = (
            minus(f"{each:+.4f}") for each in (shares[row, column], shares[row].sum(), shares[:, column].sum())
        )
        return (
            f"{first} and {second} give {share} of the cosine {minus(f'{together.cosine:.4f}')}",
            f"{first} with all tokens {of_row} · all tokens with {second} {of_column}",
        )

    @on(WordTable.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(WordTable.Chosen)
    def _chosen(self) -> None:
        """To the row of the token in what is pooled."""
        if self.compared:
            row, _ = self.query_one(WordTable).cursor
            step = next(step for step in self.session.trace.program.steps if step.name.startswith(POOLED))
            leave_to(self, step.inputs[0], row=min(row, len(self.session.encoding.tokens) - 1))


def _words(session: Session) -> tuple[str, ...]:
    words: Sequence[str] = [session.model.label(token.text) for token in session.encoding.tokens]
    return (*words, BIASES)
