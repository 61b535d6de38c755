"""The inside of a cell, on a screen of its own; its operands can be followed, one into the next."""

from __future__ import annotations

from textwrap import wrap

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.engine.explanation import Index, Operand
from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient
from tui_transformer.explorer.main.inside_drawing import Line, Paint, lines_of
from tui_transformer.explorer.main.panes.lines import about
from tui_transformer.explorer.shell.actions.main import INSIDE
from tui_transformer.explorer.shell.base import ExplorerScreen, Port
from tui_transformer.explorer.shell.keymap import first_key, key_line
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.labels import inks_of
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass, replace
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.views.inside import inside_of
from tui_transformer.views.inside.parts import Inside
from tui_transformer.views.step_view import Place, index_of, place_of

KIND = "inside"

BAR = frozenset("▏▎▍▌▋▊▉█░▒▓━╸╺")
"""Characters of bars, which turned round would say something else."""


@dataclass(frozen=True)
class Spot:
    """Where one looks.

    Attributes:
        name: The step or weight.
        index: Its cell.
        gradient: Whether it is the gradient that is looked into.
    """

    name: str
    index: Index
    gradient: bool = False

    @classmethod
    def at(cls, session: Session, name: str, place: Place, *, gradient: bool = False) -> Spot:
        """The cell that a view shows at a place, or the nearest that the step has."""
        axes = session.trace.program.axes(name)
        index = tuple(min(i, axis.size - 1) for i, axis in zip(index_of(axes, place), axes, strict=True))
        return cls(name, index, gradient and name in session.gradients.values)

    def place(self, session: Session) -> Place:
        """The place in the view of the step."""
        return place_of(session.trace.program.axes(self.name), self.index)


class InsideLines(LineList):
    """Lines whose colours say something: under the cursor they stay."""

    def under_cursor(self, segments: list[Segment], style: Style) -> list[Segment]:
        """The line on the cursor's ground, where it has none of its own; without colours, turned round up to a bar."""
        if style.reverse:
            turned = [part if BAR.intersection(part.text) else _with(part, style) for part in segments]
            rest = self.size.width - sum(part.cell_length for part in turned)
            return [*turned, Segment(" " * rest, self.ink())]
        ground = Style(bgcolor=style.bgcolor, bold=True)
        return [part if part.style and part.style.bgcolor else _with(part, ground) for part in segments]


def _with(segment: Segment, style: Style) -> Segment:
    return Segment(segment.text, (segment.style or Style()) + style)


class InsideScreen(ExplorerScreen[Spot]):
    """The operation of a cell, drawn large. It gives the cell that it is left at.

    Attributes:
        spots: The cells that were followed, the current one last.
        inside: What is drawn; None until it is there.
    """

    ACTIONS = INSIDE
    HELP_TOPIC = "inside"
    DEFAULT_CSS = """
    InsideScreen {
        layout: vertical;
        background: $background;
        & > .ink--quiet { color: $foreground 65%; }
        #inside { height: 1fr; width: 1fr; padding: 0 1; border: round $accent; border-title-color: $accent; }
        #inside { border-title-style: bold; border-subtitle-color: $foreground 70%; background: $background; }
        #inside:focus > .line-list--cursor { background: $accent 25%; color: $foreground; }
        #inside:nocolor > .line-list--cursor { background: $background; }
        #inside-keys { height: 1; width: 1fr; background: $surface; }
    }
    """

    def __init__(self, port: Port, spot: Spot) -> None:
        super().__init__()
        self.spots = [spot]
        self.inside: Inside | None = None
        self._port, self._list = port, InsideLines(id="inside")
        self._lines: list[Line] = []
        self._requests = Requests(
            self, port.worker, self._show_border, lambda: self.session.model.backend.device == "cpu"
        )

    @property
    def session(self) -> Session:
        return self._port.session

    @property
    def spot(self) -> Spot:
        return self.spots[-1]

    def compose(self) -> ComposeResult:
        yield self._list
        yield Static(id="inside-keys", markup=False)

    def on_mount(self) -> None:
        self._list.focus()
        self._look()
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw(keep=True))

    def _look(self) -> None:
        spot, session, trace = self.spot, self.session, self.session.trace
        self._show_border()

        def look(_: Task) -> Inside:
            explained = None
            if spot.gradient:
                explained = explain_gradient(trace, session.gradients, session.loss_targets, spot.name, spot.index)
            return inside_of(trace, spot.name, spot.index, session.labels, explained)

        def show(inside: Inside) -> None:
            self.inside = inside
            self._draw(keep=False)

        cost = trace.pending((spot.name,)) if spot.name in trace.program.by_name else 0
        self._requests.ask(KIND, look, show, cost)

    def _draw(self, *, keep: bool) -> None:
        if self.inside is None:
            return
        page = Style(bgcolor=self.rich_style.bgcolor)
        paint = Paint(inks_of(self), Surface.of(self.app), page, max(self.size.width - 5, 20))
        lines, at, led = self._list, self._list.cursor, self._line().target
        self._lines = lines_of(self.inside, paint)
        for part in about(self.session, self.spot.name, first_key(self.app, "tour")).split("\n"):
            wrapped = wrap(part, max(min(paint.width - 1, 100), 10))  # longer lines are hard to read
            self._lines += [Line(Text(line, paint.inks.plain)) for line in ("", *wrapped)]
        lines.show(len(self._lines), lambda index: self._lines[index].text)
        leading = [place for place, line in enumerate(self._lines) if line.target is not None]
        own = (place for place in leading if self._lines[place].marked)
        if keep and led is not None:  # in another width it is another line
            at = next((place for place in leading if self._lines[place].target == led), at)
        lines.cursor = at if keep and at is not None else next(own, leading[0] if leading else 0)
        if not keep:
            lines.scroll_home(animate=False)
            lines.scroll_to_cursor()
        self._show_border()

    def on_resize(self) -> None:
        self._draw(keep=True)

    @on(LineList.Moved)
    def _show_border(self) -> None:
        if not self.is_mounted:
            return
        spot = self.spot
        title = f"{'∂loss/∂ ' if spot.gradient else ''}{step_text(spot.name).label} · {spot.name}"
        depth = f" · {len(self.spots) - 1} followed" if len(self.spots) > 1 else ""
        self._list.border_title = Content(visible(f"Look inside · {title}{depth}"))
        line = self._line()
        leads = " · ".join(
            f"{first_key(self.app, meaning)}: {target.name}[{', '.join(map(str, target.index))}]"
            for meaning, target in (("cursor.choose", line.target), ("second", line.second))
            if target is not None
        )
        self._list.border_subtitle = Content(visible(self._requests.doing or leads))
        named = [action for action in INSIDE if action.id != "second" or line.second is not None]
        self.query_one("#inside-keys", Static).update(key_line(named, self.app, self.size.width), layout=False)

    def _line(self) -> Line:
        at = self._list.cursor
        return self._lines[at] if at is not None and at < len(self._lines) else Line(Text())

    # What keys do

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        self._follow(self._line().target)

    def action_second(self) -> None:
        self._follow(self._line().second)

    def _follow(self, operand: Operand | None) -> None:
        if operand is not None:
            name = operand.name.removeprefix(GRADIENT)
            self.spots.append(Spot(name, operand.index, name != operand.name))
            self._look()

    def action_cell(self, by: int) -> None:
        self._move(-1, by)

    def action_head(self, by: int) -> None:
        self._move(-3, by)

    def _move(self, along: int, by: int) -> None:
        """Look so many cells further along an axis, counted from the last, where there is such an axis."""
        axes, index = self.session.trace.program.axes(self.spot.name), list(self.spot.index)
        if len(axes) + along >= 0:
            index[along] = max(0, min(index[along] + by, axes[along].size - 1))
            self._replace(replace(self.spot, index=tuple(index)))

    def action_step(self, direction: int) -> None:
        stops = [stop for stop in self.session.stops if stop in self.session.trace.program.by_name]
        place = stops.index(self.spot.name) + direction if self.spot.name in stops else 0
        if 0 <= place < len(stops):
            there = self.spot.place(self.session)
            self._replace(Spot.at(self.session, stops[place], there, gradient=self.spot.gradient))

    def _replace(self, spot: Spot) -> None:
        if spot != self.spot:
            self.spots[-1] = spot
            self._look()

    def action_back(self) -> None:
        """Back to the cell that this one was followed from; from the first, out."""
        if self._requests.cancel_all():
            return
        if len(self.spots) == 1:
            self.action_leave()
            return
        self.spots.pop()
        self._look()

    def action_leave(self) -> None:
        self._port.worker.cancel(KIND)
        self.dismiss(self.spot)
