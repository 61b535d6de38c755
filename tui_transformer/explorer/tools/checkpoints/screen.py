"""The checkpoints of a run, stepped through: one head as it takes shape, large, and at some of them small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.head_measures import smaller
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, Texts
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.checkpoints.saved import Checkpoints, Computed, sample_of
from tui_transformer.explorer.tools.runs import (
    WEIGHT,
    Heads,
    HeadSelection,
    Sample,
    Turned,
    path_of,
    runs_here,
    session_of,
    show_in,
)
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.learning.run import checkpoints
from tui_transformer.model import Model
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import Overlay
from tui_transformer.views.numbers import short_number
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Values

Result = TypeVar("Result")

MOST_SMALL, SMALLEST = 8, 9
"""Small pictures at most, and columns of one at least."""

LEAST_SMALL = 5
"""Lines of the small pictures, even where the large head has to be scrolled then."""

AROUND = 8
"""Lines around the rows of the large head: title, borders, keys of the head, legend, detail, keys."""


def open_from(port: Port) -> None:
    """Step through the checkpoints of the run that the model is of; else ask for one."""
    folder = port.session.model.folder
    run = next((path for path in (folder, folder.parent.parent) if checkpoints(path)), None) if folder else None
    if run is not None:
        open_run(port, run)
    else:
        _ask(port, next(iter(runs_here()), ""))


def open_run(port: Port, folder: Path, opened: Callable[[Overview], None] | None = None) -> None:
    """Step through the checkpoints of a run, over the main screen or over what `opened` puts a screen over."""
    try:
        (opened or port.open)(CheckpointsScreen(port, Checkpoints.of(folder)))
    except InputError as error:
        port.say(str(error), severity="error")


def _ask(port: Port, value: str) -> None:
    """Ask for the folder of a run, beginning with one that there is, or with none."""
    prompt = PromptScreen(
        "Checkpoints of the run",
        value=value,
        hint="a run's folder" if value else port.hint("a run's folder; {train} trains a model and makes one"),
        check=lambda text: Checkpoints.of(path_of(text)),
        lately=runs_here(),
    )
    port.open(prompt, lambda text: None if text is None else open_run(port, path_of(text)))


class CheckpointsScreen(Overview, tool="checkpoints"):
    """One head at one checkpoint large, and at up to eight of them small.

    Attributes:
        place: The checkpoint that is looked at.
        selection: The head that is chosen.
    """

    DEFAULT_CSS = """
    CheckpointsScreen {
        #large { height: 1fr; padding: 0 1; }
        #large MatrixPane { height: 1fr; }
        TileGrid { height: 8; }
        &.-narrow #overview-detail { height: 2; }
        &.-short #overview-detail { height: 1; }
    }
    """
    WIDGETS = ()
    AUTO_FOCUS = ""
    pieces: Pieces[int, tuple[int, Heads]]

    def __init__(self, port: Port, run: Checkpoints) -> None:
        """Begin with the last checkpoint; all are computed as the model is that is explored."""
        super().__init__(port)
        backend = port.session.model.backend
        self.run, self.place, self.selection = run, len(run.all) - 1, HeadSelection()
        self.computed = Computed(run, backend.device, str(backend.dtype))
        self.pieces = Pieces(
            self.requests,
            self.KIND,
            lambda: self.computed.missing(self.place, self.side_by_side),
            lambda _: AT_ONCE + 1,
            lambda place, task: self.computed.compute(place, task),
            self._keep,
            self._leave_out,
        )

    def content(self) -> ComposeResult:
        with Vertical(id="large"):
            yield MatrixPane(id="matrix")
        yield TileGrid()

    def begin(self) -> None:
        for widget in (self.query_one(MatrixPane).cells, self.query_one(TileGrid)):
            widget.can_focus = False
        self._show()
        self.pieces.go_on()

    def on_resize(self) -> None:
        super().on_resize()
        if self.is_there:
            self._show()

    def _keep(self, computed: tuple[int, Heads]) -> None:
        self.computed.keep(*computed)
        self._show()

    def _leave_out(self, place: int) -> bool:
        self.computed.unread.add(place)
        return len(self.computed.unread) < len(self.run.all)

    # What is shown

    @property
    def side_by_side(self) -> tuple[int, ...]:
        """The checkpoints that are drawn small: evenly spaced, the first and the last among them."""
        last, room = len(self.run.all) - 1, (self.size.width - 2) // SMALLEST
        count = max(min(MOST_SMALL, room, last + 1), 1)
        return tuple(round(place * last / max(count - 1, 1)) for place in range(count))

    @property
    def heads(self) -> Heads | None:
        heads = self.computed.heads.get(self.place)
        return heads if heads is not None and heads.attentions else None

    @property
    def head(self) -> tuple[Attention, int] | None:
        known = self.computed.attentions
        return self.selection.of(known) if known else None

    def _show(self) -> None:
        small, places, heads, head = self.query_one(TileGrid), self.side_by_side, self.heads, self.head
        small.styles.height = self._small_height(head)
        if heads is not None and head is not None:
            matrix = heads.view(*head)
            tile = matrix.tile(range(matrix.rows.size), range(matrix.columns.size))
            self.query_one(MatrixPane).show_matrix(matrix, WEIGHT, tile, Place(), note="rows queries, columns keys")
        small.show(self._tiles(places), min(range(len(places)), key=lambda at: abs(places[at] - self.place)))
        self.show_lines()

    def _small_height(self, head: tuple[Attention, int] | None) -> int:
        """As many lines as the small pictures can use and the large one can spare."""
        across = max((self.size.width - 2) // len(self.side_by_side) - 1, 1)
        rows, columns = (across, across) if head is None else (head[0].queries.size, head[0].keys.size)
        wanted = 1 + -(-min(rows * max(across // max(rows, columns), 1), across) // 2)
        free = self.size.height - AROUND - rows
        return max(min(wanted, max(free, LEAST_SMALL), self.size.height // 3), 2)

    def _tiles(self, places: Sequence[int]) -> Tiles:
        def picture(index: int, side: int) -> Values | None:
            heads, head = self.computed.heads.get(places[index]), self.head
            return None if heads is None or head is None else smaller(heads.weights[head[0].name][head[1]], side, side)

        def labels(index: int) -> tuple[str, ...]:
            step = f"{self.run.all[places[index]].step:,}"
            return f"step {step}", step

        return Tiles(len(places), None, picture, labels, str, lambda _: WEIGHT)

    def texts(self) -> Texts:
        at, head, run = self.run.all[self.place], self.head, self.run
        name = "reading" if head is None else f"{head[0].group} · layer {head[0].layer} · head {head[1]}"
        losses = {"loss": at.loss, "validation loss": at.validation}
        known = [f"{name} {short_number(x)}" for name, x in losses.items() if x is not None and not math.isnan(x)]
        return Texts(
            f"{name} · step {at.step:,}",
            f"checkpoint {self.place + 1} of {len(run.all)}",
            (" · ".join((f"step {at.step:,}", *known)), self._sharpness()),
            f"{len(self.computed.heads)} of {len(run.all)} computed",
            about=f"Checkpoints   {run.folder.name}",
        )

    def _sharpness(self) -> str:
        """The mean over queries of the largest weight."""
        heads, head = self.heads, self.head
        if self.place not in self.computed.heads:
            return "being computed"
        if heads is None or head is None:
            return "this model has no attention"
        attention, number = head
        largest = float(heads.weights[attention.name][number].max(axis=1).mean())
        return f"largest weight of a query, mean {largest:.2f} · all keys alike would be {1 / attention.keys.size:.2f}"

    # What keys do

    def action_step(self, by: int) -> None:
        self.place = max(min(self.place + by, len(self.run.all) - 1), 0)
        self._show()
        if self.place not in self.computed.heads:
            self.pieces.again()

    def action_turn(self, what: Turned, by: int) -> None:
        if known := self.computed.attentions:
            self.selection = self.selection.turned(known, what, by)
        self._show()

    def action_sentence(self) -> None:
        sample = self.computed.sample
        if sample is None:
            return

        def finish(text: str | None) -> None:
            if text is not None:
                self._with_model(len(self.run.all) - 1, lambda model: sample_of(model, text), begin_again)

        def begin_again(sample: Sample) -> None:
            self.computed = Computed(self.run, self.computed.device, self.computed.dtype, sample)
            self._show()
            self.pieces.again()

        hint = "the source; the last checkpoint writes what the decoder reads" if sample.decoder_ids else ""
        self.open(PromptScreen("Sentence", value=self.session.text, hint=hint), finish)

    def action_run(self) -> None:
        self.action_leave()
        _ask(self.port, str(self.run.folder))

    def action_explore(self) -> None:
        sample, session = self.computed.sample, self.session
        if sample is not None:
            self._with_model(self.place, lambda model: session_of(session, model, sample), self._leave_with)

    def action_compare(self) -> None:
        """Explore the checkpoint with the last one beside it."""
        computed, session, last = self.computed, self.session, len(self.run.all) - 1
        sample = computed.sample
        if sample is None or self.place == last:
            self.say("this is the last checkpoint: go back to one before" if sample else "it is being computed")
            return

        def compared(model: Model) -> Session:
            other = self.run.load(last, computed.device, computed.dtype)
            overlay = Overlay("trace", f"step {self.run.all[last].step:,}", model=other)
            return session_of(session, model, sample).with_overlay(overlay)

        self._with_model(self.place, compared, self._leave_with)

    def _with_model(self, place: int, build: Callable[[Model], Result], done: Callable[[Result], None]) -> None:
        computed = self.computed

        def work(task: Task) -> Result:
            return build(computed.load(place, task))

        self.pieces.halt()
        self.requests.ask("model", AT_ONCE + 1, work, done)

    def _leave_with(self, session: Session) -> None:
        heads = self.heads
        self.action_leave()
        show_in(self.port, session, heads, self.selection)
