"""Curves, bars and histograms, drawn by plotext in the colours of the theme."""

from __future__ import annotations

from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_transformer.explorer.widgets.ansi import ansi_strips
from tui_transformer.explorer.widgets.chart_drawing import SERIES_GLYPHS, Inks, draw
from tui_transformer.explorer.widgets.drawn import DrawnWidget
from tui_transformer.explorer.widgets.labels import fit_label, label_width
from tui_transformer.explorer.widgets.palette import Surface, bar_color, series_colors
from tui_transformer.views import charts

_SMALLEST = (24, 5)
_CURVE_GLYPH = "─"
_LONGEST_NAME = 20
_MORE = "  …"


class Chart(DrawnWidget):
    """A chart with its title and legend in the first line."""

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

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a chart that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._chart: charts.Chart | None = None

    def show(self, chart: charts.Chart | None) -> None:
        """Show a chart, or nothing."""
        self._chart = chart
        self.redraw()

    def draw(self) -> list[Strip]:
        """Title and chart, or as much of it as there is room for."""
        width, height = self.size
        if self._chart is None:
            return []
        title = self._title_line(self._chart)
        if width < _SMALLEST[0] or height < _SMALLEST[1]:
            return [title, Strip([Segment("A chart needs more room.", self._axis_style())])][:height]
        text = draw(self._chart, width, height - 1, self._inks())
        return [title, *ansi_strips(text, self._axis_style())]

    def _inks(self) -> Inks:
        surface = Surface.of(self.app)
        if surface.depth == "none":
            return Inks((), None, None)
        marked = self.get_component_rich_style("chart--marked").color
        series = tuple(color.get_truecolor() for color in series_colors(surface))
        return Inks(series, bar_color(surface).get_truecolor(), marked.get_truecolor() if marked else None)

    def _title_line(self, chart: charts.Chart) -> Strip:
        room = self.size.width
        title = fit_label(chart.title, min(label_width(chart.title), room))
        segments = [Segment(title, self.get_component_rich_style("chart--title"))]
        for note in self._notes(chart):
            taken = Segment.get_line_length(segments)
            if taken + Segment.get_line_length(list(note)) > room:
                more = [Segment(_MORE, self._axis_style())] if room - taken >= len(_MORE) else []
                return Strip([*segments, *more])
            segments += note
        return Strip(segments)

    def _notes(self, chart: charts.Chart) -> list[tuple[Segment, ...]]:
        """Notes after the title: the names of the curves in their colours, or a histogram's statistics."""
        if isinstance(chart, charts.LineChart):
            return [self._legend_entry(series.label, index) for index, series in enumerate(chart.series)]
        note = chart.note if isinstance(chart, charts.Histogram) else ""
        return [(Segment("  " + fit_label(note, label_width(note)), self._axis_style()),)] if note else []

    def _legend_entry(self, label: str, index: int) -> tuple[Segment, ...]:
        inks, axis = self._inks(), self._axis_style()
        name = " " + fit_label(label, min(label_width(label), _LONGEST_NAME))
        if not inks.series:
            return Segment("  " + SERIES_GLYPHS[index % len(SERIES_GLYPHS)], axis), Segment(name, axis)
        color = Color.from_triplet(inks.series[index % len(inks.series)])
        return Segment("  " + _CURVE_GLYPH * 2, axis + Style(color=color)), Segment(name, axis)

    def _axis_style(self) -> Style:
        return self.get_component_rich_style("chart--axis")
