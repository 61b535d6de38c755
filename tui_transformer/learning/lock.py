"""One training at a time in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.text.files import shown_path

LOCK = ".lock"


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
def held(folder: Path) -> Iterator[Lock]:
    """The folder, given back only where the block fails."""
    lock = Lock(folder)
    try:
        yield lock
    except BaseException:
        lock.close()
        raise
