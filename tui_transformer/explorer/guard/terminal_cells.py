"""Cells of the terminal: what stands in a column, and the codes of its colours and attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from rich.cells import cell_len, get_character_cell_size
from rich.color import Color, ColorSystem
from rich.style import Style
from textual.strip import Strip

UPPER, LOWER, FULL = "▀", "▄", "█"

MARKS_BLANKS = frozenset(("4", "7", "9", "21", "53"))
"""Attributes that are seen where there is no character: lines, and colours that are exchanged."""

MOST_KEPT = 1 << 14
"""Segments whose cells are kept."""

_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "overline": "53",
}


@dataclass(frozen=True, eq=False)
class CellStyle:
    """Colours and attributes of a cell, as codes of the terminal; there is one of each, made by `cell_style`.

    Attributes:
        color: The code of the text's colour; `39` is the terminal's own.
        background: The code of the background, as if it were a text's colour; "" is the terminal's own.
        attributes: Codes such as `1` for bold.
    """

    color: str
    background: str
    attributes: tuple[str, ...]

    @property
    def order(self) -> tuple[tuple[str, ...], str, str]:
        """Where it comes among others, so that little is to be set from one to the next."""
        return self.attributes, self.background, self.color

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the background is seen where there is no character."""
        return not self.attributes or MARKS_BLANKS.isdisjoint(self.attributes)

    @property
    def can_turn(self) -> bool:
        """Whether the upper half in one colour may be the lower half in the other."""
        return bool(self.background) and self.color != "39" and not self.attributes

    @property
    def turned(self) -> CellStyle:
        """The same two colours the other way round."""
        return cell_style(self.background, self.color)

    def with_color(self, color: str) -> CellStyle:
        """The background alone, behind another colour."""
        return cell_style(color, self.background, self.attributes)


_STYLES: WeakValueDictionary[tuple[str, str, tuple[str, ...]], CellStyle] = WeakValueDictionary()


def cell_style(color: str = "39", background: str = "", attributes: tuple[str, ...] = ()) -> CellStyle:
    """The one style with these codes."""
    codes = color, background, attributes
    return _STYLES.get(codes) or _STYLES.setdefault(codes, CellStyle(*codes))


OWN = cell_style()

Cell = tuple[str, CellStyle]
"""Text of a column with its style: a character, or text of several columns, whose others hold "" then."""


class Cells:
    """Makes cells of strips."""

    def __init__(self, system: ColorSystem) -> None:
        self._system = system
        self._known: dict[tuple[str, int], tuple[Any, list[Cell]]] = {}

    def of(self, strips: Iterable[Strip]) -> list[Cell]:
        """The cells of strips side by side."""
        cells, known = list[Cell](), self._known
        for strip in strips:
            for text, style, _ in strip:
                kept = known.get((text, id(style)))
                cells += self._made(text, style) if kept is None else kept[1]
        return cells

    def _made(self, text: str, style: Style | None) -> list[Cell]:
        """The cells of a segment; the style is kept with them, so that no other has its number."""
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        made = _cells(text, _style_of(style or Style.null(), self._system))
        self._known[text, id(style)] = style, made
        return made


def _cells(text: str, own: CellStyle) -> list[Cell]:
    if text.isascii() or all(get_character_cell_size(character) == 1 for character in text):
        return [_cell(character, own) for character in text]
    width = cell_len(text)
    return [(text, own), *[("", own)] * (width - 1)] if width else []


@lru_cache(1 << 12)
def _cell(character: str, own: CellStyle) -> Cell:
    """A character; a blank where nothing of it is seen but the background, and of two halves always the same one."""
    if character == " " or (character == UPPER and own.color == own.background):
        return " ", cell_style(background=own.background) if own.is_plain else own
    if character == FULL and own.color != OWN.color and not own.attributes:
        return " ", cell_style(background=own.color)
    if character == UPPER and own.can_turn and own.color > own.background:
        return LOWER, own.turned
    return character, own


@lru_cache(1 << 12)
def _style_of(style: Style, system: ColorSystem) -> CellStyle:
    attributes = tuple(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    return cell_style(_code(style.color, system) or OWN.color, _code(style.bgcolor, system), attributes)


def _code(color: Color | None, system: ColorSystem) -> str:
    """The code that sets the text's colour; "" for the terminal's own."""
    if color is None or color.is_default:
        return ""
    return ";".join(color.downgrade(system).get_ansi_codes())


@lru_cache(1 << 12)
def as_background(code: str) -> str:
    """The code that sets the background to a colour whose code for text is given."""
    first, _, rest = code.partition(";")
    return ";".join(filter(None, (str(int(first or OWN.color) + 10), rest)))
