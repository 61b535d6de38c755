"""Taking values out: to a file, or to the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.panes.cell_lines import number
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.requests import AT_ONCE
from tui_transformer.files import expanded
from tui_transformer.views.charts import Chart

EXPORTED_AT_ONCE = 200_000
"""Cells of a view that are written before the next key; more are written in the background."""

ROW_LIMIT = 100_000
"""Cells of a row that are copied at most."""


class Export:
    """Writes and copies what is shown."""

    def __init__(
        self, explored: Exploration, port: Port, copy: Callable[[str], None], chart: Callable[[], Chart | None]
    ) -> None:
        """Take out what is shown; `copy` puts a text into the clipboard, and `chart` is what is drawn as one."""
        self._explored, self._port, self._clip, self._chart = explored, port, copy, chart

    def to_file(self) -> None:
        """Ask for a name, and write what is drawn: the chart, where that has the keys."""
        if self._explored.view.active == "chart" and (chart := self._chart()) is not None:
            self._chart_to_file(chart)
            return
        scene = self._explored.scene
        if scene is None:
            self._port.say("this stop is words: go to a step to export its numbers")
            return
        from tui_transformer.report.export import SUFFIXES, export

        view = scene.drawn
        head = f".head{view.head}" if view.heads > 1 else ""
        large = view.rows.size * view.columns.size > EXPORTED_AT_ONCE

        def written(name: str) -> None:
            self._port.say(f"written: {name}")

        def finish(name: str | None) -> None:
            if name is not None and large:
                self._port.ask("export", AT_ONCE + 1, lambda _: export(view, check_name(name)), lambda _: written(name))
            elif name is not None:
                written(name)

        prompt = PromptScreen(
            "Export to",
            value=f"{self._what()}{view.name}{head}.csv",
            hint=f"the name decides the format: {', '.join(SUFFIXES)}",
            check=check_name if large else lambda name: export(view, check_name(name)),
            replaces=True,
        )
        self._port.open(prompt, finish)

    def _chart_to_file(self, chart: Chart) -> None:
        from tui_transformer.explorer.widgets.chart_text import CHART_SUFFIXES, export_chart

        def written(name: str | None) -> None:
            if name is not None:
                self._port.say(f"written: {name}")

        prompt = PromptScreen(
            "Export the chart to",
            value=f"{self._explored.position.stop}.chart.svg",
            hint=f"the name decides the format: {', '.join(CHART_SUFFIXES)}",
            check=lambda name: export_chart(chart, path_of(name)),
            replaces=True,
        )
        self._port.open(prompt, written)

    def _what(self) -> str:
        """Part of the name of a file for a matrix that is drawn alone in place of a step's values; "" for its own."""
        scene = self._explored.scene
        if scene is None or scene.alone is None:
            return ""
        if self._explored.session.backward:
            return "gradient."
        return "difference." if scene.shown == "difference" else "beside."

    def copy_cell(self) -> None:
        """Copy the value of the cell."""
        scene = self._explored.scene
        if scene is not None and scene.working is not None:
            self._copy(repr(scene.working.stored), f"copied {number(scene.working.stored)}")

    def copy_row(self) -> None:
        """Copy the row, separated by tabs."""
        scene = self._explored.scene
        if scene is None:
            return
        width = min(scene.drawn.columns.size, ROW_LIMIT)
        values = scene.drawn.window(range(scene.place.row, scene.place.row + 1), range(width))[0]
        self._copy("\t".join(map(repr, values.tolist())), f"copied {width:,} numbers")

    def _copy(self, text: str, message: str) -> None:
        self._clip(text)
        self._port.say(message)


def check_name(name: str) -> Path:
    """The path that a person names for an export; InputError where it can be none."""
    from tui_transformer.report.export import check_suffix

    path = path_of(name)
    check_suffix(path)
    return path


def path_of(name: str) -> Path:
    """The path that a person writes, with ~ for their folder; InputError for an empty one."""
    if not name.strip():
        raise InputError("give the file a name")
    return expanded(name.strip())
