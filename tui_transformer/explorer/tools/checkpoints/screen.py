"""The checkpoints of a run, stepped through: one head as it takes shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.css.query import NoMatches

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.head_pictures import smaller
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions import CHECKPOINTS
from tui_transformer.explorer.shell.asking import AT_ONCE
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.overlay import Overlay
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.tools.checkpoints.frames import Film, Frame, Shots, sample_of, usual_device
from tui_transformer.explorer.tools.runs.chosen import Chosen
from tui_transformer.explorer.tools.runs.exploring import session_of, show_in
from tui_transformer.explorer.tools.runs.paths import path_of
from tui_transformer.explorer.tools.runs.sample import Heads, Sample
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.numbers import short_number
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.learning.checkpoint import checkpoints
from tui_transformer.model import Model
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Scale, Values

Result = TypeVar("Result")

WEIGHT = Scale("sequential", 0.0, 1.0)
SMALLEST = 9
"""Columns of a picture in the strip, at least."""

LEAST_STRIP = 5
"""Lines of the strip, even where the large head has to be scrolled then."""

AROUND = 8
"""Lines around the rows of the large head: title, borders, keys of the head, legend, detail, keys."""


def open_from(port: Port) -> None:
    """Step through the checkpoints of the run that the model is of; else ask for one."""
    folder = port.session.model.folder
    found = next((path for path in (folder, folder.parent.parent) if checkpoints(path)), None) if folder else None
    if found is not None:
        open_run(port, found)
    else:
        _ask(port, "runs/dates")


def open_run(port: Port, folder: Path, opened: Callable[[Overview], None] | None = None) -> None:
    """Step through the checkpoints of a run, over the main screen or over what `opened` puts a screen over."""
    try:
        (opened or port.open)(ScrubScreen(port, Film.of(folder)))
    except InputError as error:
        port.say(str(error), severity="error")


def _ask(port: Port, value: str) -> None:
    """Ask for the folder of a run."""
    prompt = PromptScreen(
        "Checkpoints of the run", value=value, hint="a run's folder", check=lambda text: Film.of(path_of(text))
    )
    port.open(prompt, lambda text: None if text is None else open_run(port, path_of(text)))


class ScrubScreen(Overview):
    """One head at one checkpoint large, and at up to eight of them small."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CHECKPOINTS)
    ACTIONS = CHECKPOINTS
    DEFAULT_CSS = """
    ScrubScreen {
        #large { height: 1fr; padding: 0 1; }
        #large MatrixPane { height: 1fr; }
        #strip { height: 8; }
        &.-narrow #overview-detail { height: 2; }
        &.-short #overview-detail { height: 1; }
    }
    """
    AUTO_FOCUS = ""
    HELP_TOPIC, KIND = "scrub", "checkpoint"

    def __init__(self, port: Port, film: Film) -> None:
        """Begin with the last checkpoint."""
        super().__init__(port)
        self.film, self.chosen = film, Chosen()
        self.place = len(film.frames) - 1
        self.shots = Shots(film, *usual_device(port.session.model))
        self._unread: set[int] = set()
        self._taking: int | None = None
        self.requests.failed = self._failed

    def content(self) -> ComposeResult:
        """The head above, the strip below."""
        with Vertical(id="large"):
            yield MatrixPane(id="matrix")
        yield TileGrid(id="strip")

    def on_mount(self) -> None:
        """Take the last frame first."""
        for widget in (self.query_one(MatrixPane).cells, self.query_one(TileGrid)):
            widget.can_focus = False
        self._fit()
        self._take_next()
        self._show()

    def on_resize(self) -> None:
        """Give the strip as many lines as its pictures can use."""
        super().on_resize()
        if self.is_mounted:
            self._show()

    @property
    def strip(self) -> tuple[int, ...]:
        """The frames side by side, as many as there is room for."""
        return self.film.strip((self.size.width - 2) // SMALLEST)

    def _fit(self) -> None:
        """Give the strip as many lines as its pictures can use and the large one can spare."""
        across = (self.size.width - 2) // len(self.strip) - 1
        known = next(iter(self.shots.taken.values()), None)
        rows, columns = (across, across) if known is None or not known.attentions else self._shape(known)
        wanted = 1 + -(-min(rows * max(across // max(rows, columns), 1), across) // 2)
        free = self.size.height - AROUND - rows
        self.query_one(TileGrid).styles.height = max(min(wanted, max(free, LEAST_STRIP), self.size.height // 3), 2)

    def _shape(self, heads: Heads) -> tuple[int, int]:
        attention, _ = self.chosen.of(heads.attentions)
        return attention.queries.size, attention.keys.size

    # Taking

    def _take_next(self) -> None:
        """Let the worker take the frame that is needed most."""
        place = self.shots.next_missing(self.place, self.strip, self._unread)
        self._taking = place
        if place is not None:
            shots = self.shots
            self.ask(self.KIND, AT_ONCE + 1, lambda task: shots.take(place, task.report), self._taken)

    def _taken(self, found: tuple[int, Sample, Heads]) -> None:
        place, sample, heads = found
        self.shots.sample = sample
        self.shots.taken[place] = heads
        with suppress(NoMatches):  # the program ends
            self._show()
            self._take_next()

    def _failed(self, error: Exception) -> None:
        """Leave a checkpoint out that cannot be read."""
        if self._taking is not None:
            self._unread.add(self._taking)
        if isinstance(error, InputError) and len(self._unread) < len(self.film.frames):
            self._take_next()

    # What is shown

    @property
    def frame(self) -> Frame:
        """The checkpoint that is looked at."""
        return self.film.frames[self.place]

    @property
    def heads(self) -> Heads | None:
        """Its heads, None before they are computed."""
        return self.shots.taken.get(self.place)

    @property
    def attention(self) -> tuple[Attention, int] | None:
        """The attention and the head that were chosen, once anything is known."""
        known = next(iter(self.shots.taken.values()), None)
        return self.chosen.of(known.attentions) if known is not None and known.attentions else None

    def _show(self) -> None:
        """The head large and small."""
        self._fit()
        heads, strip = self.heads, self.strip
        if heads is not None and heads.attentions:
            view = heads.view(*self.chosen.of(heads.attentions))
            tile = view.tile(range(view.rows.size), range(view.columns.size))
            self.query_one(MatrixPane).show_matrix(view, WEIGHT, tile, Place(), note="rows queries, columns keys")
        picture, labels = partial(self._picture, strip), partial(self._labels, strip)
        tiles = Tiles(len(strip), None, picture, labels, str, lambda _: WEIGHT)
        self.query_one(TileGrid).show(tiles, min(range(len(strip)), key=lambda at: abs(strip[at] - self.place)))
        self.show_lines()

    def _picture(self, strip: Sequence[int], index: int, side: int) -> Values | None:
        heads = self.shots.taken.get(strip[index])
        if heads is None or not heads.attentions:
            return None
        attention, head = self.chosen.of(heads.attentions)
        return smaller(heads.weights[attention.name][head], side, side)

    def _labels(self, strip: Sequence[int], index: int) -> tuple[str, ...]:
        step = f"{self.film.frames[strip[index]].step:,}"
        return f"step {step}", step

    def heading(self) -> str:
        """The head, and the step."""
        found = self.attention
        head = f"{found[0].group} · layer {found[0].layer} · head {found[1]}" if found else "reading"
        return f"{head} · step {self.frame.step:,}"

    def note(self) -> str:
        """Which of how many."""
        return f"checkpoint {self.place + 1} of {len(self.film.frames)}"

    def progress(self) -> str:
        """How many are computed."""
        return f"{len(self.shots.taken)} of {len(self.film.frames)} computed"

    def detail(self) -> tuple[str, str]:
        """Step and loss; then where the head looks most."""
        frame = self.frame
        said = f"step {frame.step:,}" + _loss("loss", frame.loss) + _loss("validation loss", frame.validation)
        return said, self._sharpness() if self.heads is not None else "being computed"

    def _sharpness(self) -> str:
        """How sharply the head looks: the mean over queries of the largest weight."""
        heads = self.heads
        if heads is None or not heads.attentions:
            return "this model has no attention"
        attention, head = self.chosen.of(heads.attentions)
        largest = float(heads.weights[attention.name][head].max(axis=1).mean())
        even = 1 / attention.keys.size
        return f"largest weight of a query, mean {largest:.2f} · all keys alike would be {even:.2f}"

    def _title_line(self) -> Content:
        right = f"{self.requests.doing or self.progress()} "
        left = f" Checkpoints   {visible(self.film.folder.name)}"
        room = max(self.size.width - len(right), 0)
        return Content.assemble((f"{left[:room]:<{room}}", "$foreground 70%"), (visible(right), "bold"))

    # What keys do

    def action_step(self, step: int) -> None:
        """Another checkpoint."""
        self.place = max(min(self.place + step, len(self.film.frames) - 1), 0)
        self._show()
        if self.heads is None:
            self._take_next()

    def action_head(self, step: int) -> None:
        """Another head."""
        self._choose("with_head", step)

    def action_layer(self, step: int) -> None:
        """Another layer."""
        self._choose("with_layer", step)

    def action_kind(self) -> None:
        """The next kind of attention."""
        self._choose("with_next_kind")

    def _choose(self, how: str, *arguments: int) -> None:
        known = next(iter(self.shots.taken.values()), None)
        if known is not None and known.attentions:
            self.chosen = getattr(self.chosen, how)(known.attentions, *arguments)
            self._show()

    def action_sentence(self) -> None:
        """Ask for another sentence, and take all frames again."""
        sample = self.shots.sample
        if sample is None:
            return

        def finish(text: str | None) -> None:
            if text is not None:
                self._with_model(len(self.film.frames) - 1, lambda model: sample_of(model, text), self._take_again)

        hint = "the source; the last checkpoint writes what the decoder reads" if sample.decoder_ids else ""
        self.open(PromptScreen("Sentence", value=self.session.text, hint=hint), finish)

    def _take_again(self, sample: Sample) -> None:
        self.shots = Shots(self.film, self.shots.device, self.shots.dtype, sample)
        self._show()
        self._take_next()

    def action_run(self) -> None:
        """Ask for another run."""
        self.action_leave()
        _ask(self.port, str(self.film.folder))

    def action_explore(self) -> None:
        """Explore the checkpoint on the sample."""
        sample, session = self.shots.sample, self.session
        if sample is not None:
            self._with_model(self.place, lambda model: session_of(session, model, sample), self._leave_with)

    def action_compare(self) -> None:
        """Explore the checkpoint with the last one beside it."""
        sample, session, last = self.shots.sample, self.session, len(self.film.frames) - 1
        if sample is None or self.place == last:
            self.say("this is the last checkpoint: go back to one before" if sample else "it is being computed")
            return

        def compared(model: Model) -> Session:
            other = self.film.load(last, self.shots.device, self.shots.dtype)
            overlay = Overlay("trace", f"step {self.film.frames[last].step:,}", model=other)
            return session_of(session, model, sample).with_overlay(overlay)

        self._with_model(self.place, compared, self._leave_with)

    def _with_model(self, place: int, made: Callable[[Model], Result], done: Callable[[Result], None]) -> None:
        """Load a checkpoint on the worker, make something of it there, then do something with that."""
        shots = self.shots

        def work(task: Task) -> Result:
            task.report(f"checkpoint {self.film.frames[place].step:,}")
            return made(self.film.load(place, shots.device, shots.dtype))

        self._taking = None
        self.worker.cancel(self.KIND)
        self.ask("model", AT_ONCE + 1, work, done)

    def _leave_with(self, session: Session) -> None:
        heads, chosen = self.heads, self.chosen
        self.action_leave()
        show_in(self.port, session, heads, chosen)


def _loss(name: str, loss: float | None) -> str:
    return "" if loss is None or math.isnan(loss) else f" · {name} {short_number(loss)}"
