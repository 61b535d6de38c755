r"""Text from files and users, made safe to show in a terminal and measured in its cells.

What cannot be seen is shown as something that can: C0 controls and DEL as control pictures (``␀`` to ``␟``, ``␡``);
C1 controls, format and bidirectional characters, separators of lines, blank letters, surrogates, private and
unassigned code points as escapes (``\x9b``, ``\u202e``, ``\U000e0041``). The selectors U+FE0E and U+FE0F, which only
choose the style of a picture and which terminals measure differently, are left out. A mark with nothing to sit on
gets a dotted circle.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
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


class _Shown:
    """The table of `str.translate`: how each code point is shown."""

    def __getitem__(self, code: int) -> str:
        return _shown(code)


@lru_cache(maxsize=4096)
def _shown(code: int) -> str:
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if code in _STYLE_SELECTORS:
        return ""
    character = chr(code)
    return escape(code) if _is_unseen(character) else character


_SHOWN = _Shown()


def _is_unseen(character: str) -> bool:
    code = ord(character)
    return unicodedata.category(character) in _UNSEEN_CATEGORIES or code in _BLANK or code in _SELECTORS


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
    """Cut (with an ellipsis) or pad `visible(text)` to exactly so many terminal cells.

    Args:
        text: Any text; it is made visible first.
        cells: The width wanted; nothing is given for 0 or less.
        align: The side at which a shorter text stands.
    """
    shown = _cut(visible(text), max(cells, 0))
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
            shown = _start(shown, width - 1) + ELLIPSIS
        else:
            short = word if _cells_shown(word) <= left else _start(word, left - 1) + ELLIPSIS
            shown, align = f"{short}@{position}", "left"
    room = width - _cells_shown(shown)
    before = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * before + shown + " " * (room - before)


def first_fitting(texts: Sequence[str], width: int) -> str:
    """The first of several visible texts that takes no more cells than there are; else the last."""
    return next((text for text in texts if _cells_shown(text) <= width), texts[-1])


def _cut(shown: str, room: int) -> str:
    if _cells_shown(shown) <= room:
        return shown
    return shown[: _fitting(shown, room - 1)] + ELLIPSIS if room else ""


def _start(shown: str, room: int) -> str:
    return shown[: _fitting(shown, room)].rstrip(" ")


def _fitting(shown: str, room: int) -> int:
    """How many characters take no more cells than there are."""
    return sum(1 for _ in takewhile(lambda end: end <= room, accumulate(map(_width, shown))))
