"""A run: a trainer and the folder in which nothing of it is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.learning.checkpoint import (
    CHECKPOINTS,
    Lock,
    drop_states,
    held,
    newest_checkpoint,
    publish,
    remove_unfinished,
    restored,
    write_checkpoint,
)
from tui_transformer.learning.data import fingerprint, lines_of
from tui_transformer.learning.log import Log
from tui_transformer.learning.loop import Measured, Record, Trainer
from tui_transformer.learning.settings import Settings, is_run, read_settings, with_changes, write_settings
from tui_transformer.learning.start import new_trainer
from tui_transformer.text.files import shown_path

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
        there, its text has changed, or a setting is another.
        """
        settings, text = read_settings(folder)
        settings = with_changes(settings, given)
        with held(folder) as lock:
            remove_unfinished(folder)
            lines = lines_of(settings)
            if fingerprint(lines) != text:
                raise InputError(f"{settings.file} has changed since the run began: a run goes on with the same text")
            newest = newest_checkpoint(folder)
            made = new_trainer(settings, lines) if newest is None else restored(newest, settings, lines)
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
        trainer = self.trainer
        record, measured = trainer.advance(), None
        due = trainer.done or record.step % trainer.settings.between_saves == 0
        if due:
            validating()
            measured = trainer.validate()
        made(record, measured)
        log.write(record, measured)
        if due:
            self.save()

    def save(self) -> Path:
        """Write a checkpoint of where the trainer stands, once.

        InputError where it cannot be, and the one before is whole.
        """
        place = self.folder / CHECKPOINTS / f"{self.trainer.step:06d}"
        if self.saved == self.trainer.step:
            return place
        try:
            write_checkpoint(place, self.trainer)
            publish(place, self.folder)
            drop_states(self.folder)
        except (OSError, InputError) as error:
            whole = "no checkpoint was written before" if self.saved is None else f"that of step {self.saved} is whole"
            cause = error if isinstance(error, OSError) else error.__cause__  # the temporary name tells nobody anything
            reason = getattr(cause, "strerror", None) or str(error)
            raise InputError(f"{shown_path(place)}: the checkpoint cannot be written ({reason}); {whole}") from error
        self.saved = self.trainer.step
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
