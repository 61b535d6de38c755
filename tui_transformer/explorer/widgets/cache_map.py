"""The cache of keys and values, drawn."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.cache_lines import CachePicture, Run, cache_lines, largest
from tui_transformer.explorer.widgets.palette import Surface, palette
from tui_transformer.views.view import Scale


class CacheMap(Widget):
    """Key heads × tokens of one layer; what a cell is, its sign says, and its colour where there is one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "cache-map--plain",
        "cache-map--quiet",
        "cache-map--kept",
        "cache-map--now",
        "cache-map--free",
    }
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
        self._lines: list[list[Run]] | None = None

    def show(self, picture: CachePicture | None) -> None:
        """Show a cache, or nothing."""
        self._picture, self._lines = picture, None
        self.refresh()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._lines = None

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        if self._lines is None:
            self._lines = [] if self._picture is None else cache_lines(self._picture, *self.size)
        runs = self._lines[y] if y < len(self._lines) else []
        segments = [self._segment(run) for run in runs if run.text]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def _segment(self, run: Run) -> Segment:
        if run.weight is None:
            return Segment(run.text, self.get_component_rich_style(f"cache-map--{run.ink}"))
        colors = palette("sequential", Surface.of(self.app), self.rich_style)
        level = int(colors.levels(np.array([run.weight]), self._scale)[0])
        sign = "" if colors.has_color else colors.glyphs[level][-1]
        return Segment(run.text.replace(" ", sign) if sign else run.text, colors.styles[level])

    @property
    def _scale(self) -> Scale:
        """From 0 to the largest weight."""
        return Scale("sequential", 0.0, 1.0 if self._picture is None else largest(self._picture))
