"""The words that the residual stream spells behind every layer."""

from __future__ import annotations

from tui_transformer.analysis.logit_lens import Lens, words_at
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.lens.lens_table import TOP, Words
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.session import Session
from tui_transformer.views.view import Scale

Piece = tuple[int, range]
"""A depth, and tokens."""


class ByLayer:
    """Layers × tokens."""

    scale = Scale("sequential", 0.0, 1.0)
    legend = "probability of the most probable word"

    def __init__(self, session: Session, lens: Lens) -> None:
        self._session, self._lens = session, lens
        self.words: dict[tuple[int, int], Words] = {}
        self.rows = tuple(depth.title for depth in lens.depths)
        self.row = len(self.rows) - 1
        what = "Tuned lens · affine map of the layer →" if lens.tuned else "Logit lens ·"
        self.heading = f"{what} {' → '.join(step.name for step in lens.steps)}"
        self.number = percent

    def missing(self, rows: range, columns: range) -> Piece | None:
        """The next row that has cells on screen without a word, and the columns on screen."""
        ready = (row for row in rows if any((row, column) not in self.words for column in columns))
        row = next(ready, None)
        return None if row is None else (row, columns)

    def cost(self, piece: Piece) -> int:
        """The stream up to there, and the head."""
        row, columns = piece
        trace = self._session.trace
        head = trace.program.flops(self._lens.steps[-1]) // self._lens.tokens * len(columns)
        return trace.pending([self._lens.depths[row].step]) + head

    def spell(self, piece: Piece, task: Task) -> dict[tuple[int, int], Words]:
        """The most probable words of some tokens."""
        row, columns = piece
        spelled = self._lens.spell(self._session.trace, self._lens.depths[row], columns, TOP, report=task.report)
        return {(row, column): tuple(words_at(spelled, column)) for column in spelled.rows}

    def about(self, row: int) -> tuple[str, str]:
        """The layer; behind the last the words are the model's own."""
        depth = self._lens.depths[row]
        last = " · the model's own probabilities" if row == len(self.rows) - 1 else ""
        affine = self._lens.tuned.get(depth.layer)
        fitted = "" if affine is None else f" · map fitted on {affine.tokens:,} tokens"
        return self.rows[row], f"{depth.step}{last}{fitted}"

    def place(self, row: int) -> tuple[str, int]:
        """The output of the layer."""
        return self._lens.depths[row].step, 0
