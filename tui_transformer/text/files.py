"""Text files that users name, read with one clear message for everything that can be wrong with them."""

from __future__ import annotations

import stat
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.text.display import visible

MAX_BYTES = 64 * 2**20
_BYTE_ORDER_MARK = "\ufeff"
_REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "does not exist: check the path",
    PermissionError: "may not be read: change its permissions or choose another file",
}


def shown_path(path: Path) -> str:
    """Give the path as it may stand in a message."""
    return visible(str(path))


def read_text(path: Path) -> str:
    """Read a UTF-8 text file of at most `MAX_BYTES`, without a byte order mark.

    Raises:
        InputError: If the file is missing, not a regular file, not readable, too large, binary or not UTF-8.
    """
    try:
        return _decode(_read(path), path)
    except OSError as error:
        reason = _REASONS.get(type(error)) or f"cannot be read ({error.strerror}): choose another file"
        raise InputError(f"{shown_path(path)} {reason}") from error


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
    except ValueError as error:
        raise InputError(f"{shown_path(path)} cannot be the path of a file: check the path") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{shown_path(path)} is a folder: name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{shown_path(path)} is a pipe or a device: save its text in a file and name that")
    _check_size(status.st_size, path)
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    _check_size(len(data), path)
    return data


def _check_size(size: int, path: Path) -> None:
    if size > MAX_BYTES:
        limit = MAX_BYTES // 2**20
        raise InputError(f"{shown_path(path)} is larger than {limit} MiB ({size:,} bytes): choose a smaller file")


def _decode(data: bytes, path: Path) -> str:
    if (nul := data.find(0)) >= 0:
        raise InputError(f"{shown_path(path)} is binary (byte {nul:,} is NUL): choose a text file in UTF-8")
    try:
        return data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 (at byte {error.start:,})"
        raise InputError(f"{shown_path(path)} {problem}: save it as UTF-8") from error
