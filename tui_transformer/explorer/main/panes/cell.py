"""How the cell under the cursor was made, term by term; a term can be followed to the cell it was read from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui_transformer.engine.explanation import Operand
from tui_transformer.explorer.main.panes.cell_lines import CellLines, Inks
from tui_transformer.explorer.main.panes.lines import about, tour_key
from tui_transformer.explorer.shell.actions.main import CELL
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.pane_fit import ABOUT, CELL_TITLE
from tui_transformer.session.scene import Scene

LEAST_ABOVE = 4
"""Lines of the working that are left above the equation where that is kept in view."""

FEW_TERMS = 4
"""Terms of a long sum that are brought into view below what they are."""


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

    @dataclass
    class Followed(Message):
        """The user follows a term to the cell that it was read from."""

        operand: Operand

    _working: CellLines | None = None
    _equation = range(0)
    _about = ""
    _now: tuple[object, ...] = ()

    def show_scene(self, scene: Scene) -> None:
        """Show how the cell was made, and how it was set if it was; else what the stop is."""
        session, step, before = scene.session, scene.step, self._working
        said = about(session, scene.position.stop, tour_key(scene, self.app))
        if step is None or step.working is None:
            if before is not None or said != self._about:
                self._working, self._about, self._now = None, said, ()
                self._redraw(None)
            return
        working, by_size = step.working, scene.view.by_size
        now = (working, said, step.near, step.values, step.edited, by_size)
        if now != self._now:
            self._now, self._about = now, said
            self._working = CellLines(
                working,
                session.trace.program,
                session.labels,
                _inks(self),
                by_size,
                step.values,
                step.edited,
                step.near,
            )
            same = before is not None and before.explanation.name == working.name
            self._redraw(self.cursor if same else None)

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
        equation, height = self._equation, super().viewport.height
        below = self._working is not None and equation.stop > self.scroll_offset.y + height
        has_room = height >= len(equation) + 1 + LEAST_ABOVE
        return range(equation.start - 1, equation.stop) if below and has_room else range(0)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget; the last ones are the equation, where that lies further down."""
        foot, above = self._foot, self.viewport.height
        if not above <= y < above + len(foot):  # before a new size is laid out, lines below the pane are asked for
            return super().render_line(y)
        hidden = foot.start - above - self.scroll_offset.y
        line = foot[y - above]
        if line == foot.start:
            more = f"… {hidden} more line{'s' * (hidden > 1)}"
            return self.strip_of(Text(more, self.get_component_rich_style("cell--quiet")))
        return self.strip_of(self.line_at(line))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines in the styles of now: the theme may have changed since there was something else to show."""
        if self._working is not None and self._working.inks != (inks := _inks(self)):
            self._working = replace(self._working, inks=inks)
        return super().render_lines(crop)

    def _redraw(self, cursor: int | None) -> None:
        working = self._working
        title = ABOUT if working is None and self._about else CELL_TITLE
        if self.border_title != title:
            self.border_title = title
        width = max(self.size.width - 1, 1)
        folded = [Text(line) for part in self._about.split("\n") for line in (*wrap(part, width), "")][:-1]
        if working is None:
            self.show(len(folded), lambda index: folded[index])
            return
        filled = [i for i in working.equation if working.line(i, width).text]  # a short one takes the first line alone
        self._equation = range(filled[0], filled[-1] + 1) if filled else range(0)
        below = [Text(""), *folded] if folded else []
        above = len(working)

        def line(index: int) -> Text:
            lines = self._working or working
            return lines.line(index, width).text if index < above else below[index - above]

        self.show(above + len(below), line)
        first = working.first_target()
        self.cursor = first if cursor is None else min(cursor, above - 1)
        height = super().viewport.height
        if self.cursor == first and height > 0:
            top = _top(first, working, self._equation, height)
            if top != self.scroll_offset.y:
                self.scroll_to(y=top, animate=False, force=True)

    def action_follow_second(self) -> None:
        """Go to the second factor of the product under the cursor."""
        self._follow(self.cursor, second=True)

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        self._follow(event.index)

    def _follow(self, index: int | None, *, second: bool = False) -> None:
        working = self._working
        if working is not None and index is not None and index < len(working):
            line = working.line(index, 40)
            if (operand := line.second if second else line.target) is not None:
                self.post_message(self.Followed(operand))


def _inks(pane: CellPane) -> Inks:
    names = ("plain", "quiet", "accent")
    return Inks(*(pane.get_component_rich_style(f"cell--{name}", partial=True) for name in names))


def _top(first: int, working: CellLines, equation: range, height: int) -> int:
    """The line at the top with which all terms of a sum are in view, or a few of many."""
    terms, room, last = working.terms, height, first + 1
    whole, is_term = equation.stop <= height, first in terms
    if not whole and height >= len(equation) + 1 + LEAST_ABOVE:
        room -= len(equation) + 1
    if is_term and not whole and not working.edited:  # of a value that was set: how it was set stands above
        last = terms.stop if len(terms) <= room else terms.start + 1 + FEW_TERMS
    return max(min(last - room, terms.start if is_term else first), 0)
