"""Ablation: heads, layers, positions or neurons set to 0 or their mean, each alone, by what the answer loses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.analysis.effects import answer_positions, counted_positions
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.shell.actions.tools import ABLATION
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.ablation import wording
from tui_transformer.explorer.tools.ablation.perform import perform
from tui_transformer.explorer.tools.ablation.search import Effects, Search
from tui_transformer.explorer.tools.ablation.table import Writer, places, scopes
from tui_transformer.explorer.tools.measure.screen import choose
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.answer_summary import on_targets
from tui_transformer.session.edit_format import active
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE

PAUSE = 0.05
"""Seconds after which what was found so far is shown."""


def open_from(port: Port) -> None:
    """The table of all heads; of something else where the model has none."""
    if not scopes(port.session.trace.program):
        port.say("this model has nothing that can be ablated")
        return
    port.open(AblateScreen(port))


class AblateScreen(Overview):
    """The effect of each head, layer, position or neuron on the answer, the largest first."""

    ACTIONS = ABLATION
    DEFAULT_CSS = """
    AblateScreen {
        #effects-header { height: 1; width: 1fr; color: $foreground 65%; }
        #effects { height: 1fr; }
    }
    """
    HELP_TOPIC, KIND = "ablate", "ablate"

    def __init__(self, port: Port, pause: float = PAUSE) -> None:
        """Begin with the heads, set to 0; what was found so far is shown after so many seconds."""
        super().__init__(port)
        self._pause = pause
        self.scopes = list(scopes(self.session.trace.program, port.position.stop))
        self.at = 0
        self.mean = self.reverse = self.ended = self.moved = False
        self.positions = _answer(self.session)
        self._largest = 0.0
        self._use()

    def _use(self) -> None:
        """Take what is chosen."""
        self.search = Search(self.session, self.scopes[self.at], self.mean, self.positions, self._pause)
        self.writer = Writer(
            self.session, self.search.targets, single=len(self.positions) == 1, metric=self.search.measure is not None
        )

    def content(self) -> ComposeResult:
        """The titles of the columns, and the list."""
        yield Static(id="effects-header", markup=False)
        yield LineList(id="effects")

    def on_mount(self) -> None:
        """Show what is known, and find the rest; a notice about the ablation before would lie over it."""
        self.app.clear_notifications()
        self.query_one(LineList).focus()
        self.begin()

    # Finding

    def begin(self) -> None:
        """Show the table of what is chosen, and find what is missing in it."""
        self.worker.cancel(self.KIND)
        self.requests.doing, self.ended, self.moved = "", False, False
        self._use()
        color, lines = "" if self.app.no_color else "cyan", self.query_one(LineList)

        def line(index: int) -> Text:
            target = self.search.targets[index]
            return self.writer.line(target, self.search.known.effects[target], self._largest, lines.size.width, color)

        lines.show(len(self.search.targets), line)
        self.put_in_order()
        self._find()

    def _find(self) -> None:
        """Find what is missing; the worker hands over what it found until then."""
        search = self.search
        if search.missing:

            def hand_over(effects: Effects) -> None:
                self.worker.post(self.while_there(self._take), search, effects)

            work = partial(search.find, hand_over, partial(wording.progress, search))
            self.requests.ask(self.KIND, AT_ONCE + 1, work, partial(self._take, search))
        self.show_lines()

    def _take(self, search: Search, effects: Effects) -> None:
        """Keep what was found, and show it if it is still asked for."""
        search.take(effects)
        if search is self.search:
            self.put_in_order()
            self.show_lines()

    def put_in_order(self) -> None:
        """Order the list; once the cursor was moved it stays on its line, before that on the first."""
        order, lines = self.search.order(reverse=self.reverse), self.query_one(LineList)
        self._largest = self.search.largest
        lines.filter(order)
        if order and not self.moved:
            lines.cursor = order[0]

    @property
    def selected(self) -> Target | None:
        """The target under the cursor."""
        at = self.query_one(LineList).cursor
        return None if at is None else self.search.targets[at]

    # What is said

    def show_lines(self) -> None:
        """The titles of the columns too."""
        super().show_lines()
        if self.is_mounted:
            self.query_one("#effects-header", Static).update(self.writer.header(self.size.width - 2), layout=False)

    def heading(self) -> str:
        """The targets, and the order."""
        return wording.title(self.search, reverse=self.reverse)

    def note(self) -> str:
        """Where the answer is read, what it is, and which edits are there already."""
        count = len(self.session.edits)
        wide = self.has_class("-wide")
        edits = active(self.session.edits, self.search.program) if wide else f"{count} edit{'s' * (count > 1)}"
        return wording.where(self.search) + (f" · on top of {edits}" if count else "")

    def progress(self) -> str:
        """How many are done, and whether it was ended before."""
        return wording.progress(self.search, len(self.search.missing)) + (" · ended" if self.ended else "")

    def detail(self) -> tuple[str, str]:
        """The target under the cursor: what becomes of the answer, and what is set."""
        target = self.selected
        if target is None:
            return "nothing found yet" if not self.ended else "ended before anything was found", ""
        change = wording.change(self.search, self.search.known.effects[target])
        keeps = self.port.hint("{cursor.choose} keeps it")
        return f"{self.writer.name(target)}   {change}", f"{wording.edited(self.search, target)} · {keeps}"

    def left_out(self) -> Collection[str]:
        """The actions that there is nothing for."""
        there = {
            "step.on": self.ended,
            "layer.next": len(places(self.search.program, self.search.scope.kind)) > 1,
            "measure": self.search.in_words,
            "answer": self.search.in_words and not on_targets(self.search.measure),
            "back": False,
        }
        return [name for name, useful in there.items() if not useful]

    # What keys do

    def action_scope(self) -> None:
        """The next kind of what the model has."""
        self.at = (self.at + 1) % len(self.scopes)
        self.begin()

    def action_place(self, direction: int) -> None:
        """The same kind in the next layer, or in the one before."""
        among = places(self.search.program, self.search.scope.kind)
        at = (among.index(self.search.scope.place) + direction) % len(among)
        if len(among) > 1:
            self.scopes[self.at] = replace(self.search.scope, place=among[at])
            self.begin()

    def action_mean(self) -> None:
        """0 or the mean."""
        self.mean = not self.mean
        self.begin()

    def action_reverse(self) -> None:
        """The other end first."""
        self.reverse = not self.reverse
        self.put_in_order()
        self.show_lines()

    def action_measure(self) -> None:
        """Measure by something else."""
        choose(self.port, self.open, self.change, self.begin)

    def action_positions(self) -> None:
        """The position of the answer, or all."""
        if self.search.in_words:
            answer = _answer(self.session)
            self.positions = counted_positions(self.session.trace) if self.positions == answer else answer
            self.begin()

    def action_go_on(self) -> None:
        """Find what is missing."""
        if self.ended:
            self.ended = False
            self._find()

    def action_end(self) -> None:
        """End the computation; where none runs, leave."""
        if not self.worker.cancel(self.KIND):
            self.action_leave()
            return
        self.ended, self.requests.doing = True, ""
        self.show_lines()

    @on(LineList.Moved)
    def _moved_by_hand(self) -> None:
        self.moved = True
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        edits = self.search.targets[event.index].edits(self.search.program, mean=self.mean)
        self.action_leave()
        perform(self.port, edits)


def _answer(session: Session) -> range:
    return answer_positions(session.trace, folder=session.model.folder)
