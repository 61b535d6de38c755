"""A run's checkpoints: numbered folders, each whole or not there, the newest model at the top.

    RUN/config.json …                the newest model, as any other checkpoint
    RUN/checkpoints/000200/          the model after step 200, and state.json and state.safetensors to go on from there

A checkpoint is written under a temporary name, flushed to the disk and renamed; only then is the top exchanged.
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
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from tui_transformer.engine.backend import Array
from tui_transformer.errors import InputError
from tui_transformer.files import read_json, remove_folder, write_whole
from tui_transformer.learning.loop import Trainer
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.start import trainer
from tui_transformer.model.model import Model
from tui_transformer.model.tensors import open_file
from tui_transformer.text.files import shown_path

CHECKPOINTS = "checkpoints"
STATE, ARRAYS = "state.json", "state.safetensors"
KEPT_STATES = 2
"""Checkpoints that can be gone on from; older ones are models only."""

_LARGEST = 1 << 20
_NUMBER = re.compile(r"\d{6,}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")


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
            with suppress(OSError):
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
        settings = trainer.settings
        state = {  # everything random comes from the seed and these numbers
            "step": trainer.step,
            "next_batch": trainer.step * settings.accumulate,
            "seed": settings.seed,
            "learning_rate": trainer.learning_rate,
            "schedule": settings.schedule,
            "optimizer": settings.optimizer,
        }
        write_whole(temporary / STATE, (json.dumps(state, indent=2) + "\n").encode())
        _flush(temporary)
        if place.exists():  # of a run that was resumed from an earlier one
            remove_folder(place)
        temporary.rename(place)
        _flush(place.parent)
    except BaseException:
        with suppress(OSError):
            remove_folder(temporary)
        raise


def restored(place: Path, settings: Settings, lines: list[str]) -> Trainer:
    """The trainer as a checkpoint has it.

    InputError for files that are damaged, or do not fit the settings and the text.
    """
    raw = read_json(place / STATE, _LARGEST)
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


def drop_states(folder: Path) -> None:
    """Old checkpoints stay as models; what only going on needs is removed."""
    able = [path for path in checkpoints(folder) if (path / STATE).exists()]
    for path in able[:-KEPT_STATES]:
        (path / STATE).unlink(missing_ok=True)  # first: without it the checkpoint is no longer gone on from
        (path / ARRAYS).unlink(missing_ok=True)


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
