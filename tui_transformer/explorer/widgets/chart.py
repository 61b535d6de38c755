"""Curves, bars and histograms, drawn by plotext in the colours of the theme."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_transformer.explorer.widgets.chart_drawing import SERIES_GLYPHS, Inks, draw
from tui_transformer.explorer.widgets.labels import DrawnWidget
from tui_transformer.explorer.widgets.palette import SERIES, Surface
from tui_transformer.text.display import cells, fit_label
from tui_transformer.views import charts

_SMALLEST = (24, 5)
_SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Chart(DrawnWidget):
    """A chart with its title and legend in the first lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"chart--title", "chart--axis", "chart--marked"}

    DEFAULT_CSS = """
    Chart {
        background: $background;
        color: $foreground;
        & > .chart--title { color: $foreground; text-style: bold; }
        & > .chart--axis { color: $foreground 65%; }
        & > .chart--marked { color: $accent; }
    }
    """

    chart: charts.Chart | None = None
    why = ""

    def show(self, chart: charts.Chart | None, why: str = "") -> None:
        self.chart, self.why = chart, why
        self.redraw()

    def draw(self) -> list[Strip]:
        (width, height), axis = self.size, self.get_component_rich_style("chart--axis")
        if self.chart is None:
            return [Strip([Segment(fit_label(self.why, width), axis)])] if self.why and height else []
        inks = self._inks()
        heading = self._heading(self.chart, inks.series, axis)
        if width < _SMALLEST[0] or height < _SMALLEST[1]:
            return [heading[0], Strip([Segment("A chart needs more room.", axis)])][:height]
        heading = heading[: max(height - _SMALLEST[1] + 1, 1)]
        return [*heading, *ansi_strips(draw(self.chart, width, height - len(heading), inks), axis)]

    def _inks(self) -> Inks:
        surface = Surface.of(self.app)
        if surface.depth == "none":
            return Inks((), None, None)
        marked = self.get_component_rich_style("chart--marked").color
        series = tuple(Color.parse(code).get_truecolor() for code in SERIES[surface.dark])
        return Inks(series, series[0], marked.get_truecolor() if marked else None)

    def _heading(self, chart: charts.Chart, colors: Sequence[ColorTriplet], axis: Style) -> list[Strip]:
        """The title, and behind it, in as many lines as it takes, the names of all curves or a remark in its parts."""
        room, notes = self.size.width, list[tuple[Segment, ...]]()
        for index, series in enumerate(chart.series if isinstance(chart, charts.LineChart) else ()):
            sign = Segment("  " + SERIES_GLYPHS[index % len(SERIES_GLYPHS)], axis)
            if colors:
                color = Color.from_triplet(colors[index % len(colors)])
                line = "──" if index < len(colors) else sign.text.strip()
                sign = Segment("  " + line, axis + Style(color=color))
            notes.append((sign, Segment(" " + fit_label(series.label, min(cells(series.label), 28)), axis)))
        remark = chart.note if isinstance(chart, charts.Histogram) else ""
        notes += [(Segment("  " + fit_label(part, cells(part)), axis),) for part in remark.split(" · ") if part]
        title = fit_label(chart.title, min(cells(chart.title), room))
        lines = [[Segment(title, self.get_component_rich_style("chart--title"))]]
        for note in notes:
            if Segment.get_line_length([*lines[-1], *note]) > room:
                lines.append([])
            lines[-1] += note
        return [Strip(line).crop(0, room) for line in lines]


def ansi_strips(text: str, base: Style) -> list[Strip]:
    """The lines of a text with SGR escape sequences; what has no colour of its own has the style `base`.

    Rich's `Text.from_ansi` gives the same and takes over 200 times as long: 206 instead of 0.8 ms for 20 lines with 80
    sequences each.
    """
    strips = []
    for line in text.rstrip("\n").split("\n"):
        style, segments, parts = base, list[Segment](), _SGR.split(line)
        for part, codes in zip(parts[::2], [*parts[1::2], ""], strict=True):
            if part:
                segments.append(Segment(part, style))
            style = _styled(base, style, codes)
        strips.append(Strip(segments))
    return strips


@lru_cache(maxsize=512)
def _styled(base: Style, style: Style, codes: str) -> Style:
    """The style after a sequence; codes that are not about colour, bold or reset change nothing."""
    numbers = [int(code or 0) for code in codes.split(";")]
    if numbers == [0]:
        return base
    if numbers == [1]:
        return style + Style(bold=True)
    match numbers:
        case [38 | 48, 2, red, green, blue]:
            color = Color.from_rgb(red, green, blue)
        case [38 | 48, 5, number]:
            color = Color.from_ansi(number)
        case _:
            return style
    return style + (Style(color=color) if numbers[0] == 38 else Style(bgcolor=color))
