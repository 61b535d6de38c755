"""A run in a thread of its own: it makes step after step, does in between what it is told, and keeps what it sees."""

from __future__ import annotations

import contextlib
import math
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError, reason
from tui_transformer.explorer.tools.runs import Snapshots, logged
from tui_transformer.learning.log import Epoch, Log, log_in
from tui_transformer.learning.loop import Measured, Record
from tui_transformer.learning.run import Run
from tui_transformer.model import Model
from tui_transformer.records import dataclass, replace
from tui_transformer.views.charts import LineChart, Series

Turn = Callable[[Callable[[], None]], None]
"""Does a piece of work where the model may be computed."""

State = Literal["opening", "training", "paused", "done", "ended"]


@dataclass(frozen=True)
class Status:
    """Where a run stands after a step of all steps.

    Attributes:
        rate: The learning rate that the schedule reaches.
        next_rate: That of the next step.
        saved: The step of the newest checkpoint.
        record: What the last step was.
        seen: How often all examples have been seen.
        epoch: Means over the last whole epoch, where they are known.
        measured: The last validation, and the step after which it was, where it is known.
        seconds: What a step takes lately, everything around it included.
        doing: What else is being done.
    """

    state: State = "opening"
    step: int = 0
    steps: int = 0
    rate: float = 0.0
    next_rate: float = 0.0
    saved: int | None = None
    record: Record | None = None
    seen: float = 0.0
    epoch: Epoch | None = None
    measured: tuple[int, Measured] | None = None
    seconds: float = 0.0
    doing: str = ""
    problem: str = ""


class Training:
    """Trains a run. Every method may be called from the screen's thread; all but `end` return at once.

    Attributes:
        status: Replaced as a whole.
        run: None before it is open, as `snapshots`.
        changed: Called on the training's thread when something has changed besides the steps that are made.
        error: A mistake of the program that ended the thread.
        ending: Whether it is about to end.
    """

    def __init__(self, name: str, opened: Callable[[], Run], turn: Turn) -> None:
        """Begin to open a run; it waits then.

        `turn` does work on the thread that owns a GPU; a run on the CPU needs it only to be opened.
        """
        self.name, self._opened, self._turn = name, opened, turn
        self.status, self.curves = Status(), Curves()
        self.snapshots: Snapshots | None = None
        self.run: Run | None = None
        self.changed: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        self.ending = self._over = False
        self._log: Log | None = None
        self._commands: queue.SimpleQueue[tuple[str, Callable[[], None]]] = queue.SimpleQueue()
        self._allowed: float = 0
        self._asked: float | None = None
        self._thread = threading.Thread(target=self._live, name="training", daemon=True)
        self._thread.start()

    # What can be asked for

    def go_on(self, steps: float = math.inf) -> None:
        self._commands.put(("", lambda: self._allow(steps)))

    def pause(self) -> None:
        self._commands.put(("", lambda: self._allow(0)))

    @property
    def rate(self) -> float:
        """The learning rate that was asked for last."""
        return self.status.rate if self._asked is None else self._asked

    def set_rate(self, rate: float) -> None:
        self._asked = rate

        def change() -> None:
            if self.run is not None:
                self.run.trainer.learning_rate = rate
                self._tell()
            if self._asked is rate:  # no other was asked for since
                self._asked = None

        self._commands.put(("", change))

    def save(self, done: Callable[[], None] = lambda: None) -> None:
        """Save; `done` is called on the training's thread once it is."""

        def save() -> None:
            self._save()
            done()

        self._commands.put(("saving", save))

    def copy_model(self, done: Callable[[Model], None]) -> None:
        """Save, and give that checkpoint, with weights of its own; `done` is called on the training's thread.

        Where it cannot be saved it is given all the same, as a model of the run's folder.
        """

        def copy() -> None:
            if self.run is not None:
                model, folder = self.run.trainer.model, self.run.folder
                with contextlib.suppress(InputError):  # a line for the shell then names these very weights
                    folder = self.run.save()
                    self._tell()
                held = {key: weight.copy() for key, weight in model.weights.held.items()}
                weights = Weights(model.weights.backend, model.weights.read, held)
                name = f"{self.name} at step {self.run.trainer.step:,}"
                done(replace(model, name=name, folder=folder, seed=None, weights=weights))

        self._commands.put(("copying the model", copy))

    def ask_to_end(self) -> None:
        """Save and let go of the folder; where it cannot be saved, the run stays open and `ending` is false again."""
        self.ending = True
        self._commands.put(("", lambda: self._end(force=False)))

    def end(self) -> None:
        """Save if that is possible, let go of the folder, and wait for that."""
        self.ending = True
        self._commands.put(("", lambda: self._end(force=True)))
        self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def lost(self) -> str | None:
        """Message where steps could not be saved; None where nothing is lost."""
        run = self.run
        return self.status.problem if run is not None and run.saved != run.trainer.step else None

    # The thread

    def _live(self) -> None:
        try:
            self._do("opening", self._open)
            while not self._over:
                if not self._allowed:  # there is nothing else to do
                    self._do(*self._commands.get())
                while not (self._over or self._commands.empty()):
                    self._do(*self._commands.get())
                if self._allowed and not self._over:
                    self._do("", self._step)
        except BaseException as error:  # noqa: BLE001 - told on the screen's thread
            self.error = error
        finally:
            for each in (self._log, self.run):
                if each is not None:
                    each.close()
            self._say(state="ended", doing="")

    def _do(self, doing: str, work: Callable[[], None]) -> None:
        """Do work in turn; what a user or a disk did wrong is said, and training pauses."""
        if doing:
            self._say(doing=doing)
        try:
            self._turn(work)
        except (InputError, MemoryError) as error:
            self._allowed, state = 0, self._at_rest
            self._say(problem=plain_names(reason(error)), state=state, doing="")
            self._over = self._over or self.run is None
        if doing:
            self._say(doing="")

    @property
    def _at_rest(self) -> State:
        return "ended" if self.run is None else "done" if self.run.trainer.done else "paused"

    def _say(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]
        self.changed()

    def _tell(self, **changes: object) -> None:
        if self.run is None:
            return
        trainer, step = self.run.trainer, self.run.trainer.step
        seen = step * trainer.settings.accumulate / trainer.data.per_epoch
        rates = {"rate": trainer.learning_rate, "next_rate": trainer.rate(step + 1)}
        self._say(step=step, steps=trainer.settings.steps, saved=self.run.saved, seen=seen, **rates, **changes)

    def _open(self) -> None:
        self.run = run = self._opened()
        if run.trainer.model.backend.device == "cpu":
            self._turn = lambda work: work()
        self.status = replace(self.status, **self.curves.read(run.folder, run.trainer.step))
        self.snapshots = Snapshots(run.trainer)
        self._rest()

    def _allow(self, steps: float) -> None:
        if self.run is None or (steps and self.run.trainer.done):
            return
        self._allowed = steps
        if steps:
            self._say(state="training", problem="")
        else:
            self._rest()

    def _rest(self) -> None:
        if self.run is not None and self.snapshots is not None:
            self.snapshots.now()
            self._tell(state=self._at_rest)

    def _save(self) -> None:
        if self.run is not None:
            self.run.save()
            self._tell(problem="")

    def _step(self) -> None:
        """One step as the shell makes it."""
        run, snapshots, log = self.run, self.snapshots, self._log
        assert run is not None  # noqa: S101 - steps are allowed once the run is open
        assert snapshots is not None  # noqa: S101
        started = time.perf_counter()
        if log is None:  # the one that is there already, or a new one
            self._log = log = Log(log_in(run.folder), run.trainer.step)
        run.step(log, self._made, lambda: self._say(doing="validating"))
        if log.epoch is not None:
            self.status = replace(self.status, epoch=log.epoch)
        if not self._allowed:
            self._rest()
            return
        snapshots.after(time.perf_counter() - started)
        seconds = time.perf_counter() - started
        before = self.status.seconds or seconds
        recent = before + 0.1 * (seconds - before)  # the newest step is a tenth of the mean
        self.status = replace(self.status, seconds=recent, saved=run.saved)

    def _made(self, record: Record, measured: Measured | None) -> None:
        """Say what a step was; the screen is not told of every one."""
        assert self.run is not None  # noqa: S101 - its step it is
        trainer = self.run.trainer
        self._allowed = 0 if trainer.done else self._allowed - 1
        self.curves.add(record, measured)
        now = replace(self.status, step=record.step, record=record, seen=record.epoch, doing="")
        now = replace(now, next_rate=trainer.rate(record.step + 1))
        self.status = now if measured is None else replace(now, measured=(record.step, measured))

    def _end(self, *, force: bool) -> None:
        self._allowed, self._over = 0, force
        try:
            self._save()
        except (InputError, MemoryError):
            self.ending = False
            raise
        self._over = True


def plain_names(message: str) -> str:
    """A message with the names of settings in place of the options of the shell: `--warm-up` → `warm up`.

    What visitors may open is no setting: `--files` is said as it is.
    """
    option = r"--(?!files\b)([a-z]+(?:-[a-z]+)*)"
    return re.sub(option, lambda match: "run folder" if match[1] == "out" else match[1].replace("-", " "), message)


# Curves that grow for as long as a run lasts, in a number of points that does not


MOST = 300
"""Points of a curve; with more of them, two neighbours become their mean."""

LEARNED = ("loss", "accuracy", "learning_rate", "gradient_norm")
COLUMNS = (*LEARNED, "validation_loss", "validation_accuracy")

CHARTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "loss": ("Loss by step", {"loss": "training", "validation_loss": "validation"}),
    "accuracy": ("Accuracy by step", {"accuracy": "training", "validation_accuracy": "validation"}),
    "learning rate": ("Learning rate by step", {"learning_rate": "by the schedule"}),
    "gradient": ("Gradient norm by step, before clipping", {"gradient_norm": "all weights"}),
}
"""Title of a chart, and which curves it has under which names."""


class Curve:
    """Values by step. Each point is the mean of equally many values, so that noise shrinks as the run grows.

    One thread adds, others read.
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []
        self._each = 1
        self._waiting: list[tuple[float, float]] = []

    def add(self, step: int, value: float) -> None:
        """A value of a step; one that is no finite number is left out."""
        if not math.isfinite(value):
            return
        self._waiting.append((step, value))
        if len(self._waiting) == self._each:
            self._points.append(_mean(self._waiting))
            self._waiting = []
        if len(self._points) >= MOST:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            self._points, self._each = [_mean(pair) for pair in pairs], 2 * self._each

    @property
    def points(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        means = [*self._points, *([_mean(waiting)] if (waiting := list(self._waiting)) else [])]
        return tuple(step for step, _ in means), tuple(value for _, value in means)


def _mean(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(step / len(points) for step, _ in points), sum(value / len(points) for _, value in points)


class Curves:
    """The curves of a run, by the columns of its log."""

    def __init__(self) -> None:
        self.of = {name: Curve() for name in COLUMNS}

    def add(self, record: Record, measured: Measured | None) -> None:
        for name in LEARNED:
            self.of[name].add(record.step, getattr(record, name))
        if measured is not None:
            self.of["validation_loss"].add(record.step, measured.loss)
            self.of["validation_accuracy"].add(record.step, measured.accuracy)

    def read(self, folder: Path, step: int) -> dict[str, Any]:
        """Take the log of a run up to a step, as far as it can be read.

        It gives the last validation and the last whole epoch that are there, as a status has them.
        """
        last: dict[str, Any] = {}
        for row in logged(folder):
            at, found = int(row["step"]), {name: value for name, value in row.items() if math.isfinite(value)}
            if at > step:
                continue
            for name in found.keys() & self.of.keys():
                self.of[name].add(at, found[name])
            if found.keys() >= {"validation_loss", "validation_accuracy"}:
                last["measured"] = at, Measured(found["validation_loss"], found["validation_accuracy"], 0)
            if found.keys() >= {"epoch", "epoch_loss", "epoch_accuracy"}:
                last["epoch"] = Epoch(math.floor(found["epoch"]), found["epoch_loss"], found["epoch_accuracy"])
        return last

    def chart(self, kind: str) -> LineChart:
        title, names = CHARTS[kind]
        series = tuple(Series(label, *self.of[name].points) for name, label in names.items())
        values = [value for each in series for value in each.y]
        steep = bool(values) and min(values) > 0 and max(values) > 8 * min(values)  # drawn on a logarithmic axis then
        shown = tuple(each for each in series if each.x)
        return LineChart(title, "", "", shown, steep and kind != "accuracy", counted=True)
