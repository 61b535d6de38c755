"""Pieces of words as tokenizers write them, and what they stand for in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Literal

from tui_transformer.text.display import SPACE, token_label

Style = Literal["words", "characters", "word pieces", "bytes", "marked spaces"]
"""How a vocabulary writes its pieces.

Whole words; single characters; `##ing` inside a word (WordPiece); a character for every byte, `Ġ` for a space
(byte-level BPE of GPT-2); `▁` for a space and `<0x0A>` for a byte (SentencePiece).
"""

_BYTE_NAME = re.compile("<0x([0-9A-F]{2})>")
_CONTROLS = {"\n": "line break", "\r": "carriage return", "\t": "tab", "\N{NO-BREAK SPACE}": "no-break space"}


def piece_text(piece: str, style: Style) -> str:
    """The meaning of a piece: `##ing` is "ing, inside a word", `Ġthe` is "the, after a space".

    Bytes that are no ASCII text are named: `ðŁĺĬ` is "😊, bytes F0 9F 98 8A", `ĺĬ` is "bytes 98 8A".
    """
    return _STYLES[style](piece)


def piece_label(piece: str, style: Style) -> str:
    """A piece as it stands beside a row, with `␣` for each space that it begins with: `Ġthe` and `▁the` are `␣the`.

    Bytes that are no whole characters stay as they are written.
    """
    if style == "bytes":
        codes = byte_codes()
        if all(character in codes for character in piece):
            with suppress(UnicodeDecodeError):
                piece = bytes(codes[character] for character in piece).decode()
    elif style == "marked spaces":
        piece = piece.replace("▁", " ")
    rest = piece.lstrip(" ")
    return SPACE * (len(piece) - len(rest)) + (token_label(rest) if rest else "")


def _character(piece: str) -> str:
    return "a space" if piece == " " else _CONTROLS.get(piece, piece)


def _inside_word(piece: str) -> str:
    return f"{piece[2:]}, inside a word" if piece.startswith("##") and len(piece) > 2 else piece


def _from_bytes(piece: str) -> str:
    codes = byte_codes()
    if not all(character in codes for character in piece):
        return piece
    return _bytes_text(bytes(codes[character] for character in piece))


def _from_marks(piece: str) -> str:
    if match := _BYTE_NAME.fullmatch(piece):
        return _bytes_text(bytes([int(match[1], 16)]))
    return _after_spaces(piece.replace("▁", " "))


def _bytes_text(data: bytes) -> str:
    """The text of bytes, with the bytes where they are not plain ASCII."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _bytes_named(data)
    shown = _after_spaces(text)
    return shown if text.isascii() and text.isprintable() else f"{shown}, {_bytes_named(data.lstrip(b' ') or data)}"


def _bytes_named(data: bytes) -> str:
    return f"byte{'s' * (len(data) > 1)} {data.hex(' ').upper()}"


def _after_spaces(text: str) -> str:
    rest = text.lstrip(" ")
    spaces = len(text) - len(rest)
    counted = "a space" if spaces == 1 else f"{spaces} spaces"
    rest = _CONTROLS.get(rest, rest)
    if not spaces:
        return rest
    return f"{rest}, after {counted}" if rest else counted


@cache
def byte_codes() -> Mapping[str, int]:
    """The byte that each character of byte-level BPE stands for (Radford et al. 2019, `bytes_to_unicode`).

    Printable bytes of Latin-1 are their own characters; the others follow each other from U+0100.
    """
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): byte for i, byte in enumerate(others)}


_STYLES: Mapping[Style, Callable[[str], str]] = {
    "words": str,
    "characters": _character,
    "word pieces": _inside_word,
    "bytes": _from_bytes,
    "marked spaces": _from_marks,
}
