"""The words whose logits every head raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.head_lens import HeadWords, words_of_heads, writing_attentions
from tui_transformer.analysis.logit_lens import Affine
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.lens.lens_table import TOP, Words
from tui_transformer.session.session import Session
from tui_transformer.views.view import Scale

CELLS = 1 << 22
"""Logits that are there together: heads × tokens × words."""


@dataclass(frozen=True)
class Piece:
    """The heads of an attention at some tokens.

    Attributes:
        first: The row of its first head.
        columns: The tokens.
    """

    attention: Attention
    first: int
    columns: range


class ByHead:
    """Heads × tokens."""

    def __init__(self, session: Session, *, less_mean: bool, tuned: Mapping[int, Affine]) -> None:
        """Nothing is known yet.

        Args:
            session: What is explored.
            less_mean: From what a head writes, its mean over the tokens is taken.
            tuned: Maps of the layers that it goes through; none for the plain lens.

        Raises:
            InputError: No head of the model spells words.
        """
        self._session, self._less_mean, self._tuned = session, less_mean, tuned
        writing = writing_attentions(session.trace.program)
        self._heads = [(attention, head) for attention in writing for head in range(attention.heads)]
        several = len({attention.group for attention in writing}) > 1
        self.rows = tuple(_label(attention, head, several=several) for attention, head in self._heads)
        self.row = 0
        self.words: dict[tuple[int, int], Words] = {}
        self.scale = Scale("sequential", 0.0, 0.0)
        of = "what a head writes, less its mean over the tokens" if less_mean else "what a head writes"
        lens, through = ("Tuned", " → affine map of the layer") if tuned else ("Logit", "")
        self.heading = f"{lens} lens by head · {of}{through}, norms frozen → logits"
        self.legend = "by how much the head raises the word's logit above the mean of all words"

    def number(self, value: float) -> str:
        """With two digits."""
        return minus(f"{value:+.2f}")

    def missing(self, rows: range, columns: range) -> Piece | None:
        """The heads of the first row on screen that has cells without a word, and as many tokens as go together."""
        places = ((row, column) for row in rows for column in columns if (row, column) not in self.words)
        row, column = next(places, (None, 0))
        if row is None:
            return None
        attention, head = self._heads[row]
        words = self._session.trace.program.shape(self._session.trace.program.logits)[-1]
        width = max(1, CELLS // (attention.heads * words))
        return Piece(attention, row - head, range(column, min(column + width, columns.stop)))

    def cost(self, piece: Piece) -> int:
        """The whole pass, and the head of words for every head and token."""
        trace = self._session.trace
        name = trace.program.logits
        one = trace.program.flops(trace.program.step(name)) // trace.program.shape(name)[0]
        return trace.pending([name]) + one * piece.attention.heads * len(piece.columns)

    def spell(self, piece: Piece, task: Task) -> dict[tuple[int, int], Words]:
        """The words that the heads raise most."""
        trace, attention, columns = self._session.trace, piece.attention, piece.columns
        trace.compute(before=lambda step: task.report(step.name))
        task.report(f"{attention.group} · layer {attention.layer} · token {columns.start:,}")
        logits = words_of_heads(trace, attention, columns, less_mean=self._less_mean, tuned=self._tuned)
        best = {
            (piece.first + head, columns[place]): HeadWords(attention, head, logits[head, place]).highest(TOP)
            for head, place in np.ndindex(logits.shape[:2])
        }
        highest = max(words[0][1] for words in best.values())
        self.scale = Scale("sequential", 0.0, max(self.scale.high, highest))
        return best

    def about(self, row: int) -> tuple[str, str]:
        """The head."""
        attention, head = self._heads[row]
        return f"{attention.group} layer {attention.layer} · head {head}", attention.name

    def place(self, row: int) -> tuple[str, int]:
        """Its attention weights."""
        attention, head = self._heads[row]
        return attention.name, head


def _label(attention: Attention, head: int, *, several: bool) -> str:
    kind = f"{attention.kind.partition('_')[0]} " if several else ""
    return f"{kind}L{attention.layer} H{head}"
