"""Files that appear whole or not at all, and one clear line for those that cannot be read or written."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, TypeVar

from tui_transformer.errors import InputError
from tui_transformer.gate import gate

Kind = TypeVar("Kind")

_DEEP_NAME = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}""")
"""A name a.b.c… of TOML that takes time and memory with the square of its parts."""


def check_regular(path: Path) -> None:
    """Raise InputError unless the path is a file that can be read, by visitors if there are any."""
    _check_reach(path)
    try:
        problems = {
            "a folder, not a file": path.is_dir(),
            "no such file": not path.exists(),
            "not a regular file": not is_file(path),
            "may not be read: check its permissions": not os.access(path, os.R_OK),
        }
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {_reason(error)}") from error
    problem = next((problem for problem, holds in problems.items() if holds), None)
    if problem is not None:
        raise InputError(f"{path}: {problem}")


def is_file(path: Path) -> bool:
    """Whether a path is a file; False for one that may not be looked at, or that no file can have."""
    return _looks(path, Path.is_file)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for one that may not be looked at, or that no folder can have."""
    return _looks(path, Path.is_dir)


def is_there(path: Path) -> bool:
    """Whether there is anything at a path; False for one that may not be looked at, or that nothing can have."""
    return _looks(path, Path.exists)


def _looks(path: Path, what: Callable[[Path], bool]) -> bool:
    try:
        return in_reach(path) and what(path)
    except (OSError, ValueError):
        return False


def in_reach(path: Path) -> bool:
    """Whether a path may be looked at: always, but for visitors of a served explorer."""
    closed = gate()
    return closed is None or closed.reads(path)


def _check_reach(path: Path, does: str = "open") -> None:
    closed = gate()
    if closed is not None and not (closed.reads(path) if does == "open" else closed.writes(path)):
        raise closed.refused(path, does)


def meant(path: str | Path) -> Path:
    """Where a path leads that a person wrote: a visitor's names are of files in the folder that is theirs."""
    closed = gate()
    return Path(path) if closed is None else closed.meant(Path(path))


def may_open(path: Path) -> bool:
    """Whether a person may ask for a path: always, but for visitors of a served explorer."""
    closed = gate()
    return closed is None or closed.opens(path)


def named(path: Path) -> Path:
    """A path as a person knows it, for a message: of a visitor's download it is the name."""
    closed = gate()
    return path if closed is None else closed.named(path)


def expanded(path: str | Path) -> Path:
    """A path that a person wrote, with `~` for the user's folder; as it is where nobody knows that folder.

    Raises:
        InputError: A visitor may not open what is there.
    """
    whole, closed = meant(home_of(path)), gate()
    if closed is not None and not closed.opens(whole):
        raise closed.refused(path)
    return whole


def home_of(path: str | Path) -> Path:
    """A path with `~` for the user's folder; as it is where nobody knows that folder, or no path has such a name."""
    with contextlib.suppress(RuntimeError, ValueError):
        return Path(path).expanduser()
    return Path(path)


class OwnFolders(NamedTuple):
    """Where the program keeps something for its user."""

    user_config_path: Path
    user_data_path: Path
    user_state_path: Path


def own_folders() -> OwnFolders:
    """Where this system keeps the settings, data and state of the program for its user; a visitor's end with them."""
    closed = gate()
    if closed is not None:
        return OwnFolders(*(closed.own / name for name in ("config", "data", "state")))
    from platformdirs import PlatformDirs

    places = PlatformDirs("tui-transformer", appauthor=False)
    return OwnFolders(places.user_config_path, places.user_data_path, places.user_state_path)


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


def read_toml(path: Path, largest: int, only: str = "") -> dict[str, Any]:
    """The table of a TOML file of at most so many bytes; or of one of its tables `only`, without reading the rest.

    Raises:
        InputError: The file is missing, too large, or not TOML.
    """
    data = _read(path, largest)
    try:
        text = data.decode("utf-8-sig")  # as editors of Windows write it
        if only:
            table = re.search(rf"^\[{only}\].*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
            text = table[0] if table else ""
        many = any(line.count(".") > 31 for line in text.split("\n"))  # to look for one takes a third of reading
        if many and (deep := _DEEP_NAME.search(text)):
            raise InputError(
                f"{named(path)}: line {text.count(chr(10), 0, deep.start()) + 1} has a name of more than 32 parts"
            )
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{named(path)}: not TOML: {_reason(error)}") from error


def _read(path: Path, largest: int) -> bytes:
    check_regular(path)
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise InputError(f"{named(path)}: {_reason(error)}") from error
    if len(data) > largest:
        raise InputError(f"{named(path)}: larger than such a file can be: is it the right one?")
    return data


def read_regular(path: Path, largest: int, folder: int | None = None) -> bytes:
    """What a file holds that somebody else may have put there: no link is followed, no pipe or device waited for.

    Args:
        path: The file.
        largest: Bytes that it may have.
        folder: The descriptor of the folder that the path begins in.

    Raises:
        FileNotFoundError: There is none.
        InputError: It is something else than a file, too large, or cannot be read.
    """
    flags = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
    try:
        if folder is None and path.is_symlink():
            raise InputError(f"{path}: a link, not a file: name the file that it leads to")
        descriptor = os.open(path, sum(getattr(os, flag, 0) for flag in flags), dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{path}: not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                data = b"" if status.st_size > largest else file.read(largest + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        link = isinstance(error, OSError) and error.errno == errno.ELOOP
        raise InputError(f"{path}: {'a link, not a file' if link else _reason(error)}") from error
    if status.st_size > largest or len(data) > largest:
        raise InputError(f"{path}: larger than the {largest >> 10:,} KiB that such a file may have")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Raises:
        InputError: It cannot be written; the old file is as it was.
    """
    with writing(path) as file:
        file.write(data)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, as far as they are not there.

    Raises:
        InputError: It cannot be made.
    """
    _check_reach(path, "write")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path)} cannot be made: {_reason(error)}") from error


def open_text(path: Path) -> TextIO:
    """A text file, to be read.

    Raises:
        InputError: It is no file that can be read.
        OSError: It is none any more.
    """
    check_regular(path)
    return path.open(encoding="utf-8", newline="")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, under a temporary name beside `path`; renamed at the end, removed on any failure.

    A device or pipe is written to directly.

    Raises:
        InputError: It cannot be written; the old file is as it was.
    """
    _check_reach(path, "write")
    try:
        if path.is_dir():
            raise InputError(f"{named(path)}: a folder: name a file in it")
        with path.open("wb") if path.exists() and not path.is_file() else _renamed(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path)}: cannot be written: {_reason(error)}") from error


def append(path: Path, text: str) -> None:
    """Write a text behind what is in a file, which is made where there is none, or to a terminal or a pipe at once.

    Raises:
        InputError: It cannot be written, or nobody reads the pipe.
    """
    _check_reach(path, "write")
    flags = ("O_WRONLY", "O_APPEND", "O_CREAT", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
    try:
        descriptor = os.open(path, sum(getattr(os, flag, 0) for flag in flags), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", errors="replace"))
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path)}: cannot be written: {_reason(error)}") from error


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))  # of a loop of links, it is the link
    temporary = target.with_name(f".{target.name[:100]}.{os.urandom(4).hex()}")
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


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it, by whole paths: one that is a link is refused, links in it are not followed.

    Raises:
        OSError: Something in it cannot be removed.
    """
    if path.is_symlink():
        raise NotADirectoryError(f"{path} is a link")

    def stop(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(path, topdown=False, onerror=stop):
        for name in names:
            Path(place, name).unlink()
        for name in folders:
            below = Path(place, name)
            if below.is_symlink():
                below.unlink()
            else:
                below.rmdir()
    path.rmdir()


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
