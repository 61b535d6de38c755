"""How a cell looks, as codes of the terminal; of 16 colours, those nearest to a text and its page may be too near."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich._palettes import STANDARD_PALETTE
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.style import Style

from tui_transformer.views.view import contrast_ratio

LEAST, FAINT = 3.0, 2.0
"""The contrast that text keeps in 16 colours, where it has so much; what has less than the second is no text."""

GREYS = tuple(map(Color.from_ansi, (8, 7, 0, 15)))
"""What text is written in where its own colour cannot be, quiet ones first."""

MARKS_BLANKS = frozenset(("4", "7", "9", "21", "53"))
"""Attributes that are seen where there is no character: lines, and colours that are exchanged."""

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


class CellStyle(NamedTuple):
    """Attributes and colours of a cell, as codes of the terminal; sorted, little is to be set from one to the next.

    Attributes:
        attributes: Codes such as `1` for bold.
        background: The code of the background, as if it were a text's colour; "" is the terminal's own.
        color: The code of the text's colour; `39` is the terminal's own.
    """

    attributes: tuple[str, ...] = ()
    background: str = ""
    color: str = "39"

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the background is seen where there is no character."""
        return not self.attributes or MARKS_BLANKS.isdisjoint(self.attributes)


OWN = CellStyle()


@lru_cache(1 << 12)
def style_of(style: Style, system: ColorSystem) -> CellStyle:
    """What a terminal of so many colours is told for a style."""
    attributes = tuple(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    return CellStyle(attributes, _code(style.bgcolor, system), _code(text_color(style, system), system) or OWN.color)


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


def painted(now: CellStyle, style: CellStyle) -> str:
    """The sequence that sets colours and attributes, those that are not set already."""
    codes = list[str]()
    if style.attributes != now.attributes:
        if now.attributes:
            codes.append("0")
            now = OWN
        codes += style.attributes
    if style.color != now.color:
        codes.append(style.color)
    if style.background != now.background:
        codes.append(as_background(style.background))
    return f"\x1b[{';'.join(codes)}m" if codes else ""


# Text of 16 colours


def text_color(style: Style, system: ColorSystem) -> Color | None:
    """The colour of text; of 16 a grey, where the nearest one cannot be read on what is nearest to its page."""
    color, page = style.color, style.bgcolor
    if system is not ColorSystem.STANDARD or color is None or page is None or color.is_default or page.is_default:
        return color
    rgb, nearest, behind = color.get_truecolor(), _nearest(color), _nearest(page)
    own = contrast_ratio(rgb, page.get_truecolor())
    is_chosen = rgb == nearest  # one of the 16: it may stand for a value
    if is_chosen or own < FAINT or contrast_ratio(nearest, behind) >= min(own, LEAST):
        return color
    return next((grey for grey in GREYS if contrast_ratio(_nearest(grey), behind) >= LEAST), color)


def _nearest(color: Color) -> ColorTriplet:
    """What a terminal of 16 colours shows for it."""
    number = color.downgrade(ColorSystem.STANDARD).number
    return color.get_truecolor() if number is None else STANDARD_PALETTE[number]
