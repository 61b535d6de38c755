"""The cache of keys and values, drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.cache_lines import INKS, CachePicture, Run, cache_lines, largest
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette


class CacheMap(Widget):
    """Key heads × tokens of one layer; what a cell is, its sign says, and its colour where there is one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"cache-map--{ink}" for ink in INKS}
    DEFAULT_CSS = """
    CacheMap {
        background: $background;
        color: $foreground;
        & > .cache-map--plain { color: $foreground; }
        & > .cache-map--quiet { color: $foreground 65%; }
        & > .cache-map--kept { color: $secondary; }
        & > .cache-map--now { color: $accent; text-style: bold; }
        & > .cache-map--free { color: $foreground 45%; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make a map that shows nothing yet."""
        super().__init__(id=id)
        self._picture: CachePicture | None = None
        self._strips: list[Strip] | None = None

    def show(self, picture: CachePicture | None) -> None:
        """Show a cache, or nothing."""
        self._picture, self._strips = picture, None
        self.refresh()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._strips = None

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self._strips = None

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        if self._strips is None:
            self._strips = [] if self._picture is None else self._drawn(self._picture)
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _drawn(self, picture: CachePicture) -> list[Strip]:
        page, width = self.rich_style, self.size.width
        inks = {ink: self.get_component_rich_style(f"cache-map--{ink}") for ink in INKS}
        colors = palette("sequential", Surface.of(self.app), page)
        high = largest(picture) or 1.0

        def segment(run: Run) -> Segment:
            return Segment(run.text, inks[run.ink]) if run.weight is None else _shade(run, run.weight / high, colors)

        lines = cache_lines(picture, *self.size)
        return [Strip([segment(run) for run in line if run.text]).adjust_cell_length(width, page) for line in lines]


def _shade(run: Run, share: float, colors: Palette) -> Segment:
    """A cell in the colour of its share of the largest weight, or filled with a sign where there is no colour."""
    level = round(share * (len(colors.styles) - 1))
    sign = " " if colors.has_color else colors.glyphs[level][-1]
    return Segment(sign * len(run.text), colors.styles[level])
