"""The cache of keys and values, drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from tui_transformer.explorer.widgets.cache_lines import INKS, CachePicture, Run, cache_lines, largest
from tui_transformer.explorer.widgets.drawn import DrawnWidget
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette


class CacheMap(DrawnWidget):
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

    def show(self, picture: CachePicture | None) -> None:
        """Show a cache, or nothing."""
        self._picture = picture
        self.redraw()

    def draw(self) -> list[Strip]:
        """The lines of the picture."""
        picture = self._picture
        if picture is None:
            return []
        inks = {ink: self.get_component_rich_style(f"cache-map--{ink}") for ink in INKS}
        colors = palette("sequential", Surface.of(self.app), self.rich_style)
        high = largest(picture) or 1.0

        def segment(run: Run) -> Segment:
            return Segment(run.text, inks[run.ink]) if run.weight is None else _shade(run, run.weight / high, colors)

        return [Strip([segment(run) for run in line if run.text]) for line in cache_lines(picture, *self.size)]


def _shade(run: Run, share: float, colors: Palette) -> Segment:
    """A cell in the colour of its share of the largest weight, or filled with a sign where there is no colour."""
    level = round(share * (len(colors.styles) - 1))
    sign = " " if colors.has_color else colors.glyphs[level][-1]
    return Segment(sign * len(run.text), colors.styles[level])
