"""How the cell under the cursor was made, term by term; a term can be followed to the cell it was read from.

Its lines are made one by one: a sum of thousands of terms costs what is on the screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from textwrap import wrap
from typing import ClassVar, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from textual import on
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui_transformer.engine.explanation import Explanation, Factor, Operand, Sum, Value
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.lines import DIGITS, about, near_words, tour_key
from tui_transformer.explorer.shell.actions.main import CELL
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.widgets.line_list import LineList, Parts
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.nearest_tokens import Near
from tui_transformer.session.pane_fit import ABOUT, CELL_TITLE
from tui_transformer.session.scene import Scene
from tui_transformer.text.display import visible
from tui_transformer.views.inside.cell import short_name
from tui_transformer.views.step_view import Labels, placed

COLUMN = 8
"""Cells of a number in a table of terms."""

EQUATION_LINES = 2
"""Lines of an equation that does not fit every pane."""

LEAST_ABOVE = 4
"""Lines of the working that are left above the equation where that is kept in view."""

BOLD = Style(bold=True)

_wrapped = lru_cache(1 << 8)(wrap)


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
            program, labels = session.trace.program, session.labels
            self._working = CellLines(
                working, program, labels, _inks(self), by_size, step.values, step.edited, step.near
            )
            same = before is not None and before.explanation.name == working.name
            self._redraw(self.cursor if same else None)

    def on_resize(self) -> None:
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
        seen = self.seen
        above = seen.room.height
        foot = self._foot if y >= above else range(0)
        if not above <= y < above + len(foot):  # before a new size is laid out, lines below the pane are asked for
            return super().render_line(y)
        hidden = foot.start - above - seen.scroll.y
        line = foot[y - above]
        if line == foot.start:
            more = f"… {hidden} more line{'s' * (hidden > 1)}"
            return self.strip_of(((more, self.get_component_rich_style("cell--quiet")),))
        return self.strip_of(self.line_at(line))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines in the styles of now: the theme may have changed since there was something else to show."""
        if self._working is not None and self._working.inks != (inks := _inks(self)):
            self._working = replace(self._working, inks=inks)
        return super().render_lines(crop)

    def _redraw(self, cursor: int | None) -> None:
        working = self._working
        self.border_title = ABOUT if working is None and self._about else CELL_TITLE
        width = max(self.size.width - 1, 1)
        none = Style.null()
        folded = [((line, none),) for part in self._about.split("\n") for line in (*_wrapped(part, width), "")][:-1]
        if working is None:
            self.show(len(folded), lambda index: folded[index])
            return
        filled = [i for i in working.equation if working.line(i, width).parts[0][0]]  # a short one has one line
        self._equation = range(filled[0], filled[-1] + 1) if filled else range(0)
        below = [(), *folded] if folded else []
        above = working.size

        def line(index: int) -> Parts:
            lines = self._working or working
            return lines.line(index, width).parts if index < above else below[index - above]

        self.show(above + len(below), line)
        first = working.first_target()
        self.cursor = first if cursor is None else min(cursor, above - 1)
        height = super().viewport.height
        if self.cursor == first and height > 0:
            top = _top(first, working, self._equation, height)
            if top != self.scroll_offset.y:
                self.scroll_to(y=top, animate=False, force=True)

    def action_follow_second(self) -> None:
        self._follow(self.cursor, second=True)

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        self._follow(event.index)

    def _follow(self, index: int | None, *, second: bool = False) -> None:
        working = self._working
        if working is not None and index is not None and index < working.size:
            line = working.line(index, 40)
            if (operand := line.second if second else line.target) is not None:
                self.post_message(self.Followed(operand()))


def _inks(pane: CellPane) -> Inks:
    return Inks(*(pane.ink(f"cell--{name}", partial=True) for name in ("plain", "quiet", "accent")))


def _top(first: int, working: CellLines, equation: range, height: int) -> int:
    """The line at the top with which all terms of a sum are in view, or a few of many."""
    terms, room, last = working.terms, height, first + 1
    whole, is_term = equation.stop <= height, first in terms
    if not whole and height >= len(equation) + 1 + LEAST_ABOVE:
        room -= len(equation) + 1
    if is_term and not whole and not working.edited:  # of a value that was set: how it was set stands above
        last = terms.stop if len(terms) <= room else terms.start + 5  # a few of many, below what they are
    return max(min(last - room, terms.start if is_term else first), 0)


# The lines of the working


@dataclass(frozen=True)
class Inks:
    """The styles of the pane: quiet for names, accent for the value itself."""

    plain: Style
    quiet: Style
    accent: Style


class Line(NamedTuple):
    """A line, and what gives the cells that following it leads to."""

    parts: Parts
    target: Callable[[], Operand] | None = None
    second: Callable[[], Operand] | None = None


@dataclass(frozen=True)
class Block:
    """So many lines, made on demand from their number and the width."""

    size: int
    make: Callable[[int, int], Line]


@dataclass(eq=False)
class CellLines:
    """All lines of an explanation.

    Attributes:
        explanation: The cell.
        program: For the axes of the operands.
        labels: Words for their indices.
        inks: Styles.
        by_size: Terms of sums in order of what they add, largest first, instead of their own order.
        values: The numbers that are beside the cell.
        edited: How the cell was set; "" where it was computed.
        near: Of a row of an embedding the nearest words, empty until they are there; None of any other step.
        terms: The lines of the header of the first sum and of its terms; none where nothing is summed.
        equation: Those of the equation that the working closes with; none where there is none.
        size: How many lines there are.
    """

    explanation: Explanation
    program: Program
    labels: Labels
    inks: Inks
    by_size: bool = False
    values: tuple[Value, ...] = ()
    edited: str = ""
    near: tuple[Near, ...] | None = None
    terms: range = field(init=False, default=range(0))
    equation: range = field(init=False, default=range(0))
    size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        explanation, accent, quiet, blank = self.explanation, self.inks.accent, self.inks.quiet, Line(())
        self._blocks: list[Line | Block] = []
        self._starts = [0]  # and at last where the next one would be
        axes = self.program.axes(explanation.name.removeprefix(GRADIENT))
        for axis, i in zip(axes, explanation.index, strict=True):
            self._add(self._pair(axis.name, placed(self.labels.of(axis)(i), i)))
        note = f"  {visible(self.edited)}" if self.edited else ""
        note += "  ∂loss/∂x" if explanation.name.startswith(GRADIENT) else ""
        value = (spoken(explanation.stored, DIGITS), accent), (note, accent + quiet)
        formula = ((f"= {explanation.formula}", quiet),)
        self._add(blank, Line(value), Line(formula), *map(self._value, self.values))
        for place, near in enumerate(self.near or ((None,) if self.near is not None else ())):
            name, words = "nearest" if place == 0 or near is None else near.of, None if near is None else near.words
            self._add(Block(1, partial(self._nearest, name, words)))
        if not isinstance(explanation.items[0], Sum):
            self._add(blank)
        for item in explanation.items:
            if isinstance(item, Sum):
                self._sum(item, blank)
            else:
                self._add(self._value(item))
        if equation := explanation.equation:
            self._add(blank, Block(EQUATION_LINES if len(equation) > 32 else 1, self._equation_line))
            self.equation = range(*self._starts[-2:])
        self._add(
            blank,
            self._pair("recomputed", spoken(explanation.recomputed, 9)),
            self._pair("stored", spoken(explanation.stored, 9)),
            self._pair("difference", spoken(explanation.difference, 2)),
        )
        self.size = self._starts[-1]

    def _add(self, *blocks: Line | Block) -> None:
        for block in blocks:
            self._blocks.append(block)
            self._starts.append(self._starts[-1] + (1 if isinstance(block, Line) else block.size))

    def line(self, index: int, width: int) -> Line:
        """One line, at most `width` cells wide."""
        which = bisect_right(self._starts, index) - 1
        block = self._blocks[which]
        return block if isinstance(block, Line) else block.make(index - self._starts[which], width)

    def first_target(self) -> int:
        """The first line that can be followed; 0 where there is none."""
        return next((i for i in range(min(self.size, 200)) if self.line(i, 40).target is not None), 0)

    # The parts

    def _pair(self, name: str, value: str, note: str = "", leads: Callable[[], Operand] | None = None) -> Line:
        quiet = self.inks.quiet
        parts = _name(name, quiet), (value, quiet + self.inks.plain), (f"  {note}" if note else "", quiet)
        return Line(parts, leads)

    def _value(self, item: Value) -> Line:
        note, source = visible(item.note), item.source
        if not note and source is not None:  # the last part of its name: `masked[0, 3, 2]`; two where others end alike
            items = self.explanation.items
            others = {each.source.name for each in items if isinstance(each, Value) and each.source} - {source.name}
            last, *alike = (
                ("∂ " if name.startswith(GRADIENT) else "") + name.rpartition(".")[2] for name in (source.name, *others)
            )
            shown = short_name(source.name) if last in alike else last
            note = f"{visible(shown)}[{', '.join(map(str, source.index))}]"
        return self._pair(item.symbol, spoken(item.value, DIGITS), note, None if source is None else lambda: source)

    def _nearest(self, name: str, words: tuple[tuple[str, float], ...] | None, _: int, width: int) -> Line:
        """Words whose rows point most nearly where this one does, or where a sum of words does."""
        called, quiet = _name(visible(name), self.inks.quiet), self.inks.quiet
        return Line((called, (near_words(words, width - cell_len(called[0])), quiet + self.inks.plain)))

    def _equation_line(self, number: int, width: int) -> Line:
        """The result of the numbers above, in one line, or in as many as it takes on a narrow screen."""
        parts = _wrapped(self.explanation.equation, max(width, 1), max_lines=EQUATION_LINES, placeholder=" …")
        return Line(((parts[number] if number < len(parts) else "", self.inks.plain + BOLD),))

    @np.errstate(all="ignore")
    def _sum(self, total: Sum, blank: Line) -> None:
        inks, single = self.inks, len(total.factors) == 1
        order = np.argsort(-np.abs(total.contributions), kind="stable") if self.by_size else np.arange(len(total))
        running = np.cumsum(total.contributions[order])
        letters = ("s",) if single else ("a", "b", "c", "d")[: len(total.factors)]
        label_of = self._term_labels(total.factors[0]) if len(total) else str
        header = [*letters, total.unit if single else "product", "share" if single else "sum"]

        def term(k: int, width: int) -> Line:
            place = int(order[k])
            last = float(total.contributions[place]) / (total.total or 1.0) if single else running[k]
            values = [*(factor.values[place] for factor in total.factors), total.contributions[place], last]
            numbers = [_in_column(float(value)) for value in values]
            leads = [partial(factor.operand, place) for factor in total.factors[:2]]
            return Line(self._table_line(label_of(place), numbers, width, inks.quiet + inks.plain), *leads)

        self._add(blank, Line(((visible(total.title), inks.plain + BOLD),)))
        for letter, factor in zip(letters, total.factors, strict=True):
            name = f"{letter} = {short_name(factor.name)}{' (key ;)' if letter == 'b' else ''}"
            self._add(Line(((name, inks.quiet),)))
        self._add(Block(1, lambda _, width: Line(self._table_line("", header, width, inks.quiet))))
        self._add(Block(len(total), term))
        self.terms = self.terms or range(self._starts[-2] - 1, self._starts[-1])
        self._add(self._pair("Σ", spoken(total.total, DIGITS)))

    def _table_line(self, label: str, texts: Sequence[str], width: int, style: Style) -> Parts:
        """The columns that fit beside a label; the last ones are the most telling."""
        width = min(width, 64)  # in a longer line numbers are far from their names
        most = max((width - 4) // (COLUMN + 1), 1)
        columns = "".join([f" {text:>{COLUMN}}" for text in texts[-most:]])
        return (set_cell_size(label, max(width - len(columns), 0)), self.inks.quiet), (columns, style)

    def _term_labels(self, factor: Factor) -> Callable[[int], str]:
        """Where each term is, along the axes that the sum goes over."""
        axes, last = self.program.axes(factor.name.removeprefix(GRADIENT)), factor.place(len(factor.values) - 1)
        varying = [i for i, (first, end) in enumerate(zip(factor.place(0), last, strict=True)) if first != end]
        labels = [(i, self.labels.of(axes[i])) for i in varying or [len(axes) - 1]]

        def label(term: int) -> str:
            place = factor.place(term)
            return " ".join([words(place[i]) for i, words in labels])

        return label


def _name(name: str, style: Style) -> tuple[str, Style]:
    """A name in a column of its own, which is as wide as a long one."""
    return set_cell_size(name, max(11, cell_len(name))) + " ", style


def _in_column(value: float) -> str:
    """A value with as many of four significant digits as fit a column."""
    for digits in (4, 3, 2):
        if len(text := spoken(value, digits)) <= COLUMN:
            return text
    return spoken(value, 1)
