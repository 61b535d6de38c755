"""Text files that users name: read whole, or of any size line by line, with one clear message for what can be wrong."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tui_transformer.errors import InputError
from tui_transformer.files import named
from tui_transformer.text.display import visible

MAX_BYTES = 64 * 2**20
CHUNK = 1 << 18
LONGEST_LINE = 1 << 19
"""A longer line comes in parts, which end at a space where they can; no tokenizer refuses one of them."""
_BYTE_ORDER_MARK = "\ufeff"
_REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "does not exist: check the path",
    PermissionError: "may not be read: change its permissions or choose another file",
}


def shown_path(path: Path) -> str:
    """Give the path as it may stand in a message."""
    return visible(str(named(path)))


def read_text(path: Path) -> str:
    """Read a UTF-8 text file of at most `MAX_BYTES`, without a byte order mark.

    Raises:
        InputError: If the file is missing, not a regular file, not readable, too large, binary or not UTF-8.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{shown_path(path)} is a folder: name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown_path(path)} is a pipe or a device: save its text in a file and name that")
        with path.open("rb") as file:
            data = b"" if status.st_size > MAX_BYTES else file.read(MAX_BYTES + 1)
    except ValueError as error:
        raise InputError(f"{shown_path(path)} cannot be the path of a file: check the path") from error
    except OSError as error:
        reason = _REASONS.get(type(error)) or f"cannot be read ({error.strerror}): choose another file"
        raise InputError(f"{shown_path(path)} {reason}") from error
    if (size := max(status.st_size, len(data))) > MAX_BYTES:
        limit = MAX_BYTES // 2**20
        raise InputError(f"{shown_path(path)} is larger than {limit} MiB ({size:,} bytes): choose a smaller file")
    if (nul := data.find(0)) >= 0:
        raise InputError(f"{shown_path(path)} is binary (byte {nul:,} is NUL): choose a text file in UTF-8")
    try:
        return data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 (at byte {error.start:,})"
        raise InputError(f"{shown_path(path)} {problem}: save it as UTF-8") from error


def read_lines(
    paths: Sequence[Path], read: Callable[[int], None] = lambda _: None, longest: int = LONGEST_LINE
) -> Iterator[str]:
    r"""The lines of UTF-8 text files or pipes, with their ends as `\n`; at most a few megabytes are in memory.

    `read` is told after each chunk how many bytes it had. A line that is longer than `longest` comes in parts.

    Raises:
        InputError: A file is missing, a folder, not readable, binary or not UTF-8.
    """
    for path in paths:
        try:
            with path.open("rb") as file:
                yield from lines_of(file, shown_path(path), read, longest)
        except IsADirectoryError as error:
            raise InputError(f"{shown_path(path)} is a folder: name the files in it") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{shown_path(path)} cannot be read ({reason}): check the path") from error


def lines_of(
    file: BinaryIO, name: str, read: Callable[[int], None] = lambda _: None, longest: int = LONGEST_LINE
) -> Iterator[str]:
    """The same of a file that is open, as standard input is; `name` is what messages call it."""
    decoder, at, rest, ended = codecs.getincrementaldecoder("utf-8")(), 0, "", False
    while not ended:
        data, waiting = file.read(CHUNK), len(decoder.getstate()[0])
        if (nul := data.find(0)) >= 0:
            raise InputError(f"{name} is binary (byte {at + nul:,} is NUL): choose text files in UTF-8")
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            place = at - waiting + error.start
            raise InputError(f"{name} is not UTF-8 (at byte {place:,}): save it as UTF-8") from error
        *lines, rest = (rest + (text if at else text.removeprefix(_BYTE_ORDER_MARK))).replace("\r\n", "\n").split("\n")
        for line in lines:
            yield f"{line}\n"
        while len(rest) > longest:
            part = rest[:longest]
            end = part.rfind(" ") + 1 or longest
            yield rest[:end]
            rest = rest[end:]
        read(len(data))
        at, ended = at + len(data), not data
    if rest:
        yield rest


def several_lines(lines: Iterable[str], size: int, between: str = "") -> Iterator[str]:
    """Texts of lines that follow each other, each as soon as it has more than `size` characters."""
    waiting: list[str] = []
    length = 0
    for line in lines:
        waiting.append(line)
        length += len(line)
        if length > size:
            yield between.join(waiting)
            waiting, length = [], 0
    if waiting:
        yield between.join(waiting)
