"""The scale of a matrix in one line: its range, remarks on it, and in its place what runs into a cell."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual.strip import Strip

from tui_transformer.explorer.widgets.labels import DrawnWidget
from tui_transformer.explorer.widgets.matrix_drawing import BEYOND_GLYPHS, EDITED_GLYPH, MASKED_GLYPH
from tui_transformer.explorer.widgets.palette import Surface, palette, small_picture
from tui_transformer.text.display import cells, fit_label
from tui_transformer.views.numbers import digits_apart, short_number
from tui_transformer.views.view import Frame, Meeting, Scale

_NARROWEST = 5
_GAP = "   "


class Legend(DrawnWidget):
    """The low value, the ramp, the high value, what a masked cell looks like, and a note; or what runs into a cell."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"legend--text"}

    DEFAULT_CSS = """
    Legend {
        height: 1;
        background: $background;
        color: $foreground;
        & > .legend--text { color: $foreground 65%; }
    }
    """

    _scale: Scale | None = None
    _remarks: tuple[str, ...] = ()
    _frame: Frame | None = None

    def show(
        self,
        scale: Scale | None,
        *,
        note: str = "",
        absent: str = "",
        edited: bool = False,
        infinite: bool = False,
        frame: Frame | None = None,
    ) -> None:
        """Show a scale, None for an empty line; behind it what masked cells and those that were set look like."""
        beyond = ""
        if scale is not None and scale.farthest:
            glyphs = BEYOND_GLYPHS if scale.low < 0 else BEYOND_GLYPHS[0]
            beyond = f"{glyphs} to {short_number(scale.farthest)}, beyond the 99.5th percentile"
        marked = f"{EDITED_GLYPH} edited" * edited, f"{BEYOND_GLYPHS[0]} ∞" * infinite
        signs = (f"{MASKED_GLYPH} {absent}" * bool(absent), *marked, beyond, note)
        self._scale, self._remarks, self._frame = scale, tuple(filter(None, signs)), frame
        self.redraw()

    def draw(self) -> list[Strip]:
        frame = self._frame
        if self._scale is None:
            return []
        if frame is not None and frame.meeting is not None:
            return [Strip(self._meets(frame.meeting))]
        if frame is not None and frame.bars:
            return [Strip([Segment(frame.bars, self.rich_style)])]
        scale, text = self._scale, self.get_component_rich_style("legend--text")
        digits = digits_apart((scale.low, scale.high))
        low, high = f"{short_number(scale.low, digits)} ", f" {short_number(scale.high, digits)}"
        room = self.size.width - len(low) - len(high)
        ramp = self._ramp(scale, room) if room >= _NARROWEST else [Segment("to", text)]
        segments = [Segment(low, text), *ramp, Segment(high, text)]
        for remark in self._remarks:
            room = self.size.width - Segment.get_line_length(segments) - len(_GAP)
            if room >= min(cells(remark), _NARROWEST):
                segments.append(Segment(_GAP + fit_label(remark, min(cells(remark), room)), text))
        return [Strip(segments)]

    def _meets(self, meeting: Meeting) -> list[Segment]:
        """The two lines above one another as far as they have met, each by its own largest; then the last product."""
        text, numbers, done = self.get_component_rich_style("legend--text"), meeting.numbers, meeting.done
        first, second = (short_number(float(value)) for value in numbers[:, done - 1])
        second = f"({second})" if numbers[1, done - 1] < 0 else second
        names, said = (f"{meeting.first} ", f" {meeting.second}"), f"   + {first} · {second} → "
        room = max(self.size.width - sum(map(cells, names)) - 32, _NARROWEST)  # beside the product and the sum
        lines = numbers / np.maximum(np.abs(numbers).max(axis=1, keepdims=True), np.finfo(float).tiny)
        met = lines[:, max(done - room, 0) : done]
        picture = small_picture(met, Scale("diverging", -1.0, 1.0), Surface.of(self.app), self.rich_style)[0]
        shown = min(numbers.shape[1], room)
        wide = max(1, min(3, room // shown))
        return [
            Segment(names[0], text),
            *(Segment(each.text * wide, each.style) for each in picture),
            Segment("·" * wide * (shown - len(picture)) + names[1], text),
            Segment(said + short_number(meeting.value), self.rich_style),
        ]

    def _ramp(self, scale: Scale, room: int) -> list[Segment]:
        """One column a colour, where a signed scale says where 0 is; glyphs where there is no colour."""
        colors = palette(scale.kind, Surface.of(self.app), self.rich_style)
        if not colors.has_color:
            room, text = min(room, 40), ""  # for the glyphs as in the cells, apart from each other, as many as fit
            for count in range(len(colors.glyphs), 1, -1):
                at = np.rint(np.linspace(0, len(colors.glyphs) - 1, count)).astype(int)
                glyphs = (colors.glyphs[level] for level in at.tolist())
                text = " ".join(glyph if glyph.strip() else "blank" for glyph in glyphs)
                if len(text) <= room:
                    break
            return [Segment(text[:room], self.rich_style)]
        width = min(room, 24)
        width -= (width + 1) % 2
        at = np.rint(np.linspace(0, len(colors.styles) - 1, width)).astype(int)
        segments = [Segment(" ", colors.styles[level]) for level in at.tolist()]
        if scale.kind == "diverging":
            segments[width // 2] = Segment("0", colors.styles[at[width // 2]])
        return segments
