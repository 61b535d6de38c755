r"""Text from files and users, made safe to show in a terminal and measured in its cells.

What cannot be seen is shown as something that can: C0 controls and DEL as control pictures (``␀`` to ``␟``, ``␡``);
C1 controls, format and bidirectional characters, separators of lines, blank letters, surrogates, private and
unassigned code points as escapes (``\x9b``, ``\u202e``, ``\U000e0041``). The selectors U+FE0E and U+FE0F, which only
choose the style of a picture and which terminals measure differently, are left out. A mark with nothing to sit on
gets a dotted circle.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import accumulate, takewhile
from typing import Literal

ELLIPSIS = "…"
_DOTTED_CIRCLE = "◌"
SPACE = "␣"
LEAST_OF_NAME = 2
"""Cells of a token that are left before its position: one character and the ellipsis."""
_CONTROL_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "␡"
_STYLE_SELECTORS = frozenset({0xFE0E, 0xFE0F})
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that are drawn as nothing: a joiner, Hangul fillers, Khmer inherent vowels, Mongolian selectors.
_BLANK = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810)})
_SELECTORS = frozenset({*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)})
_ZERO_WIDTH_CATEGORIES = frozenset({"Mn", "Me", "Mc"})
# The vowels and final consonants of Hangul, and skin tones, join the cell of the character before them.
_JOINING = frozenset({*range(0x1160, 0x1200), *range(0xD7B0, 0xD800), *range(0x1F3FB, 0x1F400)})
# Wide since Unicode 16, which is newer than the tables of some Python versions: trigrams, hexagrams, counting rods.
_WIDE = frozenset(
    {*range(0x2630, 0x2638), *range(0x268A, 0x2690), *range(0x4DC0, 0x4E00), *range(0x1D300, 0x1D357)}
    | {*range(0x1D360, 0x1D377)}
)


class _Shown(dict[int, str]):
    """The table of `str.translate`: how each code point is shown, of the last thousands."""

    def __missing__(self, code: int) -> str:
        if len(self) >= MOST_SHOWN:
            self.clear()
        shown = chr(code)
        if code < 0x20:
            shown = chr(_CONTROL_PICTURES + code)
        elif code == _DELETE:
            shown = _DELETE_PICTURE
        elif code in _STYLE_SELECTORS:
            shown = ""
        elif unicodedata.category(shown) in _UNSEEN_CATEGORIES or code in _BLANK or code in _SELECTORS:
            shown = escape(code)
        return self.setdefault(code, shown)


MOST_SHOWN = 4096
_SHOWN = _Shown()


def escape(code: int) -> str:
    r"""A code point as an escape: `\x9b`, `\u202e`, `\U000e0041`."""
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Give the text with everything unseen or harmful replaced by something printable, on one line."""
    if text.isascii() and text.isprintable():
        return text
    shown = text.translate(_SHOWN)
    return _DOTTED_CIRCLE + shown if shown and _width(shown[0]) == 0 else shown


def token_label(text: str) -> str:
    """A token's text as it stands beside a row or in a list: a token of nothing but spaces is seen, as `␣`."""
    return SPACE * len(text) if text.isspace() and text.isprintable() else visible(text)


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    code = ord(character)
    if unicodedata.category(character) in _ZERO_WIDTH_CATEGORIES or code in _JOINING:
        return 0
    return 2 if code in _WIDE or unicodedata.east_asian_width(character) in "WF" else 1


def cells(text: str) -> int:
    """Give the number of terminal cells that `visible(text)` takes."""
    return _cells_shown(visible(text))


def _cells_shown(shown: str) -> int:
    return len(shown) if shown.isascii() else sum(map(_width, shown))


def fit(text: str, cells: int, align: Literal["left", "right"] = "left") -> str:
    """Cut (with an ellipsis) or pad `visible(text)` to exactly so many terminal cells; 0 or less give nothing."""
    shown, room = visible(text), max(cells, 0)
    if _cells_shown(shown) > room:
        shown = _start(shown, room - 1) + ELLIPSIS if room else ""
    padding = " " * (cells - _cells_shown(shown))
    return padding + shown if align == "right" else shown + padding


def fit_label(text: str, width: int, align: Literal["left", "right", "center"] = "left") -> str:
    """As `fit`, but of a token with its position, such as `the @2`, the position stays.

    It tells the token from others of that name. No space is left before the ellipsis.
    """
    shown = visible(text)
    if width <= 0:
        return ""
    if _cells_shown(shown) > width:
        word, _, position = shown.rpartition(" @")
        left = width - len(position) - 1
        if not position.isdecimal() or left < LEAST_OF_NAME:
            shown = _start(shown, width - 1).rstrip(" ") + ELLIPSIS
        else:
            short = word if _cells_shown(word) <= left else _start(word, left - 1).rstrip(" ") + ELLIPSIS
            shown, align = f"{short}@{position}", "left"
    room = width - _cells_shown(shown)
    before = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * before + shown + " " * (room - before)


def first_fitting(texts: Sequence[str], width: int) -> str:
    """The first of several visible texts that takes no more cells than there are; else the last."""
    return next((text for text in texts if _cells_shown(text) <= width), texts[-1])


def _start(shown: str, room: int) -> str:
    return shown[: sum(1 for _ in takewhile(lambda end: end <= room, accumulate(map(_width, shown))))]


Style = Literal["words", "characters", "word pieces", "bytes", "marked spaces"]
"""How a vocabulary writes its pieces.

Whole words; single characters; `##ing` inside a word (WordPiece); a character for every byte, `Ġ` for a space
(byte-level BPE of GPT-2); `▁` for a space and `<0x0A>` for a byte (SentencePiece).
"""

BYTE_NAME = re.compile("<0x([0-9A-F]{2})>")
_CONTROLS = {"\n": "line break", "\r": "carriage return", "\t": "tab", "\N{NO-BREAK SPACE}": "no-break space"}


def piece_text(piece: str, style: Style) -> str:
    """The meaning of a piece: `##ing` is "ing, inside a word", `Ġthe` is "the, after a space".

    Bytes that are no ASCII text are named: `ðŁĺĬ` is "😊, bytes F0 9F 98 8A", `ĺĬ` is "bytes 98 8A".
    """
    if style == "characters":
        return "a space" if piece == " " else _CONTROLS.get(piece, piece)
    if style == "word pieces" and piece.startswith("##") and len(piece) > 2:
        return f"{piece[2:]}, inside a word"
    if style == "bytes" and (data := _bytes_of(piece)) is not None:
        return _bytes_text(data)
    if style == "marked spaces":
        match = BYTE_NAME.fullmatch(piece)
        return _bytes_text(bytes([int(match[1], 16)])) if match else _after_spaces(piece.replace("▁", " "))
    return piece


def piece_label(piece: str, style: Style) -> str:
    """A piece as it stands beside a row, with `␣` for each space that it begins with: `Ġthe` and `▁the` are `␣the`.

    Bytes that are no whole characters stay as they are written.
    """
    if style == "bytes" and (data := _bytes_of(piece)) is not None:
        with suppress(UnicodeDecodeError):
            piece = data.decode()
    elif style == "marked spaces":
        piece = piece.replace("▁", " ")
    rest = piece.lstrip(" ")
    return SPACE * (len(piece) - len(rest)) + (token_label(rest) if rest else "")


def _bytes_of(piece: str) -> bytes | None:
    codes = byte_codes()
    return bytes(map(codes.__getitem__, piece)) if all(character in codes for character in piece) else None


def _bytes_text(data: bytes) -> str:
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
