"""Ablation: heads, layers, positions or neurons set to 0 or their mean, each alone, by what the answer loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_transformer.analysis.effects import answer_step, counted_positions, effect
from tui_transformer.engine.edits import Change
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.targets import KINDS, Target
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, work_on
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.effects import Effects, Search, places, position_text, scopes, signed
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.records import replace
from tui_transformer.session.answer_summary import guesses, metric_of, metric_said, on_targets
from tui_transformer.session.edit_format import active, words
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import BEFORE
from tui_transformer.views.step_view import Place


class AblateScreen(Overview, tool="ablation", topic="ablate"):
    """The effect of each head, layer, position or neuron on the answer, the largest first."""

    HAS_COLUMNS = True

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.scopes = scopes(self.session.trace.program, port.position.stop)
        self.search = Search(self.session, self.scopes[0], mean=False, positions=self.session.answer_rows)
        self.reverse = self.by_hand = False
        work_on(self, lambda: self.search if self.search.missing else None, self._find, self._take)

    def begin(self) -> None:
        self.app.clear_notifications()  # one about the ablation before would lie over the list
        self.begin_again()

    def begin_again(self, **changes: Any) -> None:
        self.ended = self.by_hand = False
        self.search = search = replace(self.search, session=self.session, **changes)
        lines, color = self.lines, "" if self.app.no_color else "cyan"
        lines.show(len(search.targets), lambda index: search.line(search.targets[index], lines.size.width, color))
        self.put_in_order()
        self.pieces.again()

    def _find(self, search: Search, task: Task) -> Effects:
        take = self.while_there(self._take)
        return search.find(lambda effects: self.worker.post(take, search, effects), task)

    def _take(self, search: Search, effects: Effects) -> None:
        search.known.effects.update(effects)
        self.put_in_order()

    def put_in_order(self) -> None:
        """Order the list; once the cursor was moved it stays on its line, before that on the first."""
        order = self.search.order(reverse=self.reverse)
        self.lines.filter(order)
        if order and not self.by_hand:
            self.lines.cursor = order[0]
        self.show_lines()

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
            "layer.next": len(places(search.program, search.scope.kind)) > 1,
            "measure": search.in_words,
            "answer": search.in_words and not on_targets(search.measure),
        }
        detail = "nothing found yet" if not self.ended else "ended before anything was found", ""
        if target is not None:
            keeps = self.port.hint("{cursor.choose} keeps it")
            change = search.change(search.known.effects[target])
            set_to = ", ".join(words(edit, search.program) for edit in target.edits(search.program, mean=search.mean))
            detail = f"{search.name(target)}   {change}", f"{set_to} · {keeps}"
        return Texts(
            search.title(reverse=self.reverse),
            search.where + (f" · on top of {named}" if edits else ""),
            detail,
            search.progress(len(search.missing)),
            search.header(self.size.width - 2),
            useful,
        )

    # What keys do

    def action_scope(self) -> None:
        self.begin_again(scope=following(self.scopes, self.search.scope))

    def action_place(self, by: int) -> None:
        scope = self.search.scope
        among = places(self.search.program, scope.kind)
        if len(among) > 1:
            other = replace(scope, place=following(among, scope.place, by))
            self.scopes[self.scopes.index(scope)] = other
            self.begin_again(scope=other)

    def action_mean(self) -> None:
        self.begin_again(mean=not self.search.mean)

    def action_reverse(self) -> None:
        self.reverse = not self.reverse
        self.put_in_order()

    def action_measure(self) -> None:
        choose(self.port, self.begin_again, self)

    def action_positions(self) -> None:
        if self.search.in_words:
            answer = self.session.answer_rows
            others = counted_positions(self.session.trace) if self.search.positions == answer else answer
            self.begin_again(positions=others)

    def moved(self) -> None:
        self.by_hand = True
        self.show_lines()

    def chosen(self) -> None:
        edits = self.search.targets[self.lines.index].edits(self.search.program, mean=self.search.mean)
        self.action_leave()
        perform(self.port, edits)


# Edits made on the main screen


def perform(port: Port, edits: Sequence[Change], explored: Session | None = None) -> None:
    """Make edits, go to the first of them, and show every step beside what it was before.

    What is beside stays where it was chosen. Undo takes all of it back.

    Args:
        port: The explorer.
        edits: What is set.
        explored: What is edited, by default what is explored.

    Raises:
        InputError: An edit cannot be made.
    """
    before = explored or port.session
    after = before.with_edits(*edits)
    if after.overlay.kind == "nothing":
        after = after.with_overlay(BEFORE)
    edit, place = edits[0], port.position.place
    shape = before.trace.program.shape(edit.name)
    cell = (place.head, place.row, place.column)[-len(shape) :]
    parts = zip(edit.region, shape, cell, strict=True)
    index = [part.start if len(part) < size else min(at, size - 1) for part, size, at in parts]
    port.change(after, Position(edit.name, Place(*([0] * (3 - len(index)) + index))))

    def say(line: str) -> None:
        if port.session.edits == after.edits:
            port.say(line)

    port.ask("answer", lambda task: answers(before, after, task), say)


# What the answer becomes


def answers(before: Session, after: Session, task: Task) -> str:
    """`answer at position 7, !: the 12.3 % … → a 9.0 % …, change of ln p(the) −0.31, divergence 0.05`."""
    for session in (before, after):
        session.trace.compute((answer_step(session.trace),), before=lambda step: task.report(step.name))
    position = before.answer_rows
    result = effect(before.trace, after.trace, position, metric=metric_of(before))
    if result.change is None or (result.value is None and result.divergence is None):
        return f"relative change of {answer_step(before.trace)} {signed(result.size)[1:]}"
    was, becomes = (guesses(session, position.start, 3) for session in (before, after))
    where = f"answer at {position_text(before, position.start)}"
    said = f"{where}: {', '.join(map(str, was))} → {', '.join(map(str, becomes))}"
    if result.value is not None:
        own = spoken(result.value - result.change, 4)
        return f"{said} · {metric_said(before)} {own} → {spoken(result.value, 4)} ({signed(result.change)})"
    change = f"change of ln p({was[0].name}) {signed(result.change)}"
    return f"{said} · {change}, divergence {result.divergence:.3g} nats"


# What is under the cursor


def ablate(port: Port, kind: str, *, mean: bool) -> None:
    """Ablate the head of the cell under the cursor, or its position, in the residual stream that enters its layer.

    Raises:
        InputError: There is none, or the heads are keys and values that several heads share.
    """
    program, stop, cell = port.session.trace.program, port.position.stop, port.position.place
    step, steps_of = program.by_name.get(stop), KINDS[kind].places(program)
    if kind == "head":
        if step is None or step.sublayer not in steps_of or len(step.shape) < 3:
            raise InputError("no head is shown here: go to a step of an attention that has heads")
        heads = KINDS[kind].count(program, steps_of[step.sublayer][0])
        if step.shape[0] != heads:
            raise InputError(f"{heads} heads share these {step.shape[0]} keys and values: choose one at the scores")
        target = Target(kind, step.sublayer, cell.head)
    else:
        sequence = program.axes(stop)[-2].sequence if step is not None and len(step.shape) > 1 else ""
        places = [place for place, steps in steps_of.items() if program.axes(steps[0])[-2].sequence == sequence]
        if step is None or not sequence or not places:
            raise InputError("the rows here are no positions of a sentence: go to a step with a row for each token")
        target = Target(kind, step.layer if step.layer in places else places[0], cell.row)
    perform(port, target.edits(program, mean=mean))
