"""How the cell under the cursor was made, term by term; a term can be followed to the cell it was read from."""

from __future__ import annotations

from textwrap import wrap
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_transformer.engine.edits import how_set
from tui_transformer.engine.explanation import Explanation, Operand, Value
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.cell_lines import CellLines, Inks
from tui_transformer.explorer.main.panes.texts import about
from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.shell.actions.main import CELL
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.state.near import Near
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.views.step_view import Labels

LEAST_ABOVE = 4
"""Lines of the working that are left above the equation where that is kept in view."""

FEW_TERMS = 4
"""Terms of a long sum that are brought into view below what they are."""

CELL_TITLE, ABOUT = "Cell", "What it is"
"""Titles of the border: where there is a cell, and where there is none."""


class CellPane(LineList):
    """The working of one cell, and below it what the step is, why it is there and what to look for."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CELL)
    mixed_colors = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"cell--plain", "cell--quiet", "cell--accent"}
    DEFAULT_CSS = """
    CellPane {
        overflow-y: scroll;  /* a bar that came and went would lay out the whole screen at every step */
        & > .cell--plain { color: $foreground; }
        & > .cell--quiet { color: $foreground 60%; }
        & > .cell--accent { color: $accent; text-style: bold; }
    }
    """

    class Followed(Message):
        """The user follows a term to the cell that it was read from."""

        def __init__(self, operand: Operand) -> None:
            super().__init__()
            self.operand = operand

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__(id=id)
        self._working: CellLines | None = None
        self._by_size = False
        self._equation = range(0)
        self._shown: tuple[Explanation, Program, Labels] | None = None
        self._values: tuple[Value, ...] = ()
        self._edited = ""
        self._near: tuple[Near, ...] | None = None
        self._about = ""

    def show_scene(self, session: Session, scene: Scene | None) -> None:
        """Show how the cell was made, and how it was set if it was."""
        if scene is None:
            self.tell("")
        elif (working := scene.working) is not None:
            self._about = about(session, scene.view.name, first_key(self.app, "tour"))
            edited = how_set(session.trace.edits, working.name, working.index)
            self._near = scene.near
            self.show_working(working, session.trace.program, session.labels, scene.values, edited)

    def show_working(
        self,
        explanation: Explanation,
        program: Program,
        labels: Labels,
        values: tuple[Value, ...] = (),
        edited: str = "",
    ) -> None:
        """Show the working of a cell, the numbers that are beside it, and how it was set if it was."""
        same = self._shown is not None and self._shown[0].name == explanation.name
        self._shown, self._values, self._edited = (explanation, program, labels), values, edited
        self._redraw(self.cursor if same else None)

    def tell(self, words: str) -> None:
        """Show what a stop is that has no cells."""
        self._working = self._shown = None
        self._about = words
        self._redraw(None)

    def on_resize(self) -> None:
        """Fold the words for the new width."""
        self._redraw(self.cursor)

    @property
    def viewport(self) -> Size:
        """Columns and lines that are left for the working."""
        return super().viewport - (0, len(self._foot))

    @property
    def _foot(self) -> range:
        """The lines that stand at the lower end instead of what is there: the equation, where it lies further down."""
        equation = range(0) if self._working is None else self._equation
        below = equation.stop > self.scroll_offset.y + super().viewport.height
        room = _has_room(super().viewport.height, equation)
        return range(equation.start - 1, equation.stop) if below and room else range(0)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget; the last ones are the equation, where that lies further down."""
        foot, above = self._foot, self.viewport.height
        if not foot or y < above:
            return super().render_line(y)
        left_out = foot.start - above - self.scroll_offset.y
        line = foot[y - above]
        if line == foot.start:
            more = f"… {left_out} more line{'s' * (left_out > 1)}"
            return self.strip_of(Text(more, self.get_component_rich_style("cell--quiet")))
        return self.strip_of(self.line_at(line))

    def action_order(self) -> None:
        """Terms in their order, or the largest first."""
        self._by_size = not self._by_size
        self._redraw(self.cursor)

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        if self.is_attached:
            self._redraw(self.cursor)

    def _redraw(self, cursor: int | None) -> None:
        title = ABOUT if self._shown is None and self._about else CELL_TITLE
        if self.border_title != title:
            self.border_title = title
        width = max(self.size.width - 1, 1)
        folded = [Text(line) for part in self._about.split("\n") for line in (*wrap(part, width), "")][:-1]
        if self._shown is None:
            self.show(len(folded), lambda index: folded[index])
            return
        names = ("plain", "quiet", "accent")
        inks = Inks(*(self.get_component_rich_style(f"cell--{name}", partial=True) for name in names))
        lines = self._working = CellLines(*self._shown, inks, self._by_size, self._values, self._edited, self._near)
        self._equation = _written(lines, width)
        below = [Text(""), *folded] if folded else []

        def line(index: int) -> Text:
            return lines.line(index, width).text if index < len(lines) else below[index - len(lines)]

        self.show(len(lines) + len(below), line)
        first = lines.first_target()
        self.cursor = first if cursor is None else min(cursor, len(lines) - 1)
        if self.cursor == first:
            height = super().viewport.height
            top = _top(first, lines.terms, self._equation, height, set_by_hand=bool(self._edited))
            if top is not None and top != self.scroll_offset.y:
                self.scroll_to(y=top, animate=False, force=True)

    def action_follow_second(self) -> None:
        """Go to the second factor of the product under the cursor."""
        if self._working is not None and self.cursor is not None and self.cursor < len(self._working):
            _follow(self, self._working.line(self.cursor, 40).second)

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        if self._working is not None and event.index < len(self._working):
            _follow(self, self._working.line(event.index, 40).target)


def _follow(pane: CellPane, target: Operand | None) -> None:
    if target is not None:
        pane.post_message(pane.Followed(target))


def _has_room(height: int, equation: range) -> bool:
    """Whether the equation can be kept in view with some lines above it."""
    return height >= len(equation) + 1 + LEAST_ABOVE


def _top(first: int, terms: range, equation: range, height: int, *, set_by_hand: bool) -> int | None:
    """The line at the top with which all terms of a sum are in view, or a few of many; None where there is no room.

    Of a value that was set the first line is enough: how it was set stands above.
    """
    whole = equation.stop <= height
    room = height if whole or not _has_room(height, equation) else height - len(equation) - 1
    last = first + 1
    if first in terms and not whole and not set_by_hand:
        last = terms.stop if len(terms) <= room else terms.start + 1 + FEW_TERMS
    return max(min(last - room, terms.start if first in terms else first), 0) if room > 0 else None


def _written(lines: CellLines, width: int) -> range:
    """The lines of the equation that hold something: a short one takes the first alone."""
    equation = lines.equation
    return range(equation.start, max((i + 1 for i in equation if lines.line(i, width).text), default=equation.start))
