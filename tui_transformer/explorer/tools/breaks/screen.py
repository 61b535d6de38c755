"""Switches that break one thing each, with what the answer becomes."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.diagnosis.breaking import BREAKS, Break, fitting
from tui_transformer.explorer.shell.actions.tools import BREAKING
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.breaks.effect import Effect, cost_of, effect_of
from tui_transformer.explorer.tools.breaks.lines import told
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.exploration import History, Way
from tui_transformer.text.display import fit, visible
from tui_transformer.views.inside.cell import written as number

TITLE = 34
"""Columns of what is broken."""

NARROW = 72
"""Columns below which what becomes of the answer has no room in its line."""

ROOMY = 24
"""Lines from which everything that is known of a break stands below the list of them."""

NamedEffect = tuple[str, Effect]


def open_from(port: Port) -> None:
    """The switches of what is explored."""
    port.open(BreaksScreen(port))


class BreaksScreen(Overview):
    """Everything that can be broken; what is broken is marked, and what each makes of the answer stands beside it."""

    ACTIONS = BREAKING
    HELP_TOPIC, KIND = "breaks", "breaks"
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
    pieces: Pieces[Break, NamedEffect]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.whole = self.session.with_breaks() if self.session.breaks else self.session
        self.fitting = {each.name for each in fitting(self.whole.base)}
        self.history = History(self.session)
        self.effects: dict[str, Effect] = {}
        self.waiting = [each for each in BREAKS if each.name in self.fitting]
        cost = cost_of(self.whole)
        self.pieces = Pieces(self.requests, self.KIND, self._following, lambda _: cost, self._look, self._take)

    def content(self) -> ComposeResult:
        """The switches."""
        yield LineList(id="breaks")

    def on_mount(self) -> None:
        """Find out what each makes of the answer, one after the other."""
        lines = self.query_one(LineList)
        lines.focus()
        lines.show(len(BREAKS), self._line)
        self.pieces.again()

    # What each makes of the answer

    def _following(self) -> Break | None:
        return self.waiting.pop(0) if self.waiting else None

    def _look(self, each: Break, task: Task) -> NamedEffect:
        return each.name, effect_of(self.whole, each, task.report)

    def _take(self, named: NamedEffect) -> None:
        name, effect = named
        self.effects[name] = effect
        self.query_one(LineList).refresh()

    # What is said

    def _line(self, index: int) -> Text:
        each = BREAKS[index]
        there = each.name in self.fitting
        mark = "[■]" if each.name in self.session.breaks else "[ ]" if there else "   "
        width = min(TITLE, max(self.size.width - 36, 12))
        line = Text(f" {mark} {fit(each.title, width)}  ", no_wrap=True)
        effect = self.effects.get(each.name)
        says = effect.said if effect is not None else "…" if there else f"not here: {each.absent}"
        return line.append(visible(says), "" if there else "dim")

    def heading(self) -> str:
        """How many are broken."""
        count = len(self.session.breaks)
        return f"Break it · {count} broken" if count else "Break it: what is each part good for?"

    def note(self) -> str:
        """Meaning of the words at the right of a switch."""
        return "the answer before → after, each by itself"

    def progress(self) -> str:
        """How many were tried."""
        return f"{len(self.effects)} of {len(self.fitting)} tried"

    def detail(self) -> tuple[str, str]:
        """Explanation of the switch under the cursor, and where its effect is seen."""
        each = self._chosen
        effect = self.effects.get(each.name)
        if effect is None:
            return each.lesson, ""
        if self.size.width < NARROW:
            return effect.said, each.lesson
        if not effect.step:
            return each.lesson, "nothing changes in this sentence"
        cell = f"{effect.step}[{', '.join(map(str, effect.index))}]"
        numbers = f"{number(effect.before)} → {number(effect.after)}"
        return each.lesson, f"first: {cell} {numbers} · {effect.changed} of {effect.steps} steps change"

    def told(self) -> Content:
        """All that is known of the switch under the cursor, where there is room; else two lines."""
        if self.size.height < ROOMY:
            return super().told()
        each = self._chosen
        self.query_one("#overview-detail", Static).border_title = Content(visible(each.title))
        inside = self.size - (4, len(BREAKS) + 6)
        return told(each, self.effects.get(each.name), there=each.name in self.fitting, size=inside)

    @property
    def _chosen(self) -> Break:
        at = self.query_one(LineList).cursor
        return BREAKS[at or 0]

    # What keys do

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _switched(self) -> None:
        """Break it, or mend it."""
        each, broken = self._chosen, self.session.breaks
        if each.name not in self.fitting:
            self.say(f"nothing to break: {each.absent}")
            return
        wanted = {*broken} ^ {each.name}
        names = [one.name for one in BREAKS if one.name in wanted]
        self._switch(*names)
        done = "broken" if each.name in wanted else "mended"
        self.say(f"{done}: {each.title} · {self.port.hint('{undo} undoes it')}")
        self._show()

    def _switch(self, *names: str) -> None:
        self.change(lambda session: session.with_breaks(*names))
        self.history.push(self.session)

    def action_mend(self) -> None:
        """Mend everything."""
        if self.session.breaks:
            self._switch()
            self.say("nothing is broken any more")
            self._show()

    def action_turn_back(self, way: Way) -> None:
        """Take back what was switched here, or switch it again."""
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

    def _show(self) -> None:
        self.query_one(LineList).refresh()
        self.show_lines()
