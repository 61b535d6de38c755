"""A chart as lines of text without colour, and charts written to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import wrap

from tui_transformer.errors import InputError
from tui_transformer.explorer.widgets.chart_drawing import SERIES_GLYPHS, Inks, draw
from tui_transformer.files import write_whole
from tui_transformer.report.chart_svg import render
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path
from tui_transformer.views.charts import Chart, Histogram, LineChart

WIDTH, HEIGHT = 100, 30
SMALLEST = (24, 8)


def chart_text(chart: Chart, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The title, the names of all curves or a remark, and the chart."""
    width, height = max(width, SMALLEST[0]), max(height, SMALLEST[1])
    heading = [line for part in _heading(chart) for line in wrap(visible(part), width)]
    drawn = draw(chart, width, max(height - len(heading), SMALLEST[1]), Inks((), None, None))
    lines = re.sub(r"\x1b\[[\d;]*m", "", drawn).splitlines()
    return "\n".join([*heading, *(line.rstrip() for line in lines)]).rstrip() + "\n"


def _heading(chart: Chart) -> list[str]:
    if isinstance(chart, LineChart):
        signs = (SERIES_GLYPHS[index % len(SERIES_GLYPHS)] for index in range(len(chart.series)))
        return [chart.title, "   ".join(f"{sign} {each.label}" for sign, each in zip(signs, chart.series, strict=True))]
    return [chart.title, chart.note] if isinstance(chart, Histogram) else [chart.title]


CHART_SUFFIXES: Mapping[str, Callable[[Chart], str]] = {".svg": render, ".txt": chart_text}


def check_chart_name(path: Path) -> Callable[[Chart], str]:
    """How a chart is written into a file of this name; InputError where it is not."""
    how = CHART_SUFFIXES.get(path.suffix.lower())
    if how is None:
        raise InputError(f"{shown_path(path)}: the name of a chart has to end in {', '.join(CHART_SUFFIXES)}")
    return how


def export_chart(chart: Chart, path: Path) -> None:
    """Write a chart as SVG or text, by the suffix of the path.

    Raises:
        InputError: Another suffix, or a file that cannot be written.
    """
    write_whole(path, check_chart_name(path)(chart).encode("utf-8", errors="backslashreplace"))
