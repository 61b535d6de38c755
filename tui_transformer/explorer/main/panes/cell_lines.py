"""The working of a cell as lines of text, made one by one: a sum of thousands of terms costs what is on screen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from textwrap import wrap

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.explanation import Explanation, Factor, Operand, Sum, Value
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.lines import near_words, number
from tui_transformer.session.nearest_tokens import Near
from tui_transformer.text.display import visible
from tui_transformer.views.inside.cell import short_name
from tui_transformer.views.step_view import Labels, placed

COLUMN, WIDEST_TABLE = 8, 64
"""Cells of a number in a table of terms, and of a line of it: in a longer one numbers are far from their names."""


SHORTEST_LABEL = 4

AFTER_TERMS = 2
"""The block of the terms, counted from the end of those of a sum."""

SHORT_EQUATION, EQUATION_LINES = 32, 2
"""Characters of an equation that fit every pane, and the lines that a longer one has."""


def short_number(value: float) -> str:
    """A value with as many of four significant digits as fit a column."""
    return next((text for digits in (4, 3, 2) if len(text := number(value, digits)) <= COLUMN), number(value, 1))


@dataclass(frozen=True)
class Inks:
    """The styles of the pane: quiet for names, accent for the value itself."""

    plain: Style
    quiet: Style
    accent: Style


@dataclass(frozen=True)
class Line:
    """A line, and the cells that following it leads to; `marked` where it is the line of the cell itself."""

    text: Text
    target: Operand | None = None
    second: Operand | None = None
    marked: bool = False


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
    """

    explanation: Explanation
    program: Program
    labels: Labels
    inks: Inks
    by_size: bool = False
    values: tuple[Value, ...] = ()
    edited: str = ""
    near: tuple[Near, ...] | None = None
    _blocks: list[Block] = field(init=False)
    _ends: list[int] = field(init=False)
    _before_result: int = field(init=False)
    _first_terms: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        blocks = self._heading()
        for item in self.explanation.items:
            blocks += self._sum(item) if isinstance(item, Sum) else [self._value(item)]
            if self._first_terms is None and isinstance(item, Sum):
                self._first_terms = len(blocks) - AFTER_TERMS
        self._before_result = len(blocks)
        self._blocks = blocks + self._result()
        self._ends = list(accumulate(block.size for block in self._blocks))

    def __len__(self) -> int:
        return self._ends[-1]

    def line(self, index: int, width: int) -> Line:
        """One line, at most `width` cells wide."""
        which = bisect_right(self._ends, index)
        return self._blocks[which].make(index - (self._ends[which - 1] if which else 0), width)

    @property
    def equation(self) -> range:
        """The lines of the equation that the working closes with; none where there is none."""
        first = self._before_result
        return range(self._ends[first], self._ends[first + 1]) if self.explanation.equation else range(0)

    @property
    def terms(self) -> range:
        """The header of the first sum and its terms; none where nothing is summed."""
        if self._first_terms is None:
            return range(0)
        return range(self._ends[self._first_terms - 1] - 1, self._ends[self._first_terms])

    def first_target(self) -> int:
        """The first line that can be followed; 0 where there is none."""
        return next((i for i in range(min(len(self), 200)) if self.line(i, 40).target is not None), 0)

    # The parts

    def _heading(self) -> list[Block]:
        explanation = self.explanation
        axes = self._axes(explanation.name)
        where = [
            (axis.name, placed(self.labels.of(axis)(i), i)) for axis, i in zip(axes, explanation.index, strict=True)
        ]
        places = [self._pair(name, place) for name, place in where]
        value = Text(number(explanation.stored), self.inks.accent)
        if self.edited:
            value.append(f"  {visible(self.edited)}", self.inks.quiet)
        if explanation.name.startswith(GRADIENT):
            value.append("  ∂loss/∂x", self.inks.quiet)
        formula = Text(f"= {explanation.formula}", self.inks.quiet)
        values = [self._value(value) for value in self.values]
        gap = [] if isinstance(explanation.items[0], Sum) else [self._blank()]
        return [*places, self._blank(), _fixed(value), _fixed(formula), *values, *self._neighbours(), *gap]

    def _neighbours(self) -> list[Block]:
        """The words whose rows point most nearly where this one does, a line; below it those of a sum of words."""
        if self.near is None:
            return []

        def line(name: str, words: tuple[tuple[str, float], ...] | None, _number: int, width: int) -> Line:
            text = Text(set_cell_size(visible(name), max(11, cell_len(visible(name)))) + " ", self.inks.quiet)
            return Line(text.append(near_words(words, width - text.cell_len), self.inks.plain))

        first = partial(line, "nearest", self.near[0].words if self.near else None)
        return [Block(1, first), *(Block(1, partial(line, each.of, each.words)) for each in self.near[1:])]

    def _axes(self, name: str) -> Axes:
        return self.program.axes(name.removeprefix(GRADIENT))

    def _value(self, item: Value) -> Block:
        note = visible(item.note) or (self._cell_name(item.source) if item.source else "")
        return self._pair(item.symbol, number(item.value), note, item.source)

    def _cell_name(self, operand: Operand) -> str:
        """The last part of a name with the index: `masked[0, 3, 2]`; two parts where others end with the same."""
        name, items = operand.name, self.explanation.items
        others = {item.source.name for item in items if isinstance(item, Value) and item.source} - {name}
        shown = short_name(name) if _last_part(name) in map(_last_part, others) else _last_part(name)
        return f"{visible(shown)}[{', '.join(map(str, operand.index))}]"

    def _sum(self, total: Sum) -> list[Block]:
        order = np.argsort(-np.abs(total.contributions), kind="stable") if self.by_size else np.arange(len(total))
        running = np.cumsum(total.contributions[order])
        letters = ("s",) if len(total.factors) == 1 else ("a", "b", "c", "d")[: len(total.factors)]

        def term(k: int, width: int) -> Line:
            place = int(order[k])
            last = running[k] if len(total.factors) > 1 else total.contributions[place] / (total.total or 1.0)
            values = [*(factor.values[place] for factor in total.factors), total.contributions[place], last]
            label = self._term_label(total.factors[0], place)
            second = total.factors[1].operand(place) if len(total.factors) > 1 else None
            numbers = [short_number(float(value)) for value in values]
            return Line(
                self._table_line(label, numbers, width, self.inks.plain), total.factors[0].operand(place), second
            )

        header = [*letters, total.unit if len(letters) == 1 else "product", "sum" if len(letters) > 1 else "share"]
        names = [
            f"{letter} = {short_name(factor.name)}{' (key ;)' if letter == 'b' else ''}"
            for letter, factor in zip(letters, total.factors, strict=True)
        ]
        return [
            self._blank(),
            _fixed(Text(visible(total.title), self.inks.plain + Style(bold=True))),
            *(_fixed(Text(name, self.inks.quiet)) for name in names),
            Block(1, lambda _, width: Line(self._table_line("", header, width, self.inks.quiet))),
            Block(len(total), term),
            self._pair("Σ", number(total.total)),
        ]

    def _result(self) -> list[Block]:
        explanation = self.explanation
        difference = spoken(explanation.difference, 2)
        return [
            *self._equation(),
            self._blank(),
            self._pair("recomputed", number(explanation.recomputed, 9)),
            self._pair("stored", number(explanation.stored, 9)),
            self._pair("difference", difference),
        ]

    def _equation(self) -> list[Block]:
        """The result of the numbers above, in one line, or in as many as it takes on a narrow screen."""
        equation = self.explanation.equation
        if not equation:
            return []

        def make(number: int, width: int) -> Line:
            parts = wrap(equation, max(width, 1), max_lines=EQUATION_LINES, placeholder=" …")
            return Line(Text(parts[number] if number < len(parts) else "", self.inks.plain + Style(bold=True)))

        return [self._blank(), Block(EQUATION_LINES if len(equation) > SHORT_EQUATION else 1, make)]

    # Lines

    def _blank(self) -> Block:
        return _fixed(Text("", self.inks.plain))

    def _pair(self, name: str, value: str, note: str = "", target: Operand | None = None) -> Block:
        text = Text(set_cell_size(name, max(11, cell_len(name))) + " ", self.inks.quiet)
        text.append(value, self.inks.plain)
        if note:
            text.append("  " + note, self.inks.quiet)
        return _fixed(text, target)

    def _table_line(self, label: str, texts: Sequence[str], width: int, style: Style) -> Text:
        """The columns that fit beside a label; the last ones are the most telling."""
        width = min(width, WIDEST_TABLE)
        most = max((width - SHORTEST_LABEL) // (COLUMN + 1), 1)
        columns = "".join(f" {text:>{max(COLUMN, cell_len(text))}}" for text in texts[-most:])
        text = Text(set_cell_size(label, max(width - cell_len(columns), 0)), self.inks.quiet)
        return text.append(columns, style)

    def _term_label(self, factor: Factor, term: int) -> str:
        """Where the term is, along the axes that the sum goes over."""
        axes, last = self._axes(factor.name), factor.place(len(factor.values) - 1)
        varying = [i for i, (first, end) in enumerate(zip(factor.place(0), last, strict=True)) if first != end]
        place = factor.place(term)
        return " ".join(self.labels.of(axes[i])(place[i]) for i in varying or [len(axes) - 1])


def _last_part(name: str) -> str:
    """The last part of a dotted name: `masked`, `∂ masked`."""
    return ("∂ " if name.startswith(GRADIENT) else "") + name.rpartition(".")[2]


def _fixed(text: Text, target: Operand | None = None) -> Block:
    return Block(1, lambda _, __: Line(text, target))
