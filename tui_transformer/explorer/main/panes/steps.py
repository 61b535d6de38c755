"""The list of steps, the current one marked; layers that it is not in are closed to one line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.events import Click
from textual.message import Message

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.ops import Parameter
from tui_transformer.engine.program import Program, by_program
from tui_transformer.explorer.main.panes.lines import group_title
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass
from tui_transformer.session.overlay import details
from tui_transformer.session.pane_fit import PANES
from tui_transformer.session.scene import Scene
from tui_transformer.session.whole.scene import reader
from tui_transformer.text.display import visible

NUMBERS = {"nothing": "", "gradient": " · ‖∂loss/∂x‖", "trace": " · max |a − b|"}
"""Meaning of the numbers in the list of steps."""


@dataclass(frozen=True)
class StepLine:
    """One line: the stop that it leads to, its words, how deep it is indented, and whether it heads a group.

    A heading leads to the last stop of its group; `first` is the first one.
    """

    stop: str
    title: str
    detail: str = ""
    depth: int = 0
    heading: bool = False
    closed: bool = False
    first: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it heads lines that are shown below it."""
        return self.heading and not self.closed


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

    @dataclass
    class Visited(Message):
        """The user went to a stop in the list."""

        to: str

    class Entered(Message):
        """The user goes to the numbers of the step."""

    _steps: tuple[StepLine, ...] = ()
    _place = 0
    _pointed: int | None = None
    _details: Mapping[str, str] = {}

    def show_scene(self, scene: Scene) -> None:
        """Show the stops, with the cursor on the current one.

        The numbers that they have beside stand in place of formulas and shapes, and take the room that they need.
        """
        session, stop, numbers = scene.session, scene.position.stop, details(scene.session)
        self.border_title = PANES["steps"] + (NUMBERS[session.overlay.kind] if numbers else "")
        program = session.trace.program
        here, self._pointed = reader(program, stop) if stop in program.weights else stop, None
        lines = step_lines(program, tuple(session.stops), _layer(program, here))
        if lines is not self._steps or numbers != self._details:
            self._steps, self._details = lines, numbers
            self._place = min(self._place, len(lines) - 1)
            self.show(len(lines), self._drawn)
        place = next((i for i, line in enumerate(lines) if line.stop == here and not line.heading), None)
        if place is not None:
            self.cursor = self._place = place

    def on_click(self, event: Click) -> None:
        """Remember the line, which LineList moves to: a heading that is clicked is not passed."""
        place = event.get_content_offset(self)
        cell = self.cell_at(place) if place is not None else None
        self._pointed = cell[0] if cell is not None else None

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
        """The stop that a line leads to; by an arrow from the line beside it, a heading is passed."""
        lines, step = self._steps, index - self._place
        if index == self._pointed:
            return lines[index].stop
        if step == 1:
            return lines[index].first or lines[index].stop
        while step == -1 and index > 0 and lines[index].is_open:
            index -= 1
        return lines[self._place if step == -1 and lines[index].is_open else index].stop

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


@by_program
def step_lines(program: Program, stops: tuple[str, ...], current: str) -> tuple[StepLine, ...]:
    """Lines for all stops. Of a stack (`encoder.0`) layers but the current one are closed; all else is always open."""
    lines: list[StepLine] = []
    for layer, members in groupby(stops, lambda stop: _layer(program, stop)):
        in_layer = list(members)
        if not layer.rpartition(".")[2].isdigit():
            for stop in in_layer:
                label = step_text(stop).label
                if stop.startswith("decoder."):  # outside the layers one of the decoder alone says so
                    label = f"Decoder {label[:1].lower()}{label[1:]}"
                shape = shape_text(program.step(stop).shape) if stop in program.by_name else ""
                lines.append(StepLine(stop, label, shape))
            continue
        closed = layer != current
        lines.append(StepLine(in_layer[-1], group_title(layer), heading=True, closed=closed, first=in_layer[0]))
        for sublayer, group in groupby(() if closed else in_layer, lambda stop: program.step(stop).sublayer):
            inside = list(group)
            lines.append(StepLine(inside[-1], group_title(sublayer), depth=1, heading=True, first=inside[0]))
            for stop in inside:
                op, words = program.step(stop).op, step_text(stop)
                short = "" if isinstance(op, Parameter) else words.short  # what is given has no formula of the guide
                lines.append(StepLine(stop, words.title, short or op.formula, depth=2))
    return tuple(lines)


def _layer(program: Program, stop: str) -> str:
    if stop in program.by_name:
        return program.step(stop).layer
    parts = stop.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0] * (len(parts) > 1)
