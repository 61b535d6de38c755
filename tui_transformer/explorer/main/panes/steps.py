"""The list of steps, the current one marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.message import Message

from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.step_lines import StepLine, step_lines
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.text.display import visible

NO_DETAILS: Mapping[str, str] = {}


class StepsPane(LineList):
    """Every stop in order; moving in the list moves through the stops."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"steps--plain", "steps--quiet", "steps--heading"}
    DEFAULT_CSS = """
    StepsPane {
        & > .steps--plain { color: $foreground; }
        & > .steps--quiet { color: $foreground 55%; }
        & > .steps--heading { color: $foreground; text-style: bold; }
    }
    """

    class Visited(Message):
        """The user went to a stop in the list."""

        def __init__(self, stop: str) -> None:
            super().__init__()
            self.chosen = stop

    class Entered(Message):
        """The user goes to the numbers of the step."""

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty list."""
        super().__init__(id=id)
        self._steps: tuple[StepLine, ...] = ()
        self._place = 0
        self._details: Mapping[str, str] = NO_DETAILS

    def show_steps(
        self, program: Program, stops: Sequence[str], current: str, details: Mapping[str, str] = NO_DETAILS
    ) -> None:
        """Show the stops, with the cursor on the current one.

        `details` stand in place of formulas and shapes, and take the room that they need.
        """
        lines = step_lines(program, stops, current)
        if lines is not self._steps or details != self._details:
            self._steps, self._details = lines, details
            self._place = min(self._place, len(lines) - 1)
            self.show(len(lines), self._drawn)
        place = next((i for i, line in enumerate(lines) if line.stop == current and not line.heading), None)
        if place is not None:
            self.cursor = self._place = place

    @on(LineList.Moved)
    def _moved(self, event: LineList.Moved) -> None:
        event.stop()
        if event.index < len(self._steps):  # else the list was another one then
            self.post_message(self.Visited(self._entered(event.index)))

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        self.post_message(self.Entered())

    def _entered(self, index: int) -> str:
        """The stop that a line leads to; from the line beside it, a heading is passed."""
        lines, step = self._steps, index - self._place
        if step == 1:
            return lines[index].first or lines[index].stop
        while step == -1 and index > 0 and _is_open(lines[index]):
            index -= 1
        return lines[self._place if step == -1 and _is_open(lines[index]) else index].stop

    def _drawn(self, index: int) -> Text:
        step = self._steps[index]
        mark = ("▸ " if step.closed else "▾ ") if step.heading else "  "
        title = "  " * step.depth + (mark if step.depth or step.heading else "") + visible(step.title)
        plain = self.get_component_rich_style("steps--heading" if step.heading else "steps--plain")
        text = Text(title, plain, no_wrap=True)
        told = "" if step.heading else self._details.get(step.stop, "")
        detail = told or step.detail
        if told:
            text.truncate(self.size.width - cell_len(told) - 2, overflow="ellipsis")
        room = self.size.width - text.cell_len - 2
        if cell_len(detail) <= room:
            text.append(" " * (room + 1 - cell_len(detail)) + detail, self.get_component_rich_style("steps--quiet"))
        return text


def _is_open(line: StepLine) -> bool:
    return line.heading and not line.closed
