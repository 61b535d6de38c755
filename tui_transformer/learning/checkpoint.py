"""A run's folder: the newest model at the top, numbered checkpoints below, each whole or not there.

    RUN/run.json                     the settings, and the fingerprint of the text
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_json, write_whole
from tui_transformer.learning.data import fingerprint, lines_of
from tui_transformer.learning.loop import Trainer
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.start import new_trainer, trainer
from tui_transformer.model.model import Model
from tui_transformer.model.tensors import open_file
from tui_transformer.text.files import shown_path

RUN, CHECKPOINTS, LOCK = "run.json", "checkpoints", ".lock"
STATE, ARRAYS = "state.json", "state.safetensors"
KEPT_STATES = 2
"""Checkpoints that can be gone on from; older ones are models only."""

CHANGEABLE = ("steps", "save_every", "device")
"""Settings that may be others when a run is resumed."""

_LARGEST = 1 << 20
_NUMBER = re.compile(r"\d{6,}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")


@dataclass(eq=False)
class Run:
    """A trainer and the folder where it is saved.

    Attributes:
        folder: The run's.
        trainer: What learns.
        lock: Held until the run is closed.
        saved: The step of the newest checkpoint; None before the first.
    """

    folder: Path
    trainer: Trainer
    lock: Lock
    saved: int | None = None

    @classmethod
    def start(cls, folder: Path, settings: Settings) -> Run:
        """A new run; its folder is made, and holds the model before the first step.

        Raises:
            InputError: The folder is in use or cannot be written, or the settings, text and model do not go together.
        """
        check_new(folder, settings.file)
        lines = lines_of(settings)
        made = new_trainer(settings, lines)
        with _held(folder) as lock:
            check_new(folder, settings.file)
            _write_settings(folder, settings, fingerprint(lines))
            run = cls(folder, made, lock)
            run.save()
        return run

    @classmethod
    def resume(cls, folder: Path, given: Mapping[str, Any]) -> Run:
        """A run as its newest checkpoint has it.

        Args:
            folder: The run's.
            given: Settings that were given again; they have to be the same, except those in `CHANGEABLE`.

        Raises:
            InputError: No run is there, its text has changed, or a setting is another.
        """
        settings, text = _read_settings(folder)
        settings = _same(settings, given)
        with _held(folder) as lock:
            _remove_unfinished(folder)
            lines = lines_of(settings)
            if fingerprint(lines) != text:
                raise InputError(f"{settings.file} has changed since the run began: a run goes on with the same text")
            newest = newest_checkpoint(folder)
            made = new_trainer(settings, lines) if newest is None else _restored(newest, settings, lines)
            _write_settings(folder, settings, text)
            run = cls(folder, made, lock, None if newest is None else int(newest.name))
            if newest is None:
                run.save()
            else:
                _publish(newest, folder)
        return run

    def save(self) -> Path:
        """Write a checkpoint of where the trainer stands, once.

        Raises:
            InputError: It cannot be written; the one before is whole.
        """
        place = self.folder / CHECKPOINTS / f"{self.trainer.step:06d}"
        if self.saved == self.trainer.step:
            return place
        try:
            _write_checkpoint(place, self.trainer)
            _publish(place, self.folder)
            _drop_states(self.folder)
        except (OSError, InputError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            whole = "no checkpoint was written before" if self.saved is None else f"that of step {self.saved} is whole"
            raise InputError(f"{shown_path(place)}: the checkpoint cannot be written ({reason}); {whole}") from error
        self.saved = self.trainer.step
        return place

    def close(self) -> None:
        """Let others write into the folder."""
        self.lock.close()


def is_run(folder: Path) -> bool:
    """Whether a run was begun in the folder."""
    return is_file(folder / RUN)


def settings_of(folder: Path) -> Settings:
    """The settings of a run.

    Raises:
        InputError: No run is there, or its file is damaged.
    """
    return _read_settings(folder)[0]


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, from the first on; each is a folder that opens as a model."""
    try:
        found = [path for path in (folder / CHECKPOINTS).iterdir() if _NUMBER.fullmatch(path.name)]
    except (OSError, ValueError):
        return []
    return sorted(found, key=lambda path: int(path.name))


def newest_checkpoint(folder: Path) -> Path | None:
    """The one that a run goes on from."""
    return next((path for path in reversed(checkpoints(folder)) if (path / STATE).is_file()), None)


# Settings


def _write_settings(folder: Path, settings: Settings, text: str) -> None:
    data = json.dumps({"settings": settings.to_json(), "text": text}, indent=2) + "\n"
    write_whole(folder / RUN, data.encode())


def _read_settings(folder: Path) -> tuple[Settings, str]:
    if not is_run(folder):
        raise InputError(f"{shown_path(folder)} holds no run: leave out --resume to begin one")
    raw = read_json(folder / RUN, _LARGEST)
    try:
        return Settings.from_json(raw["settings"]), str(raw["text"])
    except UsageError as error:
        raise InputError(f"{shown_path(folder / RUN)}: {error}: the file is damaged") from error
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{shown_path(folder / RUN)}: not the settings of a run: the file is damaged") from error


def _same(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings of the run, with those that may change."""
    own = settings.to_json()
    for key, value in given.items():
        for name, wanted, has in _compared(key, value, own):
            if wanted != has:
                option = f"--{name.replace('_', '-')}" if name != "file" else "FILE"
                raise UsageError(f"{option} {wanted}: the run has {has}: leave it out, or begin another run in --out")
    return replace(settings, **{key: given[key] for key in CHANGEABLE if key in given})


def _compared(key: str, value: Any, own: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    if key == "sizes":
        yield from ((name, size, own["sizes"].get(name, "another")) for name, size in value.items())
    elif key not in CHANGEABLE:
        yield key, value, own[key]


# The folder


def check_new(folder: Path, file: str = "") -> None:
    """Raise InputError where a run cannot begin in a folder: it is there and holds more than the text `file`."""
    if is_run(folder):
        newest = newest_checkpoint(folder)
        at = f" (step {int(newest.name)})" if newest else ""
        raise InputError(f"{shown_path(folder)} holds a run{at}: go on with --resume, or choose another --out")
    with contextlib.suppress(FileNotFoundError):
        try:
            if any(not path.name.startswith(".") and path.absolute() != Path(file) for path in folder.iterdir()):
                raise InputError(f"{shown_path(folder)} is not empty: choose another --out")
        except NotADirectoryError as error:
            raise InputError(f"{shown_path(folder)} is no folder: choose another --out") from error
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{shown_path(folder)} cannot be read ({reason}): choose another --out") from error


class Lock:
    """Holds a folder against other trainings, until this one ends however it may."""

    def __init__(self, folder: Path) -> None:
        """Make the folder where it is not there, and take it.

        Raises:
            InputError: It cannot be written, or another training holds it.
        """
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
def _held(folder: Path) -> Iterator[Lock]:
    """The folder, given back only where the block fails."""
    lock = Lock(folder)
    try:
        yield lock
    except BaseException:
        lock.close()
        raise


def _remove_unfinished(folder: Path) -> None:
    """What was being written when the program was killed; other files are the user's."""
    for path in folder.glob(".*"):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)
    for path in (folder / CHECKPOINTS).glob(".*"):
        if _TEMPORARY.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


# Checkpoints


def _write_checkpoint(place: Path, trainer: Trainer) -> None:
    """The whole checkpoint under a temporary name, on the disk, then under its own."""
    from safetensors.numpy import save

    place.parent.mkdir(exist_ok=True)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir()
        trainer.model.save(temporary)
        to_host = trainer.model.backend.to_host
        arrays = {f"{slot}/{name}": to_host(a) for name, kept in trainer.state.items() for slot, a in kept.items()}
        write_whole(temporary / ARRAYS, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
        write_whole(temporary / STATE, (json.dumps(_state(trainer), indent=2) + "\n").encode())
        _flush(temporary)
        if place.exists():  # of a run that was resumed from an earlier one
            shutil.rmtree(place)
        temporary.rename(place)
        _flush(place.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _state(trainer: Trainer) -> dict[str, Any]:
    """Where the trainer stands: everything random comes from the seed and these numbers."""
    settings = trainer.settings
    return {
        "step": trainer.step,
        "next_batch": trainer.step * settings.accumulate,
        "seed": settings.seed,
        "learning_rate": trainer.learning_rate,
        "schedule": settings.schedule,
        "optimizer": settings.optimizer,
    }


def _restored(place: Path, settings: Settings, lines: list[str]) -> Trainer:
    raw = read_json(place / STATE, _LARGEST)
    model = Model.load(place, device=settings.device, dtype=settings.dtype)
    step, rate = raw.get("step"), raw.get("learning_rate")
    if step != int(place.name) or not isinstance(rate, float | int) or not 0 <= rate < math.inf:
        raise InputError(f"{shown_path(place / STATE)}: not the state of step {int(place.name)}: the file is damaged")
    return trainer(settings, model, lines, step=step, learning_rate=rate, state=_arrays(place / ARRAYS, model.backend))


def _arrays(path: Path, backend: Backend) -> dict[str, dict[str, Array]]:
    """What the optimiser keeps, by weight and slot."""
    tensors = open_file(path)
    found: dict[str, dict[str, Array]] = {}
    for key in tensors.names:
        slot, _, name = key.partition("/")
        found.setdefault(name, {})[slot] = backend.floats(tensors.read(key, lambda tensor: tensor)).copy()
    return found


def _publish(place: Path, folder: Path) -> None:
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


def _drop_states(folder: Path) -> None:
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
