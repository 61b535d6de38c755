"""The logit lens: which word the residual stream spells at each token after each layer, or each head raises."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.logit_lens import Affine, Lens, fit_lens, lens_of
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import LENS
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, leave_to, part_shown
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.lens.by_head import ByHead
from tui_transformer.explorer.tools.lens.by_layer import ByLayer
from tui_transformer.explorer.tools.lens.lens_table import Sheet, Words
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.files import expanded, is_file
from tui_transformer.model.options import texts_of, traced
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import Unknown
from tui_transformer.views.step_view import placed

Spelled = tuple[Sheet, dict[tuple[int, int], Words]]
Maps = Mapping[int, Affine]

FIT = "tuned lens"
"""As what a fit is asked for."""


def open_from(port: Port) -> None:
    """The lens; says so where the model has no output head."""
    try:
        lens = lens_of(port.session.trace.program)
    except InputError as error:
        port.say(str(error))
        return
    port.open(LensScreen(port, lens))


class LensScreen(Overview):
    """Layers or heads × tokens: the first word of each; only what is on screen is computed."""

    DEFAULT_CSS = """
    LensScreen #overview-detail { height: 3; }
    LensScreen.-narrow #overview-detail { height: 4; }
    """
    ACTIONS = LENS
    HELP_TOPIC, KIND = "lens", "lens"
    pieces: Pieces[Any, Spelled]

    def __init__(self, port: Port, lens: Lens) -> None:
        super().__init__(port)
        self.lens = lens
        self.less_mean = False
        self.fitted: Maps = {}
        self.tuned = False
        self.sheet: Sheet = ByLayer(self.session, lens)
        self.pieces = Pieces(
            self.requests, self.KIND, self.missing, lambda piece: self.sheet.cost(piece), self._spell, self._take
        )

    def content(self) -> ComposeResult:
        """The words, and what their colours mean."""
        yield WordTable(id="lens")
        yield Legend(id="lens-legend")

    def on_mount(self) -> None:
        """Show the table, and fill it."""
        start = min(self.port.position.place.row, self.lens.tokens - 1)
        self.query_one(WordTable).focus()
        self._show((self.sheet.row, start))
        self.call_after_refresh(self.pieces.go_on)

    def _show(self, cursor: tuple[int, int]) -> None:
        """The rows of the sheet, and what is known of them."""
        labels = tuple(map(self._token, range(self.lens.tokens)))
        sheet = self.sheet
        cells = WordCells(tuple(sheet.rows), labels, self._cell, sheet.scale, sheet.number)
        self.query_one(WordTable).show(cells, cursor)
        self.query_one(Legend).show(sheet.scale, note=sheet.legend)

    def _token(self, column: int) -> str:
        return self.session.labels.of(self.lens.steps[-1].axes[0])(column)

    def _cell(self, row: int, column: int) -> tuple[str, float] | None:
        words = self.sheet.words.get((row, column))
        return None if words is None else (self.session.labels.word(words[0][0]), words[0][1])

    # Spelling

    def missing(self) -> Any:
        """The next piece of what is on screen that is not there; None where all is."""
        return self.sheet.missing(*self.query_one(WordTable).shown)

    def _spell(self, piece: Any, task: Task) -> Spelled:
        sheet = self.sheet
        return sheet, sheet.spell(piece, task)

    def _take(self, spelled: Spelled) -> None:
        sheet, words = spelled
        sheet.words.update(words)
        if sheet is self.sheet:
            table = self.query_one(WordTable)
            self._show(table.cursor)
            table.refresh()

    # What is said

    def heading(self) -> str:
        """The stack that is read, and the steps that it is read through."""
        return self.sheet.heading

    def note(self) -> str:
        """The part that is on screen."""
        rows, columns = self.query_one(WordTable).shown
        parts = [part_shown("token", columns, self.lens.tokens), part_shown("row", rows, len(self.sheet.rows))]
        return " · ".join(parts)

    def progress(self) -> str:
        """How many words are there."""
        rows, columns = self.query_one(WordTable).shown
        done = sum((row, column) in self.sheet.words for row in rows for column in columns)
        total = len(rows) * len(columns)
        return f"{done:,} of {total:,} words on screen" if done < total else "all words on screen"

    def detail(self) -> tuple[str, str]:
        """The first words of the cell under the cursor."""
        row, column = self.query_one(WordTable).cursor
        best = self.sheet.words.get((row, column))
        title, more = self.sheet.about(row)
        where = f"{title} · token {placed(self._token(column), column)}"
        if best is None:
            return where, "not yet computed"
        words = "   ".join(f"{self.session.labels.word(word)} {self.sheet.number(value)}" for word, value in best)
        return words, f"{where} · {more}"

    def left_out(self) -> Collection[str]:
        """A mean is taken from heads alone."""
        return () if isinstance(self.sheet, ByHead) else ("mean",)

    # What keys do

    def action_kind(self) -> None:
        """Layers or heads; says so where heads spell no words."""
        self._turn(by_head=not isinstance(self.sheet, ByHead))

    def action_mean(self) -> None:
        """Switch between the output of heads and that less its mean over the tokens."""
        if isinstance(self.sheet, ByHead):
            self.less_mean = not self.less_mean
            self._turn(by_head=True)

    def action_tuned(self) -> None:
        """Switch between the plain lens and the tuned one, for which a text file is asked first."""
        if self.fitted:
            self._tune(not self.tuned)
            return

        def check(text: str) -> None:
            if not is_file(expanded(text)):
                raise InputError(f"{shown_path(expanded(text))}: no such file")

        def answered(text: str | None) -> None:
            if text is not None:
                self.requests.ask(FIT, AT_ONCE + 1, partial(self._fit, expanded(text)), self._take_fit)

        hint = "a text file: an affine map of every layer is fitted on its lines"
        self.open(PromptScreen("Tuned lens", hint=hint, check=check), answered)

    def _fit(self, path: Path, task: Task) -> tuple[Maps, str | None]:
        model, unknown = self.session.model, Unknown()
        maps = fit_lens(traced(model, texts_of(path), unknown.add), report=task.report)
        return maps, unknown.describe(model.vocabulary, shown_path(path), model.name)

    def _take_fit(self, fit: tuple[Maps, str | None]) -> None:
        self.fitted, said = fit
        if said is not None:
            self.say(said)
        self._tune(bool(self.fitted))

    def _tune(self, tuned: bool) -> None:  # noqa: FBT001 - the lens that is shown
        self.tuned = tuned
        self._turn(by_head=isinstance(self.sheet, ByHead))

    def action_leave(self) -> None:
        """Back to the main screen; a fit that is under way is ended."""
        self.worker.cancel(FIT)
        super().action_leave()

    def _sheet(self, *, by_head: bool) -> Sheet:
        maps = self.fitted if self.tuned else {}
        if by_head:
            return ByHead(self.session, less_mean=self.less_mean, tuned=maps)
        return ByLayer(self.session, replace(self.lens, tuned=maps))

    def _turn(self, *, by_head: bool) -> None:
        was, (row, column) = self.sheet, self.query_one(WordTable).cursor
        try:
            self.sheet = self._sheet(by_head=by_head)
        except InputError as error:
            self.say(str(error))
            return
        self._show((row if type(was) is type(self.sheet) else self.sheet.row, column))
        self.show_lines()
        self.pieces.again()

    @on(WordTable.Moved)
    def _moved(self) -> None:
        self.pieces.go_on()
        self.show_lines()

    @on(WordTable.Chosen)
    def _chosen(self) -> None:
        row, column = self.query_one(WordTable).cursor
        stop, head = self.sheet.place(row)
        leave_to(self, stop, head, row=column)
