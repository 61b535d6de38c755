"""Inks of the inside of a cell: styles of words, and of numbers by their size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.style import Style
from rich.text import Text

from tui_transformer.engine.explanation import Floats, Operand
from tui_transformer.explorer.widgets.inks import Inks
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.views.step_view import scale_for

LEVELS = 33


@dataclass(frozen=True)
class Drawn:
    """A line, and the cells that following it leads to; `marked` where it is the line of the cell itself."""

    text: Text
    target: Operand | None = None
    second: Operand | None = None
    marked: bool = False


@dataclass(frozen=True)
class Paint:
    """Styles on one terminal, in so many columns."""

    inks: Inks
    surface: Surface
    page: Style
    width: int

    @cached_property
    def _colors(self) -> Palette:
        return palette("diverging", self.surface, self.page, LEVELS)

    def heat(self, values: Floats) -> list[Style]:
        """A style for each of several numbers that are compared; plain where there is no colour."""
        if not self._colors.has_color:
            return [self.inks.plain] * len(values)
        reach = float(np.abs(np.where(np.isfinite(values), values, 0.0)).max(initial=0.0))
        scale = scale_for("diverging", -reach, reach)
        levels = self._colors.levels(values, scale).tolist()
        return [self._colors.styles[level] if level < len(self._colors.styles) else self.inks.quiet for level in levels]

    def line(self, *parts: tuple[str, Style]) -> Text:
        """Words in their styles."""
        return Text.assemble(*parts, no_wrap=True)
