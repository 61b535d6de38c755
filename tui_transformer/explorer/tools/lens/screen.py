"""The logit lens: which word the residual stream spells at each token after each layer."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.logit_lens import Lens, Spelled, lens_of, words_at
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import LENS
from tui_transformer.explorer.shell.overview import Overview, leave_to, part_shown
from tui_transformer.explorer.shell.pieces import Pieces
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.answer import percent
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.views.step_view import placed
from tui_transformer.views.view import Scale

TOP = 5
"""Words of each cell that are kept."""

PROBABILITY = Scale("sequential", 0.0, 1.0)


def open_from(port: Port) -> None:
    """The lens; says so where the model has no output head."""
    try:
        lens = lens_of(port.session.trace.program)
    except InputError as error:
        port.say(str(error))
        return
    port.open(LensScreen(port, lens))


class LensScreen(Overview):
    """Layers × tokens: the most probable word of each; only what is on screen is computed."""

    DEFAULT_CSS = """
    LensScreen #overview-detail { height: 3; }
    LensScreen.-narrow #overview-detail { height: 4; }
    """
    ACTIONS = LENS
    HELP_TOPIC, KIND = "lens", "lens"
    pieces: Pieces[tuple[int, range], tuple[int, Spelled]]

    def __init__(self, port: Port, lens: Lens) -> None:
        """Begin at the token of the main screen's row."""
        super().__init__(port)
        self.lens = lens
        self.words: dict[tuple[int, int], tuple[tuple[int, float], ...]] = {}
        self.pieces = Pieces(self.requests, self.KIND, self.missing, self._cost, self._spell, self._take)

    def content(self) -> ComposeResult:
        """The words, and what their colours mean."""
        yield WordTable(id="lens")
        yield Legend(id="lens-legend")

    def on_mount(self) -> None:
        """Show the table, and fill it."""
        axis = self.lens.steps[-1].axes[0]
        labels = tuple(map(self.session.labels.of(axis), range(self.lens.tokens)))
        rows = tuple(depth.title for depth in self.lens.depths)
        start = min(self.port.position.place.row, self.lens.tokens - 1)
        table = self.query_one(WordTable)
        table.show(WordCells(rows, labels, self._cell, PROBABILITY, percent), (len(rows) - 1, start))
        self.query_one(Legend).show(PROBABILITY, note="probability of the most probable word")
        table.focus()
        self.call_after_refresh(self.pieces.go_on)

    def _cell(self, row: int, column: int) -> tuple[str, float] | None:
        words = self.words.get((row, column))
        return None if words is None else (self.session.labels.word(words[0][0]), words[0][1])

    # Spelling

    def missing(self) -> tuple[int, range] | None:
        """The next row that has cells on screen without a word, and the columns on screen."""
        rows, columns = self.query_one(WordTable).shown
        ready = (row for row in rows if any((row, column) not in self.words for column in columns))
        row = next(ready, None)
        return None if row is None else (row, columns)

    def _cost(self, missing: tuple[int, range]) -> int:
        row, columns = missing
        head = self.session.trace.program.flops(self.lens.steps[-1]) // self.lens.tokens * len(columns)
        return self.session.trace.pending([self.lens.depths[row].step]) + head

    def _spell(self, missing: tuple[int, range], task: Task) -> tuple[int, Spelled]:
        row, columns = missing
        return row, self.lens.spell(self.session.trace, self.lens.depths[row], columns, TOP, report=task.report)

    def _take(self, spelled: tuple[int, Spelled]) -> None:
        row, spelled_row = spelled
        self.words |= {(row, column): tuple(words_at(spelled_row, column)) for column in spelled_row.rows}
        self.query_one(WordTable).refresh()

    # What is said

    def heading(self) -> str:
        """The stack that is read, and the steps that it is read through."""
        names = " → ".join(step.name for step in self.lens.steps)
        return f"Logit lens · {names}"

    def note(self) -> str:
        """The part that is on screen."""
        rows, columns = self.query_one(WordTable).shown
        parts = [part_shown("token", columns, self.lens.tokens), part_shown("row", rows, len(self.lens.depths))]
        return " · ".join(parts)

    def progress(self) -> str:
        """How many words are there."""
        rows, columns = self.query_one(WordTable).shown
        done = sum((row, column) in self.words for row in rows for column in columns)
        total = len(rows) * len(columns)
        return f"{done:,} of {total:,} words on screen" if done < total else "all words on screen"

    def detail(self) -> tuple[str, str]:
        """The most probable words of the cell under the cursor."""
        row, column = self.query_one(WordTable).cursor
        best = self.words.get((row, column))
        axis = self.lens.steps[-1].axes[0]
        where = f"{self.lens.depths[row].title} · token {placed(self.session.labels.of(axis)(column), column)}"
        if best is None:
            return where, "not yet computed"
        words = "   ".join(f"{self.session.labels.word(word)} {percent(share)}" for word, share in best)
        last = " · the model's own probabilities" if row == len(self.lens.depths) - 1 else ""
        return f"{words}", f"{where} · {self.lens.depths[row].step}{last}"

    @on(WordTable.Moved)
    def _moved(self) -> None:
        self.pieces.go_on()
        self.show_lines()

    @on(WordTable.Chosen)
    def _chosen(self) -> None:
        row, column = self.query_one(WordTable).cursor
        leave_to(self, self.lens.depths[row].step, row=column)
