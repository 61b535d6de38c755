"""The checkpoints of a run, stepped through: one head as it takes shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import CHECKPOINTS
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.checkpoints.computed import Computed
from tui_transformer.explorer.tools.checkpoints.saved import Checkpoints, sample_of
from tui_transformer.explorer.tools.checkpoints.view import WEIGHT, CheckpointView
from tui_transformer.explorer.tools.runs.exploring import session_of, show_in
from tui_transformer.explorer.tools.runs.paths import path_of, runs_here
from tui_transformer.explorer.tools.runs.sample import Heads, Sample
from tui_transformer.explorer.tools.runs.selection import HeadSelection, Turned
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.tile_grid import TileGrid
from tui_transformer.learning.run import checkpoints
from tui_transformer.model import Model
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import Overlay
from tui_transformer.views.step_view import Place

Result = TypeVar("Result")

SMALLEST = 9
"""Columns of a small picture, at least."""

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


class CheckpointsScreen(Overview):
    """One head at one checkpoint large, and at up to eight of them small."""

    ACTIONS = CHECKPOINTS
    DEFAULT_CSS = """
    CheckpointsScreen {
        #large { height: 1fr; padding: 0 1; }
        #large MatrixPane { height: 1fr; }
        #small { height: 8; }
        &.-narrow #overview-detail { height: 2; }
        &.-short #overview-detail { height: 1; }
    }
    """
    AUTO_FOCUS = ""
    HELP_TOPIC, KIND = "checkpoints", "checkpoint"
    pieces: Pieces[int, tuple[int, Heads]]

    def __init__(self, port: Port, run: Checkpoints) -> None:
        """Begin with the last checkpoint; all are computed as the model is that is explored."""
        super().__init__(port)
        backend = port.session.model.backend
        self.run = run
        computed = Computed(run, backend.device, str(backend.dtype))
        self.view = CheckpointView(computed, len(run.all) - 1, HeadSelection())
        cost = AT_ONCE + 1
        self.pieces = Pieces(
            self.requests, self.KIND, self._missing, lambda _: cost, self._compute, self._keep, self._leave_out
        )

    def content(self) -> ComposeResult:
        """The head above, the small pictures of it below."""
        with Vertical(id="large"):
            yield MatrixPane(id="matrix")
        yield TileGrid(id="small")

    def on_mount(self) -> None:
        """Compute the last first."""
        for widget in (self.query_one(MatrixPane).cells, self.query_one(TileGrid)):
            widget.can_focus = False
        self._show()
        self.pieces.go_on()

    def on_resize(self) -> None:
        """Give the small pictures as many lines as they can use."""
        super().on_resize()
        if self.is_there:
            self._show()

    # Computing

    def _missing(self) -> int | None:
        return self.view.computed.missing(self.view.place, self.side_by_side)

    def _compute(self, place: int, task: Task) -> tuple[int, Heads]:
        return self.view.computed.compute(place, task)

    def _keep(self, computed: tuple[int, Heads]) -> None:
        self.view.computed.keep(*computed)
        self._show()

    def _leave_out(self, place: int) -> bool:
        self.view.computed.unread.add(place)
        return len(self.view.computed.unread) < len(self.run.all)

    # What is shown

    @property
    def side_by_side(self) -> tuple[int, ...]:
        """The checkpoints that are drawn small, as many as there is room for."""
        return self.run.side_by_side((self.size.width - 2) // SMALLEST)

    def _show(self, view: CheckpointView | None = None) -> None:
        """The head large and small, as it is or another."""
        self.view = view = view or self.view
        small, places, head = self.query_one(TileGrid), self.side_by_side, view.head
        small.styles.height = self._small_height()
        if view.heads is not None and head is not None:
            matrix = view.heads.view(*head)
            tile = matrix.tile(range(matrix.rows.size), range(matrix.columns.size))
            self.query_one(MatrixPane).show_matrix(matrix, WEIGHT, tile, Place(), note="rows queries, columns keys")
        small.show(view.tiles(places), min(range(len(places)), key=lambda at: abs(places[at] - view.place)))
        self.show_lines()

    def _small_height(self) -> int:
        """As many lines as the small pictures can use and the large one can spare."""
        across, head = max((self.size.width - 2) // len(self.side_by_side) - 1, 1), self.view.head
        rows, columns = (across, across) if head is None else (head[0].queries.size, head[0].keys.size)
        wanted = 1 + -(-min(rows * max(across // max(rows, columns), 1), across) // 2)
        free = self.size.height - AROUND - rows
        return max(min(wanted, max(free, LEAST_SMALL), self.size.height // 3), 2)

    def about(self) -> str:
        """The run."""
        return f"Checkpoints   {self.run.folder.name}"

    def heading(self) -> str:
        """The head, and the step."""
        return self.view.heading

    def note(self) -> str:
        """Which of how many."""
        return f"checkpoint {self.view.place + 1} of {len(self.run.all)}"

    def progress(self) -> str:
        """How many are computed."""
        return f"{len(self.view.computed.heads)} of {len(self.run.all)} computed"

    def detail(self) -> tuple[str, str]:
        """Step and loss; then how sharply the head looks."""
        return self.view.losses, self.view.sharpness

    # What keys do

    def action_step(self, by: int) -> None:
        """Another checkpoint."""
        self._show(self.view.moved(by))
        if self.view.place not in self.view.computed.heads:
            self.pieces.again()

    def action_turn(self, what: Turned, by: int) -> None:
        """Another head, layer or kind of attention."""
        self._show(self.view.turned(what, by))

    def action_sentence(self) -> None:
        """Ask for another sentence, and compute all checkpoints again."""
        sample = self.view.computed.sample
        if sample is None:
            return

        def finish(text: str | None) -> None:
            if text is not None:
                self._with_model(len(self.run.all) - 1, lambda model: sample_of(model, text), self._begin_again)

        hint = "the source; the last checkpoint writes what the decoder reads" if sample.decoder_ids else ""
        self.open(PromptScreen("Sentence", value=self.session.text, hint=hint), finish)

    def _begin_again(self, sample: Sample) -> None:
        view = self.view
        computed = Computed(self.run, view.computed.device, view.computed.dtype, sample)
        self._show(CheckpointView(computed, view.place, view.selection))
        self.pieces.again()

    def action_run(self) -> None:
        """Ask for another run."""
        self.action_leave()
        _ask(self.port, str(self.run.folder))

    def action_explore(self) -> None:
        """Explore the checkpoint on the sample."""
        sample, session = self.view.computed.sample, self.session
        if sample is not None:
            self._with_model(self.view.place, lambda model: session_of(session, model, sample), self._leave_with)

    def action_compare(self) -> None:
        """Explore the checkpoint with the last one beside it."""
        computed, session, last = self.view.computed, self.session, len(self.run.all) - 1
        sample = computed.sample
        if sample is None or self.view.place == last:
            self.say("this is the last checkpoint: go back to one before" if sample else "it is being computed")
            return

        def compared(model: Model) -> Session:
            other = self.run.load(last, computed.device, computed.dtype)
            overlay = Overlay("trace", f"step {self.run.all[last].step:,}", model=other)
            return session_of(session, model, sample).with_overlay(overlay)

        self._with_model(self.view.place, compared, self._leave_with)

    def _with_model(self, place: int, made: Callable[[Model], Result], done: Callable[[Result], None]) -> None:
        """Load a checkpoint on the worker, make something of it there, then do something with that."""
        computed = self.view.computed
        self.pieces.halt()
        self.requests.ask("model", AT_ONCE + 1, lambda task: made(computed.load(place, task)), done)

    def _leave_with(self, session: Session) -> None:
        view = self.view
        self.action_leave()
        show_in(self.port, session, view.heads, view.selection)
