"""A run: a trainer and the folder in which nothing of it is lost.

    RUN/config.json …                the newest model, as any other checkpoint
    RUN/checkpoints/000200/          the model after step 200, and state.json and state.safetensors to go on from there

A checkpoint is a numbered folder, whole or not there: it is written under a temporary name, flushed to the disk and
renamed; only then is the top exchanged.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Array
from tui_transformer.errors import InputError
from tui_transformer.files import read_json, remove_folder, write_whole
from tui_transformer.learning.data import fingerprint, lines_of
from tui_transformer.learning.log import Log
from tui_transformer.learning.loop import Measured, Record, Trainer, new_trainer, trainer
from tui_transformer.learning.recipes import LARGEST
from tui_transformer.learning.settings import Settings, is_run, read_settings, with_changes, write_settings
from tui_transformer.model.model import Model
from tui_transformer.model.tensors import open_file
from tui_transformer.records import dataclass
from tui_transformer.text.files import shown_path

CHECKPOINTS = "checkpoints"
STATE, ARRAYS = "state.json", "state.safetensors"
SAVES = 20
"""Checkpoints of a run, where nothing else is said."""
KEPT_STATES = 2
"""Checkpoints that can be gone on from; older ones are models only."""

_NUMBER = re.compile(r"\d{6,}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")


Made = Callable[[Record, "Measured | None"], None]
"""Is told what a step was, and what was measured after it."""


@dataclass(eq=False)
class Run:
    """A trainer and the folder where it is saved, locked until the run is closed.

    `saved` is the step of the newest checkpoint; None before the first.
    """

    folder: Path
    trainer: Trainer
    lock: Lock
    saved: int | None = None

    def __post_init__(self) -> None:
        self._rate = self.trainer.learning_rate  # as the newest checkpoint has it

    @classmethod
    def start(cls, folder: Path, settings: Settings) -> Run:
        """A new run; its folder is made, and holds the model before the first step.

        InputError where the folder is in use or cannot be written, or the settings, text and model do not go together.
        """
        check_new(folder, settings.file)
        lines = lines_of(settings)
        made = new_trainer(settings, lines)
        with held(folder) as lock:
            check_new(folder, settings.file)
            write_settings(folder, settings, fingerprint(lines))
            run = cls(folder, made, lock)
            run.save()
        return run

    @classmethod
    def resume(cls, folder: Path, given: Mapping[str, Any]) -> Run:
        """A run as its newest checkpoint has it.

        Settings that are given again have to be the same, except those in `CHANGEABLE`. InputError where no run is
        there, its text is not there or another, or a setting is another.
        """
        settings, text = read_settings(folder)
        settings = with_changes(settings, given)
        with held(folder) as lock:
            remove_unfinished(folder)
            try:
                lines = lines_of(settings)
            except InputError as error:
                if "file" in given or not isinstance(error.__cause__, FileNotFoundError):
                    raise
                moved = "the text of this run, is not there any more: put it back, or resume with FILE, where it is now"
                raise InputError(f"{shown_path(Path(settings.file))}, {moved}") from error
            if fingerprint(lines) != text:
                raise InputError(
                    f"{shown_path(Path(settings.file))} is not the text that the run began with: name that"
                )
            newest = newest_checkpoint(folder)
            made = new_trainer(settings, lines) if newest is None else restored(newest, settings, lines)
            if not made.done:  # with no step to make, what is given changes nothing
                write_settings(folder, settings, text)
            run = cls(folder, made, lock, None if newest is None else int(newest.name))
            if newest is None:
                run.save()
            else:
                publish(newest, folder)
        return run

    def step(self, log: Log, made: Made, validating: Callable[[], None] = lambda: None) -> None:
        """Make a step; where it is due, also validate and save. Whoever drives a run makes its steps with this.

        `made` is called with what the step was, before anything is written; `validating` before the validation. The log
        has the step before it is saved: what a killed run did after that is made again.

        Raises:
            InputError: The step breaks off with NaN, or a file cannot be written.
        """
        trainer, settings = self.trainer, self.trainer.settings
        record, measured = trainer.advance(), None
        due = trainer.done or record.step % (settings.save_every or max(10, -(-settings.steps // SAVES))) == 0
        if due:
            validating()
            measured = trainer.validate()
        made(record, measured)
        log.write(record, measured)
        if due:
            self.save()

    def save(self) -> Path:
        """Write a checkpoint of where the trainer stands, once; of another learning rate since then, that alone.

        InputError where it cannot be, and the one before is whole.
        """
        place, rate = self.folder / CHECKPOINTS / f"{self.trainer.step:06d}", self.trainer.learning_rate
        if self.saved == self.trainer.step and self._rate == rate:
            return place
        try:
            if self.saved == self.trainer.step:
                write_state(place, self.trainer)
            else:
                write_checkpoint(place, self.trainer)
                publish(place, self.folder)
                able = [path for path in checkpoints(self.folder) if (path / STATE).exists()]
                for path in able[:-KEPT_STATES]:  # older ones stay as models
                    (path / STATE).unlink(missing_ok=True)  # first: without it the checkpoint is not gone on from
                    (path / ARRAYS).unlink(missing_ok=True)
        except (OSError, InputError) as error:
            whole = "no checkpoint was written before" if self.saved is None else f"that of step {self.saved} is whole"
            cause = error if isinstance(error, OSError) else error.__cause__  # the temporary name tells nobody anything
            reason = getattr(cause, "strerror", None) or str(error)
            raise InputError(f"{shown_path(place)}: the checkpoint cannot be written ({reason}); {whole}") from error
        self.saved, self._rate = self.trainer.step, rate
        return place

    def close(self) -> None:
        """Let others write into the folder."""
        self.lock.close()


def check_new(folder: Path, file: str = "") -> None:
    """Raise InputError where a run cannot begin in a folder: it is there and holds more than the text `file`."""
    if is_run(folder):
        newest = newest_checkpoint(folder)
        at = f" (step {int(newest.name)})" if newest else ""
        raise InputError(f"{shown_path(folder)} holds a run{at}: go on with --resume, or choose another --out")
    try:
        if any(not path.name.startswith(".") and path.absolute() != Path(file) for path in folder.iterdir()):
            raise InputError(f"{shown_path(folder)} is not empty: choose another --out")
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise InputError(f"{shown_path(folder)} is no folder: choose another --out") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{shown_path(folder)} cannot be read ({reason}): choose another --out") from error


# Checkpoints


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, from the first on; each is a folder that opens as a model."""
    try:
        folders = [path for path in (folder / CHECKPOINTS).iterdir() if _NUMBER.fullmatch(path.name)]
    except (OSError, ValueError):
        return []
    return sorted(folders, key=lambda path: int(path.name))


def newest_checkpoint(folder: Path) -> Path | None:
    """The one that a run goes on from."""
    return next((path for path in reversed(checkpoints(folder)) if (path / STATE).is_file()), None)


def runs_in(folder: Path) -> list[Path]:
    """The runs of a folder that have checkpoints, the one that was saved last first."""
    try:
        saved = {path: newest.stat().st_mtime for path in folder.iterdir() if (newest := newest_checkpoint(path))}
    except (OSError, ValueError):
        return []
    return sorted(saved, key=lambda path: (-saved[path], path))


def remove_unfinished(folder: Path) -> None:
    """Remove files that were being written when the program was killed; other files are the user's."""
    for path in folder.glob(".*"):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)
    for path in (folder / CHECKPOINTS).glob(".*"):
        if _TEMPORARY.fullmatch(path.name):
            with contextlib.suppress(OSError):
                remove_folder(path)


def write_checkpoint(place: Path, trainer: Trainer) -> None:
    """The whole checkpoint under a temporary name, on the disk, then under its own.

    InputError where a file cannot be written, OSError where a folder cannot.
    """
    from safetensors.numpy import save

    place.parent.mkdir(exist_ok=True)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir()
        trainer.model.save(temporary)
        to_host = trainer.model.backend.to_host
        arrays = {f"{slot}/{name}": to_host(a) for name, kept in trainer.state.items() for slot, a in kept.items()}
        write_whole(temporary / ARRAYS, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
        write_state(temporary, trainer)
        _flush(temporary)
        if place.exists():  # of a run that was resumed from an earlier one
            remove_folder(place)
        temporary.rename(place)
        _flush(place.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            remove_folder(temporary)
        raise


def write_state(place: Path, trainer: Trainer) -> None:
    """What a checkpoint is gone on from besides arrays: everything random comes from the seed and these numbers.

    InputError where it cannot be written.
    """
    settings = trainer.settings
    state = {
        "step": trainer.step,
        "next_batch": trainer.step * settings.accumulate,
        "seed": settings.seed,
        "learning_rate": trainer.learning_rate,
        "schedule": settings.schedule,
        "optimizer": settings.optimizer,
    }
    write_whole(place / STATE, (json.dumps(state, indent=2) + "\n").encode())


def restored(place: Path, settings: Settings, lines: list[str]) -> Trainer:
    """The trainer as a checkpoint has it.

    InputError for files that are damaged, or do not fit the settings and the text.
    """
    raw = read_json(place / STATE, LARGEST)
    model = Model.load(place, device=settings.device, dtype=settings.dtype)
    step, rate = raw.get("step"), raw.get("learning_rate")
    if step != int(place.name) or not isinstance(rate, float | int) or not 0 <= rate < math.inf:
        raise InputError(f"{shown_path(place / STATE)}: not the state of step {int(place.name)}: the file is damaged")
    tensors = open_file(place / ARRAYS)
    slots: dict[str, dict[str, Array]] = {}
    for key in tensors.names:
        slot, _, name = key.partition("/")
        slots.setdefault(name, {})[slot] = model.backend.floats(tensors.read(key, lambda tensor: tensor)).copy()
    return trainer(settings, model, lines, step=step, learning_rate=rate, state=slots)


def publish(place: Path, folder: Path) -> None:
    """Make a checkpoint's model that of the run's folder: the same files, exchanged one by one."""
    for path in sorted(place.iterdir()):
        top = folder / path.name
        if path.name in (STATE, ARRAYS) or (top.exists() and top.samefile(path)):
            continue
        temporary = folder / f".{path.name}.{secrets.token_hex(4)}"
        try:
            os.link(path, temporary)
        except OSError:  # the file system has no links
            shutil.copyfile(path, temporary)
        temporary.replace(top)
    _flush(folder)


def _flush(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LOCK = ".lock"


class Lock:
    """Holds a folder against other trainings, until this one ends however it may; made where it is not there.

    InputError where it cannot be written, or another training holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = -1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{shown_path(folder)} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise InputError(f"{shown_path(folder)}: another training is writing there: stop it first") from error

    def close(self) -> None:
        """Let others have it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Lock]:
    """The folder, given back only where the block fails."""
    lock = Lock(folder)
    try:
        yield lock
    except BaseException:
        lock.close()
        raise
