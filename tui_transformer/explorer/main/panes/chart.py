"""The chart of the current step."""

from __future__ import annotations

from tui_transformer.explorer.widgets.chart import Chart


class ChartPane(Chart, can_focus=True):
    """A chart that can be gone to, as every other pane."""
