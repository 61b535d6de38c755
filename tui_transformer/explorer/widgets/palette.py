"""Colour ramps and glyph ramps: the styles that stand for values, and small pictures in them.

The ramps are monotone in lightness, so that they survive greyscale, and need no telling of red from green. The signed
ramps go from blue to orange through a neutral middle (after PuOr of ColorBrewer). Terminals with 256 or 16 colours have
ramps picked from their own colours; where there is no colour, glyphs stand for the levels.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App

from tui_transformer.records import dataclass
from tui_transformer.views.view import RAMPS, Scale, ScaleKind, Values, contrast_ratio

Depth = Literal["truecolor", "256", "standard", "none"]
Levels = npt.NDArray[np.intp]

# From the colour nearest to the page to the one furthest from it; signed ones from − to +.
_ANCHORS: dict[tuple[ScaleKind, bool], tuple[str, ...]] = {
    ("sequential", True): ("#0d1228", "#1a2650", "#28427f", "#3a6aab", "#5a9bbd", "#98c8c0", "#d0e2cc", "#f2f5dc"),
    ("sequential", False): RAMPS["sequential"],
    ("diverging", True): (
        "#a6d1ff",
        "#5f9be8",
        "#33609f",
        "#1d3563",
        "#12162b",
        "#5a3210",
        "#99571a",
        "#dc9033",
        "#ffd28c",
    ),
    ("diverging", False): RAMPS["diverging"],
}
# Numbers of the 256 colours.
_EIGHT_BIT: dict[tuple[ScaleKind, bool], tuple[int, ...]] = {
    ("sequential", True): (233, 17, 18, 24, 25, 31, 67, 73, 109, 116, 152, 187, 194, 230),
    ("sequential", False): (230, 194, 187, 152, 116, 109, 73, 67, 31, 25, 24, 18, 17),
    ("diverging", True): (153, 111, 68, 25, 18, 17, 234, 52, 94, 130, 172, 214, 222),
    ("diverging", False): (17, 18, 25, 68, 111, 153, 231, 223, 215, 172, 130, 94, 52),
}
# The values that Rich matches the 16 colours with.
_STANDARD: dict[tuple[ScaleKind, bool], tuple[str, ...]] = {
    ("sequential", True): ("#000000", "#0000aa", "#5555ff", "#00aaaa", "#aaaaaa", "#ffffff"),
    ("sequential", False): ("#ffffff", "#aaaaaa", "#00aaaa", "#5555ff", "#0000aa", "#000000"),
    ("diverging", True): ("#55ffff", "#5555ff", "#0000aa", "#000000", "#aa5500", "#ff5555", "#ffff55"),
    ("diverging", False): ("#0000aa", "#5555ff", "#55ffff", "#ffffff", "#ffff55", "#ff5555", "#aa5500"),
}
# Colours of the curves of a chart, on a dark page and on a light one, told apart by lightness as well as by hue.
SERIES: dict[bool, tuple[str, ...]] = {
    True: ("#5a9bbd", "#ffbf47", "#d98cb3", "#8fc97a", "#b9a5e8", "#e0795a", "#7fe0d4", "#c9c9c9"),
    False: ("#2d6a9f", "#c26a00", "#8f2f68", "#4f8a3a", "#6a52b3", "#9c2f1e", "#0f7a70", "#444444"),
}

_GLYPHS: dict[ScaleKind, tuple[str, ...]] = {
    "sequential": tuple(glyph * 2 for glyph in " ,:-=+*#%@"),
    "diverging": ("==", "-=", "--", " -", "  ", " +", "++", "+#", "##"),
}

_TRUECOLOR_LEVELS = 65
# Text colours, quiet ones first: those of low values, which are near the page.
_INKS: dict[tuple[Depth, bool], tuple[str, ...]] = {
    ("truecolor", True): ("#8f9bc0", "#c3cbe0", "#f4f6ff", "#ffffff", "#10162e", "#000000"),
    ("truecolor", False): ("#5d6580", "#2c3450", "#10162e", "#000000", "#f4f6ff", "#ffffff"),
    ("256", True): ("#8787af", "#d7d7ff", "#ffffff", "#000000"),
    ("256", False): ("#5f5f87", "#000000", "#ffffff"),
    ("standard", True): ("#ffffff", "#000000"),
    ("standard", False): ("#000000", "#ffffff"),
}


@dataclass(frozen=True)
class Surface:
    """The terminal that is drawn on: how many colours it has, and whether its page is dark."""

    depth: Depth
    dark: bool

    @classmethod
    def of(cls, app: App[Any]) -> Surface:
        """The terminal and the theme of an app."""
        if app.no_color or app.native_ansi_color:
            return cls("none", app.current_theme.dark)
        depth = app.console.color_system
        return cls(depth if depth in ("256", "standard") else "truecolor", app.current_theme.dark)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Palette:
    """A style for each level of a scale, with text that is readable on it.

    `glyphs` has two columns for each level: blank where colour shows the level.
    """

    styles: tuple[Style, ...]
    glyphs: tuple[str, ...]

    @cached_property
    def has_color(self) -> bool:
        """Whether colours stand for the levels; otherwise glyphs do, of which the last is never blank."""
        return not self.glyphs[-1].strip()

    @cached_property
    def masked(self) -> int:
        """The level that stands for a masked value, one past the last."""
        return len(self.styles)

    def levels(self, values: Values, scale: Scale) -> Levels:
        """The level of each value; −∞ and NaN are masked."""
        with np.errstate(invalid="ignore"):
            position = scale.position(np.asarray(values, dtype=np.float64))
        hidden = np.isnan(position) | np.isneginf(values)
        last, furthest = len(self.styles) - 1, max(abs(scale.low), abs(scale.high))
        steps = np.rint(np.where(hidden, 0.0, position) * last).astype(np.intp)
        if scale.low <= 0.0 <= scale.high and np.isfinite(furthest):
            # what is not nearly 0 does not look like 0, however few levels there are
            zero, known = round(float(scale.position(np.zeros(1))[0]) * last), np.where(hidden, 0.0, values)
            off = (steps == zero) & (np.abs(known) > furthest / 16)
            steps = np.clip(steps + np.where(off, np.sign(known), 0).astype(np.intp), 0, last)
        return np.where(hidden, self.masked, steps)


@lru_cache(maxsize=64)
def palette(kind: ScaleKind, surface: Surface, plain: Style, levels: int = _TRUECOLOR_LEVELS) -> Palette:
    """The palette of a kind of scale, of at most so many levels; glyphs in the plain style where there is no colour."""
    if surface.depth == "none":
        glyphs = _GLYPHS[kind]
        return Palette((plain,) * len(glyphs), glyphs)
    colors = ramp(kind, surface, levels)
    inks = tuple(map(Color.parse, _INKS[surface.depth, surface.dark]))
    styles = tuple(Style(color=readable(inks, color), bgcolor=color) for color in colors)
    return Palette(styles, ("  ",) * len(colors))


def ramp(kind: ScaleKind, surface: Surface, levels: int = _TRUECOLOR_LEVELS) -> list[Color]:
    """The colours of a scale from low to high: at most `levels`, fewer where the terminal has few colours."""
    key = (kind, surface.dark)
    if surface.depth == "standard":
        colors = [Color.parse(color) for color in _STANDARD[key]]
    elif surface.depth == "256":
        colors = [Color.from_triplet(Color.from_ansi(number).get_truecolor()) for number in _EIGHT_BIT[key]]
    else:
        anchors = np.array([Color.parse(color).get_truecolor() for color in _ANCHORS[key]], dtype=np.float64)
        at, places = np.linspace(0, len(anchors) - 1, levels), np.arange(len(anchors))
        channels = [np.rint(np.interp(at, places, channel)).astype(int) for channel in anchors.T]
        return [Color.from_rgb(*map(int, rgb)) for rgb in zip(*channels, strict=True)]
    steps = np.rint(np.linspace(0, len(colors) - 1, min(levels, len(colors)))).astype(int)
    return [colors[step] for step in steps]


def bar_style(surface: Surface) -> Style:
    """The style of bars that are made of characters; none where there are no colours."""
    return Style() if surface.depth == "none" else Style(color=SERIES[surface.dark][0])


@lru_cache(maxsize=256)
def readable(candidates: tuple[Color, ...], background: Color, contrast: float = 4.5) -> Color:
    """The first colour with enough contrast to a background, as WCAG 2 asks of text (level AA), or that with most."""
    page, ratios = background.get_truecolor(), dict[float, Color]()
    for color in candidates:
        ratio = contrast_ratio(color.get_truecolor(), page)
        if ratio >= contrast:
            return color
        ratios.setdefault(ratio, color)
    return ratios[max(ratios)]


# Small, a column for each column and a line for two rows


LEVELS, FEW = 17, 11
"""Colours of a picture, and of one among many: the fewer they are, the less it takes to write them."""

Picture = list[list[Segment]]
"""Lines of segments, each one column wide."""


def small_picture(tile: Values, scale: Scale, surface: Surface, page: Style, levels: int = LEVELS) -> Picture:
    """Draw a matrix, a column for each of its columns and a line for two of its rows."""
    colors = palette(scale.kind, surface, page, levels)
    if not colors.has_color:  # of each pair of rows the value further from 0
        padded = np.vstack([tile, np.full((len(tile) % 2, tile.shape[1]), np.nan)])
        upper, lower = padded[::2], padded[1::2]
        further = np.isneginf(upper) | np.isnan(upper) | (np.isfinite(lower) & (np.abs(lower) > np.abs(upper)))
        levels_shown = colors.levels(np.where(further, lower, upper), scale)
        glyphs = [*(glyph[-1] for glyph in colors.glyphs), "×"]
        return [[Segment(glyphs[level], colors.styles[0]) for level in row] for row in levels_shown.tolist()]
    at = colors.levels(tile, scale)
    below = np.vstack([at[1::2], np.full((len(at) % 2, at.shape[1]), -1)])
    blocks = _blocks(colors, page)
    return [
        [blocks[pair[0]][pair[1]] for pair in zip(upper, lower, strict=True)]
        for upper, lower in zip(at[::2].tolist(), below.tolist(), strict=True)
    ]


@lru_cache(maxsize=16)
def _blocks(colors: Palette, page: Style) -> list[list[Segment]]:
    """A segment for each pair of levels above each other; masked cells, and −1 for outside, have the page's colour."""

    def block(top: Color | None, bottom: Color | None) -> Segment:
        if top is None:
            return Segment("▄" if bottom else " ", page + Style(color=bottom))
        return Segment("▀", page + Style(color=top, bgcolor=bottom))

    paints = (*(style.bgcolor for style in colors.styles), None, None)
    return [[block(top, bottom) for bottom in paints] for top in paints]
