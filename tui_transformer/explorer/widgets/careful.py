"""Widgets that say what failed where they cannot be drawn, while everything else goes on."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import ClassVar, Protocol, runtime_checkable

from rich.segment import Segment
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.widget import Widget


@runtime_checkable
class Tells(Protocol):
    """An app that goes on where a widget cannot be drawn; in others the error is raised."""

    def undrawn(self, widget: Widget, error: Exception) -> str:
        """Tell the user, and give what is to be said in place of the widget."""


def marked_in(widget: Widget) -> Offset | None:
    """Where on the screen a widget has what is current."""
    marked = widget.marked if isinstance(widget, CarefulWidget) and widget.is_on_screen else None
    return None if marked is None else widget.content_region.offset + marked.offset


class CarefulWidget(Widget):
    """A widget in whose place a message is drawn where its own drawing fails."""

    mixed_colors: ClassVar[bool] = True
    """Whether it may draw in the terminal's own colours, or in dim ones; both are looked for in all that is drawn."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Filters of lines, but for those that find nothing to do."""
        filters = super().get_line_filters()
        return filters if self.mixed_colors else [each for each in filters if not isinstance(each, ANSIToTruecolor)]

    @property
    def marked(self) -> Region | None:
        """Where what is current is drawn in the widget; None where nothing is, or it is not in view."""
        return None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines of the widget, or of what is said in its place."""
        try:
            return super().render_lines(crop)
        except Exception as error:
            if not isinstance(self.app, Tells):
                raise
            return self._instead(self.app.undrawn(self, error), crop)

    def _instead(self, said: str, crop: Region) -> list[Strip]:
        """A message, in as many lines as it takes."""
        lines = wrap(said, max(self.size.width, 1))
        strips = [Strip([Segment(line, self.rich_style)]) for line in lines[crop.y : crop.bottom]]
        strips += [Strip([])] * (crop.height - len(strips))
        return [strip.adjust_cell_length(crop.right, self.rich_style).crop(crop.x, crop.right) for strip in strips]
