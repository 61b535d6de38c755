"""The inside of a cell, on a screen of its own; its operands can be followed, one into the next."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.engine.explanation import Operand
from tui_transformer.explorer.main.inside.drawing import lines_of
from tui_transformer.explorer.main.inside.paint import Drawn, Paint
from tui_transformer.explorer.main.inside.spot import Spot
from tui_transformer.explorer.main.panes.texts import about
from tui_transformer.explorer.shell.actions.main import INSIDE
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.key_line import key_line
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.widgets.inks import INK_CLASSES, inks_of
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.guide.texts import step_text
from tui_transformer.text.display import visible
from tui_transformer.views.inside.parts import Inside

KIND = "inside"

BAR = frozenset("▏▎▍▌▋▊▉█░▒▓")
"""Characters of bars, which turned round would say something else."""

READABLE = 100
"""Columns of words at most."""


class InsideLines(LineList):
    """Lines whose colours say something: under the cursor they stay."""

    def under_cursor(self, segments: list[Segment], style: Style) -> list[Segment]:
        """The line on the cursor's ground, where it has none of its own; without colours, turned round up to a bar."""
        if style.reverse:
            turned = [part if BAR.intersection(part.text) else _with(part, style) for part in segments]
            rest = self.size.width - sum(part.cell_length for part in turned)
            return [*turned, Segment(" " * rest, self.ink())]
        ground = Style(bgcolor=style.bgcolor, bold=True)
        return [_with(part, ground) if _is_bare(part) else part for part in segments]


def _with(segment: Segment, style: Style) -> Segment:
    """A part of a line in another style over its own."""
    return Segment(segment.text, (segment.style or Style()) + style)


def _is_bare(segment: Segment) -> bool:
    """Whether a part of a line has no ground of its own."""
    return segment.style is None or segment.style.bgcolor is None


class InsideScreen(ExplorerScreen[Spot]):
    """The operation of a cell, drawn large. It gives the cell that it is left at.

    Attributes:
        spots: The cells that were followed, the current one last.
        inside: What is drawn; None until it is there.
    """

    ACTIONS = INSIDE
    HELP_TOPIC = "inside"
    COMPONENT_CLASSES: ClassVar[set[str]] = INK_CLASSES
    DEFAULT_CSS = """
    InsideScreen {
        layout: vertical;
        background: $background;
        & > .ink--plain { color: $foreground; }
        & > .ink--quiet { color: $foreground 65%; }
        & > .ink--accent { color: $accent; text-style: bold; }
        & > .ink--marked { color: $background; background: $accent; }
        & > .ink--right { color: $success; }
        & > .ink--wrong { color: $error; }
        #inside { height: 1fr; width: 1fr; padding: 0 1; border: round $accent; border-title-color: $accent; }
        #inside { border-title-style: bold; border-subtitle-color: $foreground 70%; background: $background; }
        #inside:focus > .line-list--cursor { background: $accent 25%; color: $foreground; }
        #inside:nocolor > .line-list--cursor { background: $background; }
        #inside-keys { height: 1; width: 1fr; background: $surface; }
    }
    """

    def __init__(self, port: Port, spot: Spot) -> None:
        """Look into a cell of what is explored."""
        super().__init__()
        self.spots = [spot]
        self.inside: Inside | None = None
        self._port = port
        self._lines: list[Drawn] = []
        self._requests = Requests(
            self, port.worker, self._show_border, lambda: self.session.model.backend.device == "cpu"
        )

    @property
    def session(self) -> Session:
        """The session that is explored."""
        return self._port.session

    @property
    def spot(self) -> Spot:
        """The cell that is looked into."""
        return self.spots[-1]

    def compose(self) -> ComposeResult:
        """The drawing, and the keys."""
        yield InsideLines(id="inside")
        yield Static(id="inside-keys", markup=False)

    def on_mount(self) -> None:
        """Look."""
        self._list.focus()
        self._look()

    @property
    def _list(self) -> LineList:
        return self.query_one(LineList)

    def _look(self) -> None:
        spot, session = self.spot, self.session
        self._show_border()
        self._requests.ask(KIND, spot.cost(session), lambda _: spot.look(session), self._show)

    def _show(self, inside: Inside) -> None:
        self.inside = inside
        self._draw(keep=False)

    def _draw(self, *, keep: bool) -> None:
        if self.inside is None:
            return
        page = Style(bgcolor=self.rich_style.bgcolor)
        paint = Paint(inks_of(self), Surface.of(self.app), page, max(self.size.width - 5, 20))
        self._lines = [*lines_of(self.inside, paint), *self._about(paint)]
        lines, at = self._list, self._list.cursor
        lines.show(len(self._lines), lambda index: self._lines[index].text)
        lines.cursor = at if keep and at is not None else self._first
        if not keep:
            lines.scroll_home(animate=False)
            lines.scroll_to_cursor()
        self._show_border()

    def _about(self, paint: Paint) -> Iterator[Drawn]:
        """The step in words: what it is, why it is there, and what to look for."""
        for part in about(self.session, self.spot.name, first_key(self.app, "tour")).split("\n"):
            yield Drawn(Text("", paint.inks.plain))
            for line in wrap(part, max(min(paint.width - 1, READABLE), 10)):
                yield Drawn(Text(line, paint.inks.plain))

    @property
    def _first(self) -> int:
        """The line of the cell itself; else the first that leads anywhere."""
        leading = [place for place, line in enumerate(self._lines) if line.target is not None]
        return next((place for place in leading if self._lines[place].marked), leading[0] if leading else 0)

    def on_resize(self) -> None:
        """Draw in the columns that there are."""
        self._draw(keep=True)

    def _show_border(self) -> None:
        if not self.is_mounted:
            return
        spot = self.spot
        title = f"{'∂loss/∂ ' if spot.gradient else ''}{step_text(spot.name).label} · {spot.name}"
        depth = f" · {len(self.spots) - 1} followed" if len(self.spots) > 1 else ""
        self._list.border_title = Content(visible(f"Look inside · {title}{depth}"))
        self._list.border_subtitle = Content(visible(self._requests.doing or self._leads()))
        named = [action for action in INSIDE if action.id != "second" or self._line().second is not None]
        self.query_one("#inside-keys", Static).update(key_line(named, self.app, self.size.width), layout=False)

    def _leads(self) -> str:
        """Where the line under the cursor leads to."""
        targets = (self._line().target, self._line().second)
        keys = [first_key(self.app, meaning) for meaning in ("cursor.choose", "second")]
        return " · ".join(
            f"{key}: {target.name}[{', '.join(map(str, target.index))}]"
            for key, target in zip(keys, targets, strict=True)
            if target is not None
        )

    def _line(self) -> Drawn:
        at = self._list.cursor
        return self._lines[at] if at is not None and at < len(self._lines) else Drawn(Text())

    # What keys do

    @on(LineList.Moved)
    def _moved(self) -> None:
        self._show_border()

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        self._follow(self._line().target)

    def action_second(self) -> None:
        """Follow the second factor."""
        self._follow(self._line().second)

    def _follow(self, operand: Operand | None) -> None:
        if operand is not None:
            self.spots.append(Spot.of(operand))
            self._look()

    def action_cell(self, by: int) -> None:
        """The cell beside this one."""
        self._replace(self.spot.moved(self.session, -1, by))

    def action_head(self, by: int) -> None:
        """The same cell of the next head."""
        self._replace(self.spot.moved(self.session, -3, by))

    def action_step(self, direction: int) -> None:
        """The same cell of the next step."""
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
        """Out, to the cell that is looked into."""
        self._port.worker.cancel(KIND)
        self.dismiss(self.spot)
