"""A matrix as a small picture: two rows a line, in half blocks or in glyphs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.views.view import Scale, Values

LEVELS, FEW = 17, 11
"""Colours of a picture, and of one among many: the fewer they are, the less it takes to write them."""

Picture = list[list[Segment]]
"""Lines of segments, each one column wide."""


def picture(tile: Values, scale: Scale, surface: Surface, page: Style, levels: int = LEVELS) -> Picture:
    """Draw a matrix, a column for each of its columns and a line for two of its rows."""
    colors = palette(scale.kind, surface, page, levels)
    return _half_blocks(tile, scale, colors, page) if colors.has_color else _glyphs(tile, scale, colors)


def _half_blocks(tile: Values, scale: Scale, colors: Palette, page: Style) -> Picture:
    """Two rows a line: the upper one in the colour of the block, the lower one in the background."""
    levels = colors.levels(tile, scale)
    below = np.vstack([levels[1::2], np.full((len(levels) % 2, levels.shape[1]), -1)])
    blocks = _blocks(colors, page)
    return [
        [blocks[pair[0]][pair[1]] for pair in zip(upper, lower, strict=True)]
        for upper, lower in zip(levels[::2].tolist(), below.tolist(), strict=True)
    ]


@lru_cache(maxsize=16)
def _blocks(colors: Palette, page: Style) -> list[list[Segment]]:
    """A segment for each pair of levels; masked cells, and −1 for outside the matrix, have the page's colour."""
    paints = (*(style.bgcolor for style in colors.styles), None, None)
    return [[_block(page, top, bottom) for bottom in paints] for top in paints]


def _block(page: Style, top: Color | None, bottom: Color | None) -> Segment:
    """Two cells above each other."""
    if top is None:
        return Segment("▄" if bottom else " ", page + Style(color=bottom))
    return Segment("▀", page + Style(color=top, bgcolor=bottom))


def _glyphs(tile: Values, scale: Scale, colors: Palette) -> Picture:
    """Two rows a line: of each pair the value further from 0."""
    padded = np.vstack([tile, np.full((len(tile) % 2, tile.shape[1]), np.nan)])
    upper, lower = padded[::2], padded[1::2]
    further = np.isneginf(upper) | np.isnan(upper) | (np.isfinite(lower) & (np.abs(lower) > np.abs(upper)))
    levels = colors.levels(np.where(further, lower, upper), scale)
    glyphs = [*(glyph[-1] for glyph in colors.glyphs), "×"]
    return [[Segment(glyphs[level], colors.styles[0]) for level in row] for row in levels.tolist()]
