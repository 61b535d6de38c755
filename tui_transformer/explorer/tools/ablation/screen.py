"""Ablation: heads, layers, positions or neurons set to 0 or their mean, each alone, by what the answer loses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rich.text import Text

from tui_transformer.analysis.effects import answer_positions, counted_positions
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.shell.overview import Overview, Texts, following
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.ablation.perform import perform
from tui_transformer.explorer.tools.ablation.search import Effects, Search, places, scopes
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.session.answer_summary import on_targets
from tui_transformer.session.edit_format import active
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE

PAUSE = 0.05
"""Seconds after which what was found so far is shown."""


def open_from(port: Port) -> None:
    """The table of all heads; of something else where the model has none."""
    port.open(AblateScreen(port))


class AblateScreen(Overview, tool="ablation", topic="ablate"):
    """The effect of each head, layer, position or neuron on the answer, the largest first."""

    HAS_COLUMNS = True

    def __init__(self, port: Port, pause: float = PAUSE) -> None:
        """Begin with the heads, set to 0; what was found so far is shown after so many seconds."""
        super().__init__(port)
        self._pause = pause
        self.scopes = scopes(self.session.trace.program, port.position.stop)
        self.at = 0
        self.mean = self.reverse = self.ended = self.by_hand = False
        self.positions = _answer(self.session)
        self._largest = 0.0
        self._use()

    def _use(self) -> None:
        self.search = Search(self.session, self.scopes[self.at], self.mean, self.positions, self._pause)

    def begin(self) -> None:
        """Find what is missing; a notice about the ablation before would lie over it."""
        self.app.clear_notifications()
        self.begin_again()

    def begin_again(self) -> None:
        """Show the table of what is chosen, and find what is missing in it."""
        self.worker.cancel(self.KIND)
        self.requests.doing, self.ended, self.by_hand = "", False, False
        self._use()
        self.lines.show(len(self.search.targets), self._line)
        self.put_in_order()
        self._find()

    def _line(self, index: int) -> Text:
        color = "" if self.app.no_color else "cyan"
        return self.search.line(self.search.targets[index], self._largest, self.lines.size.width, color)

    def _find(self) -> None:
        """Find what is missing; the worker hands over what it found until then."""
        search = self.search
        if search.missing:

            def hand_over(effects: Effects) -> None:
                self.worker.post(self.while_there(self._take), search, effects)

            work = partial(search.find, hand_over)
            self.requests.ask(self.KIND, AT_ONCE + 1, work, partial(self._take, search))
        self.show_lines()

    def _take(self, search: Search, effects: Effects) -> None:
        search.known.effects.update(effects)
        if search is self.search:
            self.put_in_order()
            self.show_lines()

    def put_in_order(self) -> None:
        """Order the list; once the cursor was moved it stays on its line, before that on the first."""
        order = self.search.order(reverse=self.reverse)
        self._largest = self.search.largest
        self.lines.filter(order)
        if order and not self.by_hand:
            self.lines.cursor = order[0]

    @property
    def selected(self) -> Target | None:
        at = self.lines.cursor
        return None if at is None else self.search.targets[at]

    def texts(self) -> Texts:
        search, target, edits = self.search, self.selected, self.session.edits
        named = (
            active(edits, search.program) if self.has_class("-wide") else f"{len(edits)} edit{'s' * (len(edits) > 1)}"
        )
        useful = {
            "step.on": self.ended,
            "layer.next": len(places(search.program, search.scope.kind)) > 1,
            "measure": search.in_words,
            "answer": search.in_words and not on_targets(search.measure),
            "back": False,
        }
        detail = "nothing found yet" if not self.ended else "ended before anything was found", ""
        if target is not None:
            keeps = self.port.hint("{cursor.choose} keeps it")
            change = search.change(search.known.effects[target])
            detail = f"{search.name(target)}   {change}", f"{search.edited(target)} · {keeps}"
        return Texts(
            search.title(reverse=self.reverse),
            search.where + (f" · on top of {named}" if edits else ""),
            detail,
            search.progress(len(search.missing)) + (" · ended" if self.ended else ""),
            search.header(self.size.width - 2),
            [name for name, is_useful in useful.items() if not is_useful],
        )

    # What keys do

    def action_scope(self) -> None:
        self.at = (self.at + 1) % len(self.scopes)
        self.begin_again()

    def action_place(self, by: int) -> None:
        scope = self.search.scope
        among = places(self.search.program, scope.kind)
        if len(among) > 1:
            self.scopes[self.at] = replace(scope, place=following(among, scope.place, by))
            self.begin_again()

    def action_mean(self) -> None:
        self.mean = not self.mean
        self.begin_again()

    def action_reverse(self) -> None:
        self.reverse = not self.reverse
        self.put_in_order()
        self.show_lines()

    def action_measure(self) -> None:
        choose(self.port, self.open, self.change, self.begin_again)

    def action_positions(self) -> None:
        if self.search.in_words:
            answer = _answer(self.session)
            self.positions = counted_positions(self.session.trace) if self.positions == answer else answer
            self.begin_again()

    def action_go_on(self) -> None:
        if self.ended:
            self.ended = False
            self._find()

    def action_end(self) -> None:
        if not self.worker.cancel(self.KIND):
            self.action_leave()
            return
        self.ended, self.requests.doing = True, ""
        self.show_lines()

    def moved(self) -> None:
        self.by_hand = True
        self.show_lines()

    def chosen(self) -> None:
        edits = self.search.targets[self.lines.index].edits(self.search.program, mean=self.mean)
        self.action_leave()
        perform(self.port, edits)


def _answer(session: Session) -> range:
    return answer_positions(session.trace, folder=session.model.folder)
