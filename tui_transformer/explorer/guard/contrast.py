"""The contrast of colours, also in terminals of 16, where those nearest to a text and its page may be too near."""

from __future__ import annotations

from rich._palettes import STANDARD_PALETTE
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.style import Style

LEAST, FAINT = 3.0, 2.0
"""The contrast that text keeps in 16 colours, where it has so much; what has less than the second is no text."""

GREYS = tuple(map(Color.from_ansi, (8, 7, 0, 15)))
"""What text is written in where its own colour cannot be, quiet ones first."""


def contrast_ratio(first: Color, second: Color) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2, contrast ratio)."""
    darker, lighter = sorted(luminance(color.get_truecolor()) for color in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: ColorTriplet) -> float:
    """The relative luminance of an sRGB colour, 0 to 1 (WCAG 2)."""
    channels = [channel / 255 for channel in color]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


def text_color(style: Style, system: ColorSystem) -> Color | None:
    """The colour of text; of 16 a grey, where the nearest one cannot be read on what is nearest to its page."""
    color, page = style.color, style.bgcolor
    if system is not ColorSystem.STANDARD or color is None or page is None or color.is_default or page.is_default:
        return color
    own, nearest, behind = contrast_ratio(color, page), _nearest(color), _nearest(page)
    is_chosen = color.get_truecolor() == nearest.get_truecolor()  # one of the 16: it may stand for a value
    if is_chosen or own < FAINT or contrast_ratio(nearest, behind) >= min(own, LEAST):
        return color
    return next((grey for grey in GREYS if contrast_ratio(_nearest(grey), behind) >= LEAST), color)


def _nearest(color: Color) -> Color:
    """What a terminal of 16 colours shows for it."""
    number = color.downgrade(ColorSystem.STANDARD).number
    return color if number is None else Color.from_triplet(STANDARD_PALETTE[number])
