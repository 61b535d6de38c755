"""Words on a line: labels cut and padded to terminal cells, left and right ends of a line, and their styles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from textual.widget import Widget

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


def first_fitting(texts: Sequence[str], width: int) -> str:
    """The first of several texts that takes no more cells than there are; else the last."""
    return next((text for text in texts if cell_len(text) <= width), texts[-1])


def _shorter(shown: str, width: int) -> str:
    word, _, position = shown.rpartition(" @")
    left = width - len(position) - 1
    if not position.isdecimal() or left < LEAST:
        return _cut(shown, width - 1) + ELLIPSIS
    word = word if cell_len(word) <= left else _cut(word, left - 1) + ELLIPSIS
    return f"{word}@{position}"


def _cut(shown: str, width: int) -> str:
    return set_cell_size(shown, width).rstrip(" ")


@dataclass(frozen=True)
class Inks:
    """Names in quiet, values in plain, what counts in accent, where one is in marked; right and wrong answers."""

    plain: Style
    quiet: Style
    accent: Style
    marked: Style
    right: Style
    wrong: Style


INK_CLASSES = {f"ink--{field.name}" for field in fields(Inks)}
"""The component classes of a screen with such lines."""


def inks_of(screen: Widget) -> Inks:
    """The styles that the screen's style sheet gives; but for what is marked they lie on any background."""
    return Inks(*(_ink(screen, f"ink--{field.name}") for field in fields(Inks)))


def _ink(screen: Widget, name: str) -> Style:
    style, given = (screen.get_component_rich_style(name, partial=partial) for partial in (False, True))
    return Style(color=style.color, bgcolor=given.bgcolor, bold=style.bold, reverse=style.reverse)


def spread(left: Text, right: Text, width: int) -> Text:
    """Left and right of a line; the left one is cut if both do not fit."""
    room = max(width - right.cell_len - 2, 0)
    left = left.copy()
    left.truncate(room, overflow="ellipsis")
    left.append(" " * (width - left.cell_len - right.cell_len))
    line = left.append_text(right)
    line.truncate(width)
    line.no_wrap = True
    return line
