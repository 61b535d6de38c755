"""Switches that break one thing each, with what the answer becomes: the first step that changes, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import wrap

import numpy as np
from rich.text import Text
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from tui_transformer.diagnosis.breaking import BREAKS, Break, fitting
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, Texts
from tui_transformer.explorer.shell.port import Port
from tui_transformer.guide.texts import step_text
from tui_transformer.session.answer_summary import LEAST, Guess, answer, answer_position, answers, percent, shares
from tui_transformer.session.exploration import History, Way
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible
from tui_transformer.views.inside.cell import written as number
from tui_transformer.views.numbers import share_bar
from tui_transformer.views.step_view import placed

TITLE, NARROW, ROOMY = 34, 72, 24
"""Columns of what is broken, and below which the answer has no room beside it; lines from which all is said below."""

WORD, NUMBER, BAR = 16, 9, 24
"""Columns of a word, of a number with the space before it, and of a bar at most."""

OTHERS = 5
"""Lines that stand beside the words of the answer: lesson, heading, first step."""

MOST_WORDS, MOST_COLUMNS, MOST_DIGITS = 4, 20, 6
"""Words of the answer, columns of a row, and decimals of a percentage at most."""

QUIET = "$foreground 65%"


def open_from(port: Port) -> None:
    """The switches of what is explored."""
    port.open(BreaksScreen(port))


class BreaksScreen(Overview, tool="breaks"):
    """Everything that can be broken; what is broken is marked, and what each makes of the answer stands beside it."""

    DEFAULT_CSS = f"""
    BreaksScreen.-roomy {{
        & #overview-content {{ height: {len(BREAKS) + 2}; }}
        & #overview-detail {{
            height: 1fr; border: round $border-blurred;
            border-title-color: $foreground; border-title-style: bold;
        }}
    }}
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall"), (ROOMY, "-roomy")]  # noqa: RUF012 - the base class has them so
    pieces: Pieces[Break, tuple[str, BreakEffect]]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.whole = self.session.with_breaks() if self.session.breaks else self.session
        self.fitting = {each.name for each in fitting(self.whole.base)}
        self.history = History(self.session)
        self.effects: dict[str, BreakEffect] = {}
        self.waiting = [each for each in BREAKS if each.name in self.fitting]
        program = self.whole.trace.program
        cost = 2 * sum(map(program.flops, program.steps))
        self.pieces = Pieces(
            self.requests,
            self.KIND,
            lambda: self.waiting.pop(0) if self.waiting else None,
            lambda _: cost,
            lambda each, task: (each.name, effect_of(self.whole, each, task.report)),
            self._take,
        )

    def begin(self) -> None:
        self.lines.show(len(BREAKS), self._line)
        self.pieces.again()

    def _take(self, named: tuple[str, BreakEffect]) -> None:
        name, effect = named
        self.effects[name] = effect
        self.lines.refresh()

    # What is said

    def _line(self, index: int) -> Text:
        each = BREAKS[index]
        there = each.name in self.fitting
        mark = "[■]" if each.name in self.session.breaks else "[ ]" if there else "   "
        width = min(TITLE, max(self.size.width - 36, 12))
        line = Text(f" {mark} {fit(each.title, width)}  ", no_wrap=True)
        effect = self.effects.get(each.name)
        says = effect.summary if effect is not None else "…" if there else f"not here: {each.absent}"
        return line.append(visible(says), "" if there else "dim")

    def texts(self) -> Texts:
        count = len(self.session.breaks)
        return Texts(
            f"Break it · {count} broken" if count else "Break it: what is each part good for?",
            "the answer before → after, each by itself",
            self._selected_in_full() if self.size.height >= ROOMY else self._selected_in_two_lines(),
            f"{len(self.effects)} of {len(self.fitting)} tried",
        )

    def _selected_in_two_lines(self) -> tuple[str, str]:
        """Explanation of the switch under the cursor, and where its effect is seen."""
        each = self.selected
        effect = self.effects.get(each.name)
        if effect is None:
            return each.lesson, ""
        if self.size.width < NARROW:
            return effect.summary, each.lesson
        if not effect.step:
            return each.lesson, "nothing changes in this sentence"
        numbers = f"{number(effect.before)} → {number(effect.after)}"
        return each.lesson, f"first: {effect.cell} {numbers} · {effect.count}"

    def _selected_in_full(self) -> Content:
        each = self.selected
        self.query_one("#overview-detail", Static).border_title = Content(visible(each.title))
        width, height = self.size - (4, len(BREAKS) + 6)
        effect = self.effects.get(each.name)
        parts = [[Content.styled(line, "bold") for line in wrap(each.lesson, max(width, 1))]]
        if effect is not None:
            parts += explained(effect, Size(width, height))
        else:
            parts += [[Content("…" if each.name in self.fitting else f"Not here: {each.absent}.")]]
        # the first parts that there is room for, apart from each other where there is room for that too
        ends = list(accumulate(map(len, parts)))
        shown = parts[: max(sum(end <= height for end in ends), 1)]
        apart = [Content("")] if ends[len(shown) - 1] + len(shown) - 1 <= height else []
        return Content("\n").join(line for at, part in enumerate(shown) for line in (*apart[: at > 0], *part))

    @property
    def selected(self) -> Break:
        return BREAKS[self.lines.cursor or 0]

    # What keys do

    def chosen(self) -> None:
        each = self.selected
        if each.name not in self.fitting:
            self.say(f"nothing to break: {each.absent}")
            return
        wanted = {*self.session.breaks} ^ {each.name}
        self._switch(*(one.name for one in BREAKS if one.name in wanted))
        done = "broken" if each.name in wanted else "mended"
        self.say(f"{done}: {each.title} · {self.port.hint('{undo} undoes it')}")

    def _switch(self, *names: str) -> None:
        self.change(lambda session: session.with_breaks(*names))
        self.history.push(self.session)
        self._show()

    def _show(self) -> None:
        self.lines.refresh()
        self.show_lines()

    def action_mend(self) -> None:
        if self.session.breaks:
            self._switch()
            self.say("nothing is broken any more")

    def action_turn_back(self, way: Way) -> None:
        same = self.port.session is self.session
        if not self.history.turn(way):
            self.say(f"there is nothing to {way} here")
            return
        names = self.history.current.breaks
        if same and self.port.turn_back(way):
            self.session = self.port.session
        else:
            self.change(lambda session: session.with_breaks(*names))
        broken = ", ".join(each.title for each in BREAKS if each.name in names)
        self.say(f"broken: {broken}" if broken else "nothing is broken any more")
        self._show()


# What a break makes of the model


@dataclass(frozen=True)
class BeforeAfter:
    """A number without a break and with it; `label` is safe to show."""

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class Row:
    """The cell of a step that changes most; `of` says its row, "" where there is one alone; the `at`-th is its own."""

    step: str
    index: Index
    of: str
    cells: tuple[BeforeAfter, ...]
    at: int


@dataclass(frozen=True)
class BreakEffect:
    """The effect of a break.

    Attributes:
        step: The first step that changes; "" where none does.
        index: Its cell that changes most, which is `before` without the break and `after` with it.
        count: How many steps change, in words.
        answers: The answer before and after; None where the model gives none.
        words: The most likely words of both answers.
        rows: The row of the cell, and where that is before a softmax, the row of the first softmax that changes.
    """

    step: str
    index: Index
    before: float
    after: float
    count: str
    answers: tuple[Guess, Guess] | None
    words: tuple[BeforeAfter, ...]
    rows: tuple[Row, ...]

    @property
    def cell(self) -> str:
        """`encoder.0.scores[0, 3, 1]`."""
        return f"{self.step}[{', '.join(map(str, self.index))}]"

    @property
    def summary(self) -> str:
        """The answer before → after; of a model that answers nothing, how many steps change."""
        if self.answers is None:
            return self.count if self.step else "no step changes"
        was, becomes = self.answers
        if not self.step:
            return f"{was}, as before"
        if was.name != becomes.name or percent(was.share) != percent(becomes.share):
            return f"{was} → {becomes}"
        for digits in range(2, MOST_DIGITS + 1):  # as many as it takes to tell them apart
            one, other = f"{was.share:.{digits}%}", f"{becomes.share:.{digits}%}"
            if one != other:
                change = f"{one} → {other}".replace("%", " %")
                return f"{was.name} {change}"
        return f"{was}, as before"


def effect_of(session: Session, broken: Break, report: Callable[[str], None]) -> BreakEffect:
    """Effect of a break on a session that nothing is broken in; `report` may raise to end it."""
    after = session.with_breaks(broken.name)
    program = session.trace.program
    steps = [step.name for step in program.steps if step.name in after.trace.program.by_name]
    first, weights, changed = None, None, 0
    for name in steps:
        report(name)
        largest = _largest(session.trace[name], after.trace[name])
        if largest is not None:
            changed += 1
            first = first or (name, *largest)
            weights = weights or ((name, largest[0]) if isinstance(program.step(name).op, Softmax) else None)
    both, words = None, tuple[BeforeAfter, ...]()
    if answers(session):
        both = answer(session, report=report), answer(after, report=report)
        was, becomes = (shares(each, answer_position(session)) for each in (session, after))
        best = np.argsort(-np.fmax(was, becomes), kind="stable")[:MOST_WORDS].tolist()
        label = session.model.target_label
        words = tuple(BeforeAfter(label(each), float(was[each]), float(becomes[each])) for each in best)
    step, index, cell, changed_cell = first or ("", (), 0.0, 0.0)
    cells = dict.fromkeys(each for each in (first and first[:2], weights) if each)
    rows = tuple(_row(session, after, *each) for each in cells)
    count = f"{changed} of {len(steps)} steps change"
    return BreakEffect(step, index, cell, changed_cell, count, both, words, rows)


def _row(before: Session, after: Session, name: str, index: Index) -> Row:
    """A cell with the columns around it."""
    axes, labels = before.trace.program.axes(name), before.labels
    first = min(max(index[-1] - MOST_COLUMNS // 2, 0), max(axes[-1].size - MOST_COLUMNS, 0))
    columns = range(first, min(first + MOST_COLUMNS, axes[-1].size))
    region = (*(range(place, place + 1) for place in index[:-1]), columns)
    was, becomes = (each.trace.window(name, region).ravel().tolist() for each in (before, after))
    cells = tuple(map(BeforeAfter, map(labels.of(axes[-1]), columns), was, becomes))
    of = placed(labels.of(axes[-2])(index[-2]), index[-2]) if len(axes) > 1 else ""
    return Row(name, index, of, cells, index[-1] - first)


def _largest(before: Host, after: Host) -> tuple[Index, float, float] | None:
    """The cell that changes most by more than roundings, before and after; None where none does."""
    with np.errstate(invalid="ignore"):
        size = np.where(before == after, 0.0, np.abs(after.astype(np.float64) - before))
    size = np.where(np.isnan(size), np.inf, size)
    index = tuple(map(int, np.unravel_index(int(size.argmax()), size.shape)))
    was, becomes = float(before[index]), float(after[index])
    limit = 1e-5 * max(1.0, abs(was) if np.isfinite(was) else 1.0)
    return (index, was, becomes) if size[index] > limit else None


# The same in lines

Lines = list[Content]


def explained(effect: BreakEffect, size: Size) -> Iterator[Lines]:
    """What becomes of the answer, the first step that changes, its row: the most telling first."""
    if effect.answers is not None:
        yield [*_answer(effect.words[: max(size.height - OTHERS, 1)], size.width)]
    if not effect.step:
        yield [Content("Nothing changes in this sentence.")]
        return
    numbers = f"{spoken(effect.before)} → {spoken(effect.after)}"
    first = f"first: {step_text(effect.step).label}, most of all {effect.cell} {numbers} · {effect.count}"
    yield [Content(line) for line in wrap(visible(first), max(size.width, 1))]
    for row in effect.rows:
        yield [*_row_lines(row, size.width)]


def _answer(words: Sequence[BeforeAfter], width: int) -> Iterator[Content]:
    """The most likely words before and after, with bars where there is room."""
    bar = max(min((width - WORD) // 2 - NUMBER - 2, BAR), 0)
    side = NUMBER + 2 + bar
    yield Content.styled(f"{fit('the answer', WORD)}{fit('   before', side)}{fit('   after', side)}".rstrip(), QUIET)
    for word in words:
        line = fit(word.label, WORD)
        for share in (word.before, word.after):
            text = in_percent(share, ".2%") if share >= LEAST else percent(share)
            line += f"{text:>{NUMBER}} {share_bar(share, bar)} "
        yield Content(line.rstrip())


def _row_lines(row: Row, width: int) -> Iterator[Content]:
    count = max(min((width - WORD) // NUMBER, len(row.cells)), 1)
    first = min(max(row.at - count // 2, 0), len(row.cells) - count)
    shown, here = row.cells[first : first + count], row.at - first
    head = f", head {row.index[0]}" if len(row.index) > 2 else ""
    of = f", row {row.of}" if row.of else ""
    yield Content.styled(fit(f"{step_text(row.step).label}{head}{of}", width).rstrip(), QUIET)
    labels = (f" {fit(each.label, NUMBER - 1, 'right')}" for each in shown)
    yield Content.styled(" " * WORD + "".join(labels), QUIET)
    for name in ("before", "after"):
        numbers = [f" {_short(getattr(each, name)):>{NUMBER - 1}}" for each in shown]
        left, right = "".join(numbers[:here]), "".join(numbers[here + 1 :])
        yield Content.assemble(fit(f"  {name}", WORD), left, (numbers[here], "bold $accent"), right)


def _short(value: float) -> str:
    return next((text for digits in (3, 2) if len(text := spoken(value, digits)) < NUMBER), spoken(value, 1))
