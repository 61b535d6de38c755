"""A run in a thread of its own: it makes step after step, and does in between what it is told."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.runs.log import LOGS
from tui_transformer.explorer.tools.train.curve import Curves
from tui_transformer.explorer.tools.train.plan import plain_names
from tui_transformer.explorer.tools.train.snapshots import Snapshots
from tui_transformer.files import is_there
from tui_transformer.learning.log import Epoch, Log
from tui_transformer.learning.loop import Measured, Record
from tui_transformer.learning.run import Run
from tui_transformer.model import Model

Result = TypeVar("Result")
Turn = Callable[[Callable[[], None]], None]
"""Does a piece of work where the model may be computed."""

State = Literal["opening", "training", "paused", "done", "ended"]
RECENT = 0.1
"""Weight of the newest step in the mean of what a step takes."""


@dataclass(frozen=True)
class Status:
    """Where a run stands.

    Attributes:
        state: What it does.
        step: Steps made.
        steps: Steps to be made.
        rate: The learning rate that the schedule reaches.
        next_rate: That of the next step.
        saved: The step of the newest checkpoint.
        record: What the last step was.
        epoch: Means over the last whole epoch.
        measured: The last validation, and the step after which it was.
        seconds: What a step takes lately, everything around it included.
        doing: What else is being done.
        problem: What went wrong; "" for nothing.
    """

    state: State = "opening"
    step: int = 0
    steps: int = 0
    rate: float = 0.0
    next_rate: float = 0.0
    saved: int | None = None
    record: Record | None = None
    epoch: Epoch | None = None
    measured: tuple[int, Measured] | None = None
    seconds: float = 0.0
    doing: str = ""
    problem: str = ""


class Training:
    """Trains a run. Every method may be called from the screen's thread; all but `end` return at once.

    Attributes:
        status: Where it stands; replaced as a whole.
        curves: What the steps so far were.
        snapshots: Heads and outputs of the model lately; None before the run is open.
        run: None before it is open.
        changed: Called on the training's thread when something has changed besides the steps that are made.
        error: A mistake of the program that ended the thread.
        ending: Whether it is about to end.
    """

    def __init__(self, name: str, opened: Callable[[], Run], turn: Turn) -> None:
        """Begin to open a run; it waits then.

        Args:
            name: What it is called.
            opened: Opens the run.
            turn: Does work on the thread that owns a GPU; a run on the CPU needs it only to be opened.
        """
        self.name, self._opened, self._turn = name, opened, turn
        self.status, self.curves = Status(), Curves()
        self.snapshots: Snapshots | None = None
        self.run: Run | None = None
        self.changed: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        self.ending = False
        self._log: Log | None = None
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._allowed: float = 0
        self._over = False
        self._thread = threading.Thread(target=self._live, name="training", daemon=True)
        self._thread.start()

    # What can be asked for

    def go_on(self, steps: float = math.inf) -> None:
        """Make steps: all that are left, or so many."""
        self._commands.put(lambda: self._allow(steps))

    def pause(self) -> None:
        """Stop after the step that is being made."""
        self._commands.put(lambda: self._allow(0))

    def set_rate(self, rate: float) -> None:
        """Change the learning rate from the next step on."""
        self._commands.put(lambda: self._set_rate(rate))

    def save(self) -> None:
        """Write a checkpoint."""
        self._commands.put(lambda: self._do("saving", self._save))

    def copy_model(self, done: Callable[[Model], None]) -> None:
        """Give the model as it is, with weights of its own; `done` is called on the training's thread."""
        self._commands.put(lambda: self._do("copying the model", lambda: done(self._copy())))

    def ask_to_end(self) -> None:
        """Save and let go of the folder; where it cannot be saved, the run stays open and `ending` is false again."""
        self.ending = True
        self._commands.put(lambda: self._end(force=False))

    def end(self) -> None:
        """Save if that is possible, let go of the folder, and wait for that."""
        self.ending = True
        self._commands.put(lambda: self._end(force=True))
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the run is still open, or about to be."""
        return self._thread.is_alive()

    @property
    def lost(self) -> str | None:
        """Message where steps could not be saved; None where nothing is lost."""
        run = self.run
        return self.status.problem if run is not None and run.saved != run.trainer.step else None

    # The thread

    def _live(self) -> None:
        """Open the run, then make steps and do what is asked for until the end."""
        try:
            self._do("opening", self._open)
            while not self._over:
                for command in self._pending():
                    self._do("", command)
                if self._allowed and not self._over:
                    self._do("", self._step)
        except BaseException as error:  # noqa: BLE001 - told on the screen's thread
            self.error = error
        finally:
            self._close()

    def _pending(self) -> Iterator[Callable[[], None]]:
        """The commands that came in; waits for one where there is nothing else to do."""
        if not self._allowed:
            yield self._commands.get()
        with contextlib.suppress(queue.Empty):
            while not self._over:
                yield self._commands.get_nowait()

    def _do(self, doing: str, work: Callable[[], None]) -> None:
        """Do work in turn; what a user or a disk did wrong is said, and training pauses."""
        if doing:
            self._say(doing=doing)
        try:
            self._turn(work)
        except (InputError, MemoryError) as error:
            self._allowed, state = 0, "paused" if self.run else "ended"
            self._say(problem=plain_names(str(error)) or "not enough memory", state=state, doing="")
            self._over = self._over or self.run is None
        if doing:
            self._say(doing="")

    def _say(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]
        self.changed()

    def _open(self) -> None:
        self.run = run = self._opened()
        if run.trainer.model.backend.device == "cpu":
            self._turn = _at_once
        self.curves.read(run.folder, run.trainer.step)
        self.snapshots = Snapshots(run.trainer)
        self.snapshots.now()
        self._tell(state="done" if run.trainer.done else "paused")

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
            self._tell(state="done" if self.run.trainer.done else "paused")

    def _set_rate(self, rate: float) -> None:
        if self.run is not None:
            self.run.trainer.learning_rate = rate
            self._tell()

    def _save(self) -> None:
        if self.run is not None:
            self.run.save()
            self._tell(problem="")

    def _tell(self, **changes: object) -> None:
        """Say where the trainer stands."""
        if self.run is None:
            return
        trainer = self.run.trainer
        now = {"step": trainer.step, "steps": trainer.settings.steps, "saved": self.run.saved}
        rates = {"rate": trainer.learning_rate, "next_rate": trainer.rate(trainer.step + 1)}
        self._say(**now, **rates, **changes)

    # A step

    def _step(self) -> None:
        """One step as the shell makes it."""
        run, snapshots = self.run, self.snapshots
        assert run is not None  # noqa: S101 - steps are allowed once the run is open
        assert snapshots is not None  # noqa: S101
        started = time.perf_counter()
        log = self._log_of(run)
        run.step(log, self._made, lambda: self._say(doing="validating"))
        if log.epoch is not None:
            self.status = replace(self.status, epoch=log.epoch)
        if not self._allowed:
            self._rest()
            return
        snapshots.after(time.perf_counter() - started)
        self._count(run, time.perf_counter() - started)

    def _made(self, record: Record, measured: Measured | None) -> None:
        """Say what a step was; the screen is not told of every one."""
        assert self.run is not None  # noqa: S101 - its step it is
        trainer = self.run.trainer
        self._allowed = 0 if trainer.done else self._allowed - 1
        self.curves.add(record, measured)
        now = replace(self.status, step=record.step, record=record, next_rate=trainer.rate(record.step + 1), doing="")
        self.status = now if measured is None else replace(now, measured=(record.step, measured))

    def _count(self, run: Run, seconds: float) -> None:
        before = self.status.seconds or seconds
        self.status = replace(self.status, seconds=before + RECENT * (seconds - before), saved=run.saved)

    def _log_of(self, run: Run) -> Log:
        """The log in the run's folder, the one that is there already or a new one."""
        if self._log is None:
            path = next((run.folder / name for name in LOGS if is_there(run.folder / name)), run.folder / LOGS[0])
            self._log = Log(path, run.trainer.step)
        return self._log

    # The model as it is

    def _copy(self) -> Model:
        run = self.run
        assert run is not None  # noqa: S101 - there is no model before
        return copied(run.trainer.model, f"{self.name} at step {run.trainer.step:,}", run.folder)

    # The end

    def _end(self, *, force: bool) -> None:
        self._allowed, self._over = 0, force
        if self.run is not None:
            try:
                self._save()
            except (InputError, MemoryError):
                self.ending = False
                raise
        self._over = True

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
        if self.run is not None:
            self.run.close()
        self._say(state="ended", doing="")


def _at_once(work: Callable[[], None]) -> None:
    work()


def copied(model: Model, name: str, folder: Path) -> Model:
    """A model with copies of its weights."""
    weights = model.weights
    held = {key: weight.copy() for key, weight in weights.held.items()}
    return replace(model, name=name, folder=folder, seed=None, weights=Weights(weights.backend, weights.read, held))
