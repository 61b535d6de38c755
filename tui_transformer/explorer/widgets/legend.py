"""The scale of a heat map in one line."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_transformer.explorer.widgets.careful import CarefulWidget
from tui_transformer.explorer.widgets.cell_table import EDITED_GLYPH, MASKED_GLYPH
from tui_transformer.explorer.widgets.labels import fit_label, label_width
from tui_transformer.explorer.widgets.numbers import short_number
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.views.view import Scale

_WIDEST_RAMP, _WIDEST_GLYPHS = 24, 40
_NARROWEST_RAMP = 5
_GAP = "   "
BLANK = "blank"
"""Sign for a glyph of nothing but spaces."""


class Legend(CarefulWidget):
    """The low value, the ramp, the high value, what a masked cell looks like, and a note."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"legend--text"}

    DEFAULT_CSS = """
    Legend {
        height: 1;
        background: $background;
        color: $foreground;
        & > .legend--text { color: $foreground 65%; }
    }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a legend that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._scale: Scale | None = None
        self._note = ""
        self._masked = self._edited = False

    def show(self, scale: Scale | None, *, note: str = "", masked: bool = False, edited: bool = False) -> None:
        """Show a scale.

        Args:
            scale: The range that the colours stand for; None for an empty line.
            note: What else there is to say about the values.
            masked: Whether there are masked cells to explain.
            edited: Whether there are cells that were set.
        """
        self._scale, self._note, self._masked, self._edited = scale, note, masked, edited
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        strip = Strip(self._segments(self._scale)) if self._scale and y == 0 else Strip([])
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def _segments(self, scale: Scale) -> list[Segment]:
        text = self.get_component_rich_style("legend--text")
        low, high = f"{short_number(scale.low)} ", f" {short_number(scale.high)}"
        room = self.size.width - len(low) - len(high)
        ramp = self._ramp(scale, room) if room >= _NARROWEST_RAMP else [Segment("to", text)]
        segments = [Segment(low, text), *ramp, Segment(high, text)]
        for remark in self._remarks():
            room = self.size.width - Segment.get_line_length(segments) - len(_GAP)
            if room >= min(label_width(remark), _NARROWEST_RAMP):
                segments.append(Segment(_GAP + fit_label(remark, min(label_width(remark), room)), text))
        return segments

    def _remarks(self) -> list[str]:
        masked = f"{MASKED_GLYPH} masked" if self._masked else ""
        edited = f"{EDITED_GLYPH} edited" if self._edited else ""
        return [remark for remark in (masked, edited, self._note) if remark]

    def _ramp(self, scale: Scale, width: int) -> list[Segment]:
        colors = palette(scale.kind, Surface.of(self.app), self.rich_style)
        if colors.has_color:
            return _color_ramp(colors, scale, min(width, _WIDEST_RAMP))
        return _glyph_ramp(colors, min(width, _WIDEST_GLYPHS), self.rich_style)


def _color_ramp(colors: Palette, scale: Scale, width: int) -> list[Segment]:
    """One column a colour; a signed scale says where 0 is."""
    width -= (width + 1) % 2
    at = np.rint(np.linspace(0, len(colors.styles) - 1, width)).astype(int)
    segments = [Segment(" ", colors.styles[level]) for level in at.tolist()]
    if scale.kind == "diverging":
        segments[width // 2] = Segment("0", colors.styles[at[width // 2]])
    return segments


def _glyph_ramp(colors: Palette, width: int, style: Style) -> list[Segment]:
    """The glyphs of the levels as in the cells, apart from each other, a blank one as a word; as many as fit."""
    for count in range(len(colors.glyphs), 1, -1):
        at = np.rint(np.linspace(0, len(colors.glyphs) - 1, count)).astype(int)
        text = " ".join(colors.glyphs[level] if colors.glyphs[level].strip() else BLANK for level in at.tolist())
        if len(text) <= width or count == 2:
            return [Segment(text[:width], style)]
    return []
