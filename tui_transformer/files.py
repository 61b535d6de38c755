"""Files that appear whole or not at all, and one clear line for those that cannot be read or written."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from tui_transformer.errors import InputError

if TYPE_CHECKING:
    from platformdirs import PlatformDirs

Kind = TypeVar("Kind")


def check_regular(path: Path) -> None:
    """Raise InputError unless the path is a file that can be read."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: a folder, not a file")
        if not path.exists():
            raise InputError(f"{path}: no such file")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {_reason(error)}") from error
    if not is_file(path):
        raise InputError(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: may not be read: check its permissions")


def is_file(path: Path) -> bool:
    """Whether a path is a file; False for one that may not be looked at, or that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for one that may not be looked at, or that no folder can have."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Whether there is anything at a path; False for one that may not be looked at, or that nothing can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def expanded(path: str | Path) -> Path:
    """A path with `~` for the user's folder; as it is where nobody knows that folder, or no path has such a name."""
    with contextlib.suppress(RuntimeError, ValueError):
        return Path(path).expanduser()
    return Path(path)


def own_folders() -> PlatformDirs:
    """Where this system keeps the settings, data and state of the program for its user."""
    from platformdirs import PlatformDirs

    return PlatformDirs("tui-transformer", appauthor=False)


def read_json(path: Path, largest: int) -> dict[str, Any]:
    """The object of a JSON file of at most so many bytes.

    Raises:
        InputError: The file is missing, too large, not JSON, or no object.
    """
    return json_object(_read(path, largest), str(path))


def read_json_list(path: Path, largest: int) -> list[Any]:
    """The list of a JSON file of at most so many bytes.

    Raises:
        InputError: The file is missing, too large, not JSON, or no list.
    """
    return _json(_read(path, largest), str(path), list, "list, which is […]")


def json_object(text: str | bytes, where: str) -> dict[str, Any]:
    """The object that a JSON text is; `where` it stands is named if it is none.

    Raises:
        InputError: The text is not JSON, or no object.
    """
    return _json(text, where, dict, "object, which is {…}")


def _json(text: str | bytes, where: str, kind: type[Kind], what: str) -> Kind:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {_reason(error)}") from error
    if not isinstance(raw, kind):
        raise InputError(f"{where}: not a JSON {what}")
    return raw


def read_toml(path: Path, largest: int) -> dict[str, Any]:
    """The table of a TOML file of at most so many bytes.

    Raises:
        InputError: The file is missing, too large, or not TOML.
    """
    try:
        return tomllib.loads(_read(path, largest).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {_reason(error)}") from error


def _read(path: Path, largest: int) -> bytes:
    check_regular(path)
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise InputError(f"{path}: {_reason(error)}") from error
    if len(data) > largest:
        raise InputError(f"{path}: larger than such a file can be: is it the right one?")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Raises:
        InputError: It cannot be written; the old file is as it was.
    """
    with writing(path) as file:
        file.write(data)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, under a temporary name beside `path`; renamed at the end, removed on any failure.

    A device or pipe is written to directly.

    Raises:
        InputError: It cannot be written; the old file is as it was.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: a folder: name a file in it")
        with _direct(path) if path.exists() and not path.is_file() else _renamed(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {_reason(error)}") from error


@contextlib.contextmanager
def _direct(path: Path) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        yield file


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[BinaryIO]:
    target = path.resolve()
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
