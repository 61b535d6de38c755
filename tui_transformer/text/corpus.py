"""Text files of any size, line by line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tui_transformer.errors import InputError
from tui_transformer.text.files import shown_path

CHUNK = 1 << 18
LONGEST_LINE = 1 << 19
"""A longer line comes in parts, which end at a space where they can; no tokenizer refuses one of them."""

_BYTE_ORDER_MARK = "\ufeff"


def read_lines(
    paths: Sequence[Path],
    read: Callable[[int], None] = lambda _: None,
    longest: int = LONGEST_LINE,
    chunk: int = CHUNK,
) -> Iterator[str]:
    r"""The lines of files, with their ends as `\n`; no more than a few megabytes are in memory.

    Args:
        paths: UTF-8 text files; pipes too.
        read: Told after each piece how many bytes it had.
        longest: A longer line comes in parts.
        chunk: Bytes that are read at a time.

    Raises:
        InputError: A file is missing, a folder, not readable, binary or not UTF-8.
    """
    for path in paths:
        try:
            with path.open("rb") as file:
                yield from lines_of(file, shown_path(path), read, longest, chunk)
        except IsADirectoryError as error:
            raise InputError(f"{shown_path(path)} is a folder: name the files in it") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{shown_path(path)} cannot be read ({reason}): check the path") from error


def lines_of(
    file: BinaryIO,
    name: str,
    read: Callable[[int], None] = lambda _: None,
    longest: int = LONGEST_LINE,
    chunk: int = CHUNK,
) -> Iterator[str]:
    """The same of a file that is open, as standard input is; `name` is what messages call it."""
    return _lines(_texts(file, name, read, chunk), longest)


def _texts(file: BinaryIO, name: str, read: Callable[[int], None], chunk: int) -> Iterator[str]:
    """The text of a file in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at, first = 0, True
    while True:
        data = file.read(chunk)
        _check_text(data, at, name)
        text = _decoded(decoder, data, at, name)
        yield text.removeprefix(_BYTE_ORDER_MARK) if first else text
        read(len(data))
        at, first = at + len(data), False
        if not data:
            return


def _check_text(data: bytes, at: int, name: str) -> None:
    if (nul := data.find(0)) >= 0:
        raise InputError(f"{name} is binary (byte {at + nul:,} is NUL): choose text files in UTF-8")


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes, at: int, name: str) -> str:
    waiting = len(decoder.getstate()[0])
    try:
        return decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        place = at - waiting + error.start
        raise InputError(f"{name} is not UTF-8 (at byte {place:,}): save it as UTF-8") from error


def _lines(texts: Iterator[str], longest: int) -> Iterator[str]:
    rest = ""
    for text in texts:
        whole = (rest + text).replace("\r\n", "\n")
        *lines, rest = whole.split("\n")
        for line in lines:
            yield f"{line}\n"
        while len(rest) > longest:
            part = rest[:longest]
            end = part.rfind(" ") + 1 or longest
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest
