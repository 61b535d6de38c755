"""Labels cut and padded to terminal cells, measured as Textual measures them."""

from __future__ import annotations

from typing import Literal

from rich.cells import cell_len, set_cell_size

from tui_transformer.text.display import visible

ELLIPSIS = "…"

LEAST = 2
"""Cells of a token that are left before its position: one character and the ellipsis."""


def label_width(text: str) -> int:
    """The number of cells that the text takes on screen."""
    return cell_len(visible(text))


def fit_label(text: str, width: int, align: Literal["left", "right", "center"] = "left") -> str:
    """The text made harmless, cut with an ellipsis or padded to exactly `width` cells.

    Of a token with its position, such as `the @2`, the position stays: it tells the token from others of that name.
    """
    if width <= 0:
        return ""
    shown = visible(text)
    room = width - cell_len(shown)
    if room < 0:
        return set_cell_size(_shorter(shown, width), width)
    left = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * left + shown + " " * (room - left)


def _shorter(shown: str, width: int) -> str:
    word, _, position = shown.rpartition(" @")
    left = width - len(position) - 1
    if not position.isdecimal() or left < LEAST:
        return _cut(shown, width - 1) + ELLIPSIS
    word = word if cell_len(word) <= left else _cut(word, left - 1) + ELLIPSIS
    return f"{word}@{position}"


def _cut(shown: str, width: int) -> str:
    return set_cell_size(shown, width).rstrip(" ")
