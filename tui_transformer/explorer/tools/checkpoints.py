"""The checkpoints of a run, stepped through: one head as it takes shape, large, and at some of them small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.head_measures import smaller
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, work_on
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.runs import (
    LONGEST,
    WEIGHT,
    Examples,
    Heads,
    HeadSelection,
    Sample,
    Turned,
    heads_of,
    logged,
    path_of,
    runs_here,
    session_of,
    show_in,
    written,
)
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.learning.data import lines_of, read_data
from tui_transformer.learning.run import checkpoints
from tui_transformer.learning.settings import read_settings
from tui_transformer.model import Model
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Overlay
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import sample_sentence
from tui_transformer.views.numbers import short_number
from tui_transformer.views.view import Values

Result = TypeVar("Result")

MOST_SMALL, SMALLEST = 8, 13
"""Small pictures at most, and columns of one at least."""


def open_from(port: Port) -> None:
    """Step through the checkpoints of the run that the model is of; else ask for one."""
    folder = port.session.model.folder
    run = next((path for path in (folder, folder.parent.parent) if checkpoints(path)), None) if folder else None
    if run is not None:
        open_run(port, run)
    else:
        _ask(port, port.open, next(iter(runs_here()), ""), lambda run: port.open(CheckpointsScreen(port, run)))


def open_run(
    port: Port, folder: Path, put: Callable[..., None] | None = None, explored: Callable[[], None] = lambda: None
) -> None:
    """Step through the checkpoints of a run, over the main screen or one that can `put` others over it."""
    try:
        (put or port.open)(CheckpointsScreen(port, _run_in(port, folder), explored))
    except InputError as error:
        port.say(str(error), severity="error")


def _run_in(port: Port, folder: Path) -> Checkpoints:
    backend = port.session.model.backend
    return Checkpoints.of(folder, backend.device, str(backend.dtype))  # computed as what is explored


def _ask(port: Port, put: Callable[..., None], value: str, take: Callable[[Checkpoints], None]) -> None:
    """Ask for the folder of a run in a screen that is `put` in front, beginning with one that there is, or none."""

    def read(text: str) -> Checkpoints:
        return _run_in(port, path_of(text))

    hint = "a run's folder" if value else port.hint("a run's folder; {train} trains a model and makes one")
    put(*asking("Checkpoints of the run", read, take, value=value, hint=hint, lately=runs_here()))


class CheckpointsScreen(Overview, tool="checkpoints"):
    """One head at one checkpoint large, and at up to eight of them small."""

    DEFAULT_CSS = """
    CheckpointsScreen {
        #large { height: 1fr; padding: 0 1; }
        #large MatrixPane { height: 1fr; }
        TileGrid { height: 8; }
        &.-narrow #overview-detail { height: 2; }
        &.-short #overview-detail { height: 1; }
        &.-short TileGrid { display: none; }
    }
    """
    WIDGETS = ()
    AUTO_FOCUS = ""

    def __init__(self, port: Port, run: Checkpoints, explored: Callable[[], None] = lambda: None) -> None:
        """Begin with the last checkpoint; `explored` is called before one is explored on the main screen."""
        super().__init__(port)
        self._explored = explored
        self.run, self.place, self.selection = run, len(run.all) - 1, HeadSelection()

        def keep(place: int, heads: Heads) -> None:
            self.run.keep(place, heads)
            self._show()

        work_on(
            self,
            lambda: self.run.missing(self.place, self.side_by_side),
            lambda place, task: self.run.compute(place, task),
            keep,
            leave_out=lambda place: self.run.leaves_out(place),
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

    # What is shown

    @property
    def side_by_side(self) -> tuple[int, ...]:
        """The checkpoints that are drawn small: evenly spaced, the first and the last among them."""
        last, room = len(self.run.all) - 1, (self.size.width - 2) // SMALLEST
        count = max(min(MOST_SMALL, room, last + 1), 1)
        return tuple(round(place * last / max(count - 1, 1)) for place in range(count))

    @property
    def head(self) -> tuple[Attention, int] | None:
        known = self.run.attentions
        return self.selection.of(known) if known else None

    def on_resize(self) -> None:
        super().on_resize()
        if self.is_there:
            self._show()

    def _show(self) -> None:
        def picture(index: int, side: int) -> Values | None:
            heads, head = self.run.heads.get(places[index]), self.head
            return None if heads is None or head is None else smaller(heads.weights[head[0].name][head[1]], side, side)

        def labels(index: int) -> tuple[str, ...]:
            step = f"{self.run.all[places[index]].step:,}"
            return f"step {step}", step

        small, places = self.query_one(TileGrid), self.side_by_side
        heads, head = self.run.at(self.place), self.head
        across = max((self.size.width - 2) // len(places) - 1, 1)
        rows, columns = (across, across) if head is None else (head[0].queries.size, head[0].keys.size)
        wanted = 1 + -(-min(rows * max(across // max(rows, columns), 1), across) // 2)
        # what the large head can spare of title, borders, its keys, legend, detail and keys around it; the small ones
        # have five lines even where it has to be scrolled then
        spare = max(self.size.height - 8 - rows, 5)
        small.styles.height = max(min(wanted, spare, self.size.height // 3), 2)
        if heads is not None and head is not None:
            heads.draw(self.query_one(MatrixPane), *head)
        else:  # those that were drawn are of another checkpoint
            self.query_one(MatrixPane).show_missing("")
        tiles = Tiles(len(places), None, picture, labels, str, lambda _: WEIGHT)
        small.show(tiles, min(range(len(places)), key=lambda at: abs(places[at] - self.place)))
        self.show_lines()

    def texts(self) -> Texts:
        at, head, run = self.run.all[self.place], self.head, self.run
        name = "reading" if head is None else f"{head[0].group} · layer {head[0].layer} · head {head[1]}"
        sharp = "this model has no attention"
        if self.place not in self.run.heads:
            sharp = "it cannot be read" if self.place in self.run.unread else "being computed"
        elif head is not None and (heads := self.run.at(self.place)) is not None:
            mean = float(heads.weights[head[0].name][head[1]].max(axis=1).mean())
            sharp = f"largest weight of a query, mean {mean:.2f} · all keys alike would be {1 / head[0].keys.size:.2f}"
        losses = {"loss": at.loss, "validation loss": at.validation}
        known = [f"{name} {short_number(x)}" for name, x in losses.items() if x is not None and not math.isnan(x)]
        return Texts(
            f"{name} · step {at.step:,}",
            f"checkpoint {self.place + 1} of {len(run.all)}",
            (" · ".join((f"step {at.step:,}", *known)), sharp),
            f"{len(self.run.heads)} of {len(run.all)} computed",
            about=f"Checkpoints   {run.folder.name}",
        )

    # What keys do

    def action_step(self, by: int) -> None:
        self.place = max(min(self.place + by, len(self.run.all) - 1), 0)
        self._show()
        if self.place not in self.run.heads:
            self.pieces.again()

    def action_turn(self, what: Turned, by: int) -> None:
        if known := self.run.attentions:
            self.selection = self.selection.turned(known, what, by)
        self._show()

    def action_sentence(self) -> None:
        sample = self.run.sample
        if sample is None:
            return

        def begin_again(sample: Sample) -> None:
            self.run = replace(self.run, sample=sample, heads={}, unread=set())
            self._show()
            self.pieces.again()

        def read(text: str) -> None:
            self._with_model(len(self.run.all) - 1, lambda model: sample_of(model, text), begin_again)

        hint = "the source; the last checkpoint writes what the decoder reads" if sample.decoder_ids else ""
        self.open(*asking("Sentence", str, read, value=self.session.text, hint=hint))

    def action_run(self) -> None:
        def take(run: Checkpoints) -> None:
            self.run, self.place, self.selection = run, len(run.all) - 1, HeadSelection()
            self._show()
            self.pieces.again()

        _ask(self.port, self.open, str(self.run.folder), take)

    def action_explore(self) -> None:
        sample, session = self.run.sample, self.session
        if sample is not None:
            self._with_model(self.place, lambda model: session_of(session, model, sample), self._leave_with)

    def action_compare(self) -> None:
        run, session, last = self.run, self.session, len(self.run.all) - 1
        sample = run.sample
        if sample is None or self.place == last:
            self.say("this is the last checkpoint: go back to one before" if sample else "it is being computed")
            return

        def compared(model: Model) -> Session:
            overlay = Overlay("trace", f"step {run.all[last].step:,}", model=run.load(last))
            return session_of(session, model, sample).with_overlay(overlay)

        self._with_model(self.place, compared, self._leave_with)

    def _with_model(self, place: int, build: Callable[[Model], Result], done: Callable[[Result], None]) -> None:
        run = self.run
        self.pieces.halt()
        self.requests.ask("model", lambda task: build(run.load(place, task)), done)

    def _leave_with(self, session: Session) -> None:
        heads = self.run.at(self.place)
        self._explored()
        self.action_leave()
        show_in(self.port, session, heads, self.selection)


# What is there of the run


@dataclass(frozen=True)
class Checkpoint:
    """Its folder, its step, and the losses of that step where the log has them."""

    folder: Path
    step: int
    loss: float | None = None
    validation: float | None = None


@dataclass(eq=False)
class Checkpoints:
    """The checkpoints of a run, and the heads at each on one sample; the worker computes them, the screen keeps them.

    Attributes:
        all: From first to last.
        sample: None until the first checkpoint was read.
        heads: By the place of the checkpoint.
        unread: Places of checkpoints that cannot be read.
    """

    folder: Path
    all: tuple[Checkpoint, ...]
    device: str
    dtype: str
    sample: Sample | None = None
    heads: dict[int, Heads] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, folder: Path, device: str = "cpu", dtype: str = "float32") -> Checkpoints:
        """The checkpoints of a folder.

        Raises:
            InputError: There are none.
        """
        paths = checkpoints(folder)
        if not paths:
            raise InputError(f"{shown_path(folder)} holds no checkpoints: name the folder of a training run")
        rows = {int(row["step"]): row for row in logged(folder)}
        steps = ((path, int(path.name), rows.get(int(path.name), {})) for path in paths)
        every = (Checkpoint(path, at, row.get("loss"), row.get("validation_loss")) for path, at, row in steps)
        return cls(folder, tuple(every), device, dtype)

    @property
    def attentions(self) -> tuple[Attention, ...]:
        """Those of the model; none before anything is known."""
        known = next(iter(self.heads.values()), None)
        return () if known is None else known.attentions

    def at(self, place: int) -> Heads | None:
        """Those of a checkpoint; None where they are still to come, or there are none."""
        heads = self.heads.get(place)
        return heads if heads is not None and heads.attentions else None

    def load(self, place: int, task: Task | None = None) -> Model:
        """The model of a checkpoint.

        Raises:
            InputError: It cannot be read.
        """
        at = self.all[place]
        if task is not None:
            task.report(f"checkpoint {at.step:,}")
        model = Model.load(at.folder, device=self.device, dtype=self.dtype)
        return replace(model, name=f"{self.folder.name} at step {at.step:,}")

    def compute(self, place: int, task: Task) -> Heads:
        """Those of a checkpoint, at first on an example of the run's validation part, or on a sentence of its words."""
        model, sample = self.load(place, task), self.sample
        if sample is None and model.tokenizer is not None:
            with suppress(InputError, OSError):  # its text may not be there any more
                settings, _ = read_settings(self.folder)
                data = read_data(settings, lines_of(settings), model.tokenizer, model.config.start_id)
                sample = Examples(data).sample
        if sample is None:
            sample = sample_of(model, sample_sentence(model.vocabulary) if model.vocabulary is not None else "")
        return heads_of(model, sample, self.all[place].step)

    def leaves_out(self, place: int) -> bool:
        """Leave out a checkpoint that cannot be read; whether others are left."""
        self.unread.add(place)
        return len(self.unread) < len(self.all)

    def keep(self, place: int, heads: Heads) -> None:
        """Keep what was computed; the others are of the same sample."""
        self.sample = heads.sample
        self.heads[place] = heads

    def missing(self, place: int, side_by_side: Iterable[int]) -> int | None:
        """The place to compute next: the one that is shown, its neighbours, those that are side by side, all others."""
        everything = range(len(self.all))
        wanted = (place, place + 1, place - 1, *side_by_side, *everything)
        done = self.unread.union(self.heads)
        return next((at for at in wanted if at in everything and at not in done), None)


def sample_of(model: Model, text: str) -> Sample:
    """A sentence as a sample; a decoder beside an encoder writes what is most likely.

    Raises:
        InputError: The sentence cannot be read.
    """
    ids = model.encode(text).ids
    if not model.has_decoder:
        return Sample(ids)
    start = model.encode_target().ids
    return Sample(ids, (*start, *written(model, start, ids, LONGEST)))
