"""The folder in which an answer runs: what is read of it is looked at first, and it is removed whatever is in it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import read_regular

MOST_FILES = 10_000
DEEPEST = 50
"""Folders in folders."""

_BY_FOLDER = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class Scratch:
    """A folder that somebody's code may do anything to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home"
        self.home.mkdir()
        self._held = os.open(path, os.O_RDONLY) if _BY_FOLDER else None

    def read(self, name: str, largest: int) -> bytes | None:
        """A file in it; None where there is none.

        Raises:
            InputError: It is a link, a pipe, a device or a folder, or too large.
        """
        try:
            path = Path(name) if self._held is not None else self.path / name
            return read_regular(path, largest, self._held)
        except FileNotFoundError:
            return None

    def beyond(self, most: int) -> str:
        """What is too much in it: bytes, files or folders in folders; "" where nothing is."""
        size = count = 0
        folders = [(self.path, 0)]
        for folder, depth in folders:  # which grows
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError),
                os.scandir(folder) as all_,
            ):
                for each in all_:
                    count += 1
                    if count > MOST_FILES or depth > DEEPEST:
                        return f"makes more than {MOST_FILES:,} files" if count > MOST_FILES else "makes deep folders"
                    if each.is_dir(follow_symlinks=False):
                        folders.append((Path(each.path), depth + 1))
                    else:
                        size += _taken(each)
        return f"writes more than the {most >> 20} MiB that it may" if size > most else ""

    def remove(self) -> None:
        """Remove it and all that is in it."""
        if self._held is None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            _empty(self._held)
        with contextlib.suppress(OSError):
            if self.path.is_symlink():  # put there by the answer, which moved the folder
                self.path.unlink()
                Path(f"/proc/self/fd/{self._held}").readlink().rmdir()
            else:
                self.path.rmdir()
        os.close(self._held)


@contextlib.contextmanager
def scratch() -> Iterator[Scratch]:
    """A new folder, which is removed at the end.

    Raises:
        InputError: None can be made.
    """
    try:
        made = Scratch(Path(tempfile.mkdtemp(prefix="tui-transformer-")))
    except OSError as error:
        raise InputError(f"{tempfile.gettempdir()}: cannot be written: {error.strerror}") from error
    try:
        yield made
    finally:
        made.remove()


def _taken(entry: os.DirEntry[str]) -> int:
    """Bytes that a file takes of the disk."""
    with contextlib.suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        return int(getattr(status, "st_blocks", -(-status.st_size // 512))) * 512
    return 0


def _empty(folder: int) -> None:
    """Remove all that is in a folder. What lies deeper is put to the top first: no path becomes long, however deep."""
    while names := os.listdir(folder):
        for name in names:
            if not _is_folder(name, folder):
                os.unlink(name, dir_fd=folder)
                continue
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            try:
                for below in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                    _is_folder(below, inner)
                    os.rename(below, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=folder)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)


def _is_folder(name: str, within: int) -> bool:
    """Whether that is a folder, which then may be changed."""
    folder = stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    if folder:
        os.chmod(name, 0o700, dir_fd=within)
    return folder
