"""Tables of patches: layers × positions or heads, each patched alone from another sentence, as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.patching import Measured, Place, kinds_of
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import PATCHING
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation.perform import perform
from tui_transformer.explorer.tools.measure.screen import choose
from tui_transformer.explorer.tools.patch.screen import Draft
from tui_transformer.explorer.tools.patching.table import PatchTable
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.session.edit_format import FromSentence
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import placed, scale_for

Piece = tuple[PatchTable, tuple[Place, ...]]
TablePart = tuple[PatchTable, Sequence[Measured]]


def open_from(port: Port) -> None:
    """The table; says so where the model has no logits of words, or reads no sentence."""
    if not port.session.trace.program.logits or not port.session.model.config.vocab_size:
        port.say("this model has no logits of words: tables of patches are measured by these")
        return
    port.open(PatchingScreen(port))


class PatchingScreen(Overview):
    """The effect of every position, head or layer that is brought over from another sentence."""

    ACTIONS = PATCHING
    HELP_TOPIC, KIND = "patching", "patching"
    pieces: Pieces[Piece, TablePart]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.kinds = kinds_of(self.session.trace.program)
        self.at = 0
        self.table: PatchTable | None = None
        self.ended = False
        self.pieces = Pieces(
            self.requests, self.KIND, self._following, lambda _: AT_ONCE + 1, self._measure, self._take
        )

    def content(self) -> ComposeResult:
        """The map, and what its colours mean."""
        yield HeatMap(id="patching")
        yield Legend(id="patching-legend")

    def on_mount(self) -> None:
        """Ask for the other sentence."""
        self.query_one(HeatMap).focus()
        self.show_lines()
        self.call_after_refresh(self.action_sentence)

    # Measuring

    def action_sentence(self) -> None:
        """Ask for another sentence."""
        here, made = self.session.with_overlay(NOTHING), list[Session]()

        def check(text: str) -> None:
            other = replace(here, edits=()).with_text(text)
            tokens = len(here.encoding.tokens), len(other.encoding.tokens)
            if tokens[0] != tokens[1]:
                raise InputError(f"it has {tokens[1]} tokens and this sentence {tokens[0]}: a table needs as many")
            made[:] = [other]

        def answered(text: str | None) -> None:
            if text is not None:
                self._begin(made[0])

        value = here.text or here.encoding.text
        self.open(PromptScreen("Patch from", value=value, hint="a sentence of as many tokens", check=check), answered)

    def _begin(self, other: Session) -> None:
        """Measure the table of another sentence."""
        self.ended = False
        self.table = PatchTable(self.session, other, self.kinds[self.at])
        self._show()
        self.pieces.again()

    def _following(self) -> Piece | None:
        table = self.table
        return None if table is None or self.ended or not table.missing else (table, table.missing)

    def _measure(self, piece: Piece, task: Task) -> TablePart:
        table, places = piece
        return table, table.measure(places, task)

    def _take(self, patched: TablePart) -> None:
        table, measured = patched
        table.take(measured)
        if table is self.table:
            self._show()

    def _show(self) -> None:
        table = self.table
        if table is None:
            return
        view = table.view
        rows, columns = range(len(table.rows)), range(table.columns)
        values = view.window(rows, columns)
        there = [*values[np.isfinite(values)].tolist(), *(table.ends or ())]
        scale = scale_for(
            "diverging" if min(there, default=0.0) < 0 else "sequential",
            min(there, default=0.0),
            max(there, default=1.0),
        )
        heat_map = self.query_one(HeatMap)
        cursor = heat_map.cursor
        heat_map.show(view, scale, view.tile(rows, columns))
        heat_map.cursor = cursor
        self.query_one(Legend).show(scale, note=f"{table.said}, with the cell patched")
        self.show_lines()

    # What is said

    def heading(self) -> str:
        """The kind of places that are patched, and the sentence that values come from."""
        if self.table is None:
            return "Tables of patches"
        return f"Patch · each {self.table.said_kind} from “{self.table.other.text or self.table.other.encoding.text}”"

    def note(self) -> str:
        """The metric of both sentences."""
        if self.table is None or self.table.ends is None:
            return ""
        own, other = self.table.ends
        return f"{self.table.said}: {spoken(own, 4)} as it is, {spoken(other, 4)} of the other sentence"

    def progress(self) -> str:
        """How many places are measured."""
        if self.table is None:
            return ""
        done, total = len(self.table.values), len(self.table.table.places)
        return f"{done:,} of {total:,} places" + (" · ended" if self.ended else "")

    def detail(self) -> tuple[str, str]:
        """The cell under the cursor."""
        if self.table is None:
            return "nothing is patched yet", self.port.hint("{sentence.edit} asks for the other sentence")
        row, column = self.query_one(HeatMap).cursor
        place = self.table.place(row, column)
        if place is None:
            return "", ""
        what = self.table.layer(row)
        if self.table.what != "layer":
            name = self.table.label(column)
            where = placed(name, column) if self.table.what == "position" else name
            what += f" · {self.table.what} {where}"
        value = self.table.values.get(place)
        if value is None:
            return what, "not yet measured"
        share = self.table.share(value)
        enter = self.port.hint("{cursor.choose} patches it in the main screen")
        way = "" if np.isnan(share) else f"  {in_percent(share)} of the way to the other sentence"
        return f"{what}  {minus(f'{value:.4f}')}{way}", f"{place.step} · {enter}"

    # What keys do

    def action_kind(self) -> None:
        """Positions, heads, layers."""
        self.at = (self.at + 1) % len(self.kinds)
        if self.table is not None:
            self._begin(self.table.other)

    def action_measure(self) -> None:
        """Measure by something else."""
        choose(self.port, self.open, self.change, lambda: None if self.table is None else self._begin(self.table.other))

    def action_go_on(self) -> None:
        """Measure what is missing."""
        self.ended = False
        self.pieces.go_on()
        self.show_lines()

    def action_end(self) -> None:
        """End the computation; where none runs, leave."""
        if self.pieces.idle:
            self.action_leave()
            return
        self.ended = True
        self.pieces.halt()
        self.requests.doing = ""
        self.show_lines()

    @on(HeatMap.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(HeatMap.Chosen)
    def _chosen(self) -> None:
        """Patch the cell in the main screen."""
        table = self.table
        place = None if table is None else table.place(*self.query_one(HeatMap).cursor)
        if table is None or place is None:
            return
        other, port = table.other, self.port
        patch = FromSentence.between(self.session.base, other.trace, place.step, place.rows, place.heads)
        draft = Draft(other, replace(patch, sentence=other.text or other.encoding.text), range(0))
        self.action_leave()
        port.ask("patch", AT_ONCE + 1, draft.made, lambda made: perform(port, (made,)))
