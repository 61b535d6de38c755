"""The logit lens: which word the residual stream spells at each token after each layer, or each head raises."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from tui_transformer.analysis.head_lens import HeadWords, words_of_heads, writing_attentions
from tui_transformer.analysis.logit_lens import Affine, Lens, fit_lens, lens_of, words_at
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to, part_shown, work_on
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.files import expanded, is_file
from tui_transformer.model.options import texts_of, traced
from tui_transformer.records import replace
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.edit_format import left_out
from tui_transformer.session.session import Session
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import Unknown
from tui_transformer.views.step_view import placed
from tui_transformer.views.view import Scale

TOP = 5
"""Words of each cell that are kept."""

CELLS = 1 << 22
"""Logits of heads that are there together: heads × tokens × words."""

FIT = "tuned lens"
"""As what a fit is asked for."""

Spelled = dict[tuple[int, int], tuple[tuple[int, float], ...]]
"""By row and token, token IDs with their numbers, the highest first."""

Piece = tuple[int, range]
"""A row, and some of the tokens."""

Maps = Mapping[int, Affine]


def map_said(session: Session, affine: Affine | None) -> str:
    """What a map was fitted on: texts, as the model reads them without the session's changes; "" without a map."""
    return "" if affine is None else f" · map fitted on {affine.tokens:,} tokens{left_out(session)}"


class ByLayer:
    """Layers × tokens: the words that the residual stream spells behind every layer.

    Attributes:
        row: The row to begin with.
        words: The cells that are known, each with the words that are spelled there.
        scale: The range of the numbers so far.
    """

    legend = "probability of the most probable word"

    def __init__(self, session: Session, lens: Lens) -> None:
        self._session, self._lens = session, lens
        self.words: Spelled = {}
        self.scale = Scale("sequential", 0.0, 1.0)
        self.rows = tuple(depth.title for depth in lens.depths)
        self.row = len(self.rows) - 1
        what = "Tuned lens · affine map of the layer →" if lens.tuned else "Logit lens ·"
        self.heading = f"{what} {' → '.join(step.name for step in lens.steps)}"

    number = staticmethod(percent)

    def piece(self, row: int, columns: range) -> Piece:
        """What is worked out together of a row whose words are missing at these tokens."""
        return row, columns

    def cost(self, piece: Piece) -> int:
        """Floating-point operations of a piece: the stream up to there, and the head."""
        row, columns = piece
        trace = self._session.trace
        head = trace.program.flops(self._lens.steps[-1]) // self._lens.tokens * len(columns)
        return trace.pending([self._lens.depths[row].step]) + head

    def spell(self, piece: Piece, task: Task) -> Spelled:
        row, columns = piece
        spelled = self._lens.spell(self._session.trace, self._lens.depths[row], columns, TOP, report=task.report)
        return {(row, column): tuple(words_at(spelled, column)) for column in spelled.rows}

    def about(self, row: int) -> tuple[str, str]:
        """A row in words, and its step; behind the last layer the words are the model's own."""
        depth = self._lens.depths[row]
        last = " · the model's own probabilities" if row == len(self.rows) - 1 else ""
        return self.rows[row], f"{depth.step}{last}{map_said(self._session, self._lens.tuned.get(depth.layer))}"

    def place(self, row: int) -> tuple[str, int]:
        """The step that a row is read from, and the head."""
        return self._lens.depths[row].step, 0


class ByHead:
    """Heads × tokens: the words whose logits every head raises; otherwise as `ByLayer`."""

    legend = "by how much the head raises the word's logit above the mean of all words"
    row = 0

    def __init__(self, session: Session, *, less_mean: bool, tuned: Maps) -> None:
        """From what a head writes, its mean over the tokens is taken (`less_mean`), and it goes through `tuned` maps.

        Raises:
            InputError: No head of the model spells words.
        """
        self._session, self._less_mean, self._tuned = session, less_mean, tuned
        writing = writing_attentions(session.trace.program)
        self._heads = [(attention, head) for attention in writing for head in range(attention.heads)]
        several = len({attention.group for attention in writing}) > 1
        kinds = [f"{attention.kind.partition('_')[0]} " if several else "" for attention, _ in self._heads]
        self.rows = tuple(f"{kind}L{at.layer} H{head}" for kind, (at, head) in zip(kinds, self._heads, strict=True))
        self.words: Spelled = {}
        self.scale = Scale("sequential", 0.0, 0.0)
        of = "what a head writes, less its mean over the tokens" if less_mean else "what a head writes"
        lens, through = ("Tuned", " → affine map of the layer") if tuned else ("Logit", "")
        self.heading = f"{lens} lens by head · {of}{through}, norms frozen → logits"

    number = staticmethod(lambda value: minus(f"{value:+.2f}"))

    def piece(self, row: int, columns: range) -> Piece:
        """All heads of the row's attention, by the first of them, and as many tokens as go together."""
        attention, head = self._heads[row]
        words = self._session.trace.program.shape(self._session.trace.program.logits)[-1]
        return row - head, columns[: max(1, CELLS // (attention.heads * words))]

    def cost(self, piece: Piece) -> int:
        """The whole pass, and the head of words for every head and token."""
        (first, columns), trace = piece, self._session.trace
        name = trace.program.logits
        one = trace.program.flops(trace.program.step(name)) // trace.program.shape(name)[0]
        return trace.pending([name]) + one * self._heads[first][0].heads * len(columns)

    def spell(self, piece: Piece, task: Task) -> Spelled:
        (first, columns), trace = piece, self._session.trace
        attention = self._heads[first][0]
        trace.compute(before=lambda step: task.report(step.name))
        task.report(f"{attention.group} · layer {attention.layer} · token {columns.start:,}")
        logits = words_of_heads(trace, attention, columns, less_mean=self._less_mean, tuned=self._tuned)
        best = {
            (first + head, columns[place]): HeadWords(attention, head, logits[head, place]).highest(TOP)
            for head, place in np.ndindex(logits.shape[:2])
        }
        self.scale = replace(self.scale, high=max(self.scale.high, *(words[0][1] for words in best.values())))
        return best

    def about(self, row: int) -> tuple[str, str]:
        attention, head = self._heads[row]
        fitted = map_said(self._session, self._tuned.get(attention.layer))
        return f"{attention.group} layer {attention.layer} · head {head}", f"{attention.name}{fitted}"

    def place(self, row: int) -> tuple[str, int]:
        attention, head = self._heads[row]
        return attention.name, head


class LensScreen(Overview, tool="lens"):
    """Layers or heads × tokens: the first word of each; only what is on screen is computed."""

    DEFAULT_CSS = """
    LensScreen #overview-detail { height: 3; }
    LensScreen.-narrow #overview-detail { height: 4; }
    LensScreen.-short #overview-detail { max-height: 20%; }
    """
    WIDGETS = (WordTable, Legend)

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.lens = lens_of(self.session.trace.program)
        self.less_mean = self.tuned = False
        self.fitted: Maps = {}
        self.sheet: ByLayer | ByHead = ByLayer(self.session, self.lens)
        work_on(
            self,
            self.missing,
            lambda piece, task: self.sheet.spell(piece, task),
            self._take,
            lambda piece: self.sheet.cost(piece),
        )

    @property
    def table(self) -> WordTable:
        return self.query_one(WordTable)

    def begin(self) -> None:
        self._show((self.sheet.row, min(self.port.position.place.row, self.lens.tokens - 1)))
        self.call_after_refresh(self.pieces.go_on)

    def _show(self, cursor: tuple[int, int]) -> None:
        sheet, labels = self.sheet, tuple(map(self._token, range(self.lens.tokens)))

        def cell(row: int, column: int) -> tuple[str, float] | None:
            words = self.sheet.words.get((row, column))
            return None if words is None else (self.session.labels.word(words[0][0]), words[0][1])

        self.table.show(WordCells(sheet.rows, labels, cell, sheet.scale, sheet.number), cursor)
        self.query_one(Legend).show(sheet.scale, note=sheet.legend)

    def _token(self, column: int) -> str:
        return self.session.labels.of(self.lens.steps[-1].axes[0])(column)

    def missing(self) -> Piece | None:
        """The next piece of what is on screen that is not there; None where all is."""
        rows, columns = self.table.shown
        places = ((row, column) for row in rows for column in columns if (row, column) not in self.sheet.words)
        row, column = next(places, (None, 0))
        return None if row is None else self.sheet.piece(row, range(column, columns.stop))

    def _take(self, _: Piece, spelled: Spelled) -> None:
        self.sheet.words.update(spelled)
        self._show(self.table.at)
        self.table.refresh()

    def texts(self) -> Texts:
        sheet, (rows, columns), (row, column) = self.sheet, self.table.shown, self.table.at
        done, total = sum((row, column) in sheet.words for row in rows for column in columns), len(rows) * len(columns)
        best = sheet.words.get((row, column))
        title, more = sheet.about(row)
        where = f"{title} · token {placed(self._token(column), column)}"
        detail = where, "not yet computed"
        if best is not None:
            words = (f"{self.session.labels.word(word)} {sheet.number(value)}" for word, value in best)
            detail = "   ".join(words), f"{where} · {more}"
        return Texts(
            sheet.heading,
            f"{part_shown('token', columns, self.lens.tokens)} · {part_shown('row', rows, len(sheet.rows))}",
            detail,
            f"{done:,} of {total:,} words on screen" if done < total else "all words on screen",
            useful={"mean": self.by_head},
        )

    # What keys do

    @property
    def by_head(self) -> bool:
        return isinstance(self.sheet, ByHead)

    def action_kind(self) -> None:
        self._turn(by_head=not self.by_head)

    def action_mean(self) -> None:
        if self.by_head:
            self.less_mean = not self.less_mean
            self._turn(by_head=True)

    def _turn(self, *, by_head: bool) -> None:
        """Layers or heads; says so where heads spell no words."""
        was, (row, column) = self.sheet, self.table.at
        maps = self.fitted if self.tuned else {}
        try:
            self.sheet = (
                ByHead(self.session, less_mean=self.less_mean, tuned=maps)
                if by_head
                else ByLayer(self.session, replace(self.lens, tuned=maps))
            )
        except InputError as error:
            self.say(str(error))
            return
        self._show((row if type(was) is type(self.sheet) else self.sheet.row, column))
        self.show_lines()
        self.pieces.again()

    def action_tuned(self) -> None:
        """Switch between the plain lens and the tuned one, for which a text file is asked first."""
        if self.fitted:
            self.tuned = not self.tuned
            self._turn(by_head=self.by_head)
            return

        def read(text: str) -> Path:
            path = expanded(text.strip())
            if not is_file(path):
                raise InputError(f"{shown_path(path)}: no such file")
            return path

        def work(path: Path, task: Task) -> tuple[Maps, str | None]:
            model, unknown = self.session.model, Unknown()
            maps = fit_lens(traced(model, texts_of(path), unknown.add), report=task.report)
            return maps, unknown.describe(model.vocabulary, shown_path(path), model.name)

        def take(fit: tuple[Maps, str | None]) -> None:
            self.fitted, remark = fit
            if remark is not None:
                self.say(remark)
            self.tuned = bool(self.fitted)
            self._turn(by_head=self.by_head)

        def fit(path: Path) -> None:
            self.requests.ask(FIT, partial(work, path), take)

        hint = "a text file: an affine map of every layer is fitted on its lines"
        self.open(*asking("Tuned lens", read, fit, hint=hint))

    def action_leave(self) -> None:
        self.worker.cancel(FIT)
        super().action_leave()

    def moved(self) -> None:
        self.pieces.go_on()
        self.show_lines()

    def chosen(self) -> None:
        row, column = self.table.at
        stop, head = self.sheet.place(row)
        leave_to(self, stop, head, row=column)
