"""Edits made on the main screen, shown beside what was before, and what the answer becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tui_transformer.analysis.effects import answer_positions, answer_step, effect
from tui_transformer.engine.edits import Change
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import KINDS, Target
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.session.answer_summary import guesses, metric_of, metric_said
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import BEFORE
from tui_transformer.views.step_view import Place

MOST_LIKELY = 3


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
    port.change(after, _at(edits[0], before.trace.program, port.position.place))

    def say(line: str) -> None:
        if port.session.edits == after.edits:
            port.say(line)

    port.ask("answer", AT_ONCE + 1, lambda task: answers(before, after, task), say)


def _at(edit: Change, program: Program, place: Place) -> Position:
    """The first cell of an edit; where it sets a whole line, the cell stays where it was."""
    shape = program.shape(edit.name)
    cell = (place.head, place.row, place.column)[-len(shape) :]
    parts = zip(edit.region, shape, cell, strict=True)
    index = [part.start if len(part) < size else min(at, size - 1) for part, size, at in parts]
    return Position(edit.name, Place(*([0] * (3 - len(index)) + index)))


# What the answer becomes


def answers(before: Session, after: Session, task: Task) -> str:
    """`answer at position 7, !: the 12.3 % … → a 9.0 % …, change of ln p(the) −0.31, divergence 0.05`."""
    for session in (before, after):
        session.trace.compute((answer_step(session.trace),), before=lambda step: task.report(step.name))
    position = answer_positions(before.trace, folder=before.model.folder)
    result = effect(before.trace, after.trace, position, metric=metric_of(before))
    if result.change is None or (result.value is None and result.divergence is None):
        return f"relative change of {answer_step(before.trace)} {signed(result.size)[1:]}"
    was, becomes = (guesses(session, position.start, MOST_LIKELY) for session in (before, after))
    where = f"answer at {position_text(before, position.start)}"
    said = f"{where}: {', '.join(map(str, was))} → {', '.join(map(str, becomes))}"
    if result.value is not None:
        own = spoken(result.value - result.change, 4)
        return f"{said} · {metric_said(before)} {own} → {spoken(result.value, 4)} ({signed(result.change)})"
    change = f"change of ln p({was[0].name}) {signed(result.change)}"
    return f"{said} · {change}, divergence {result.divergence:.3g} nats"


def position_text(session: Session, position: int) -> str:
    """`position 7, !`."""
    axis = session.trace.program.axes(answer_step(session.trace))[-2]
    label = session.labels.of(axis)(position)
    return f"position {position}" + (f", {label}" if label != str(position) else "")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, which is one character wide."""
    return "+?" if math.isnan(value) else f"{'+' * (value >= 0)}{spoken(value, digits)}"


# What is under the cursor


def ablate(port: Port, kind: str, *, mean: bool) -> None:
    """Ablate the head or position of the cell under the cursor.

    Raises:
        InputError: There is none.
    """
    program = port.session.trace.program
    perform(port, _HERE[kind](program, port.position).edits(program, mean=mean))


def head_here(program: Program, position: Position) -> Target:
    """The head of the attention step that is shown.

    Raises:
        InputError: It is none, or its heads are keys and values that several heads share.
    """
    step = program.by_name.get(position.stop)
    kind = KINDS["head"]
    attentions = kind.places(program)
    if step is None or step.sublayer not in attentions or len(step.shape) < 3:
        raise InputError("no head is shown here: go to a step of an attention that has heads")
    heads = kind.count(program, attentions[step.sublayer][0])
    if step.shape[0] != heads:
        raise InputError(f"{heads} heads share these {step.shape[0]} keys and values: choose one at the scores")
    return Target("head", step.sublayer, position.place.head)


def position_here(program: Program, position: Position) -> Target:
    """The row of the cell, in the residual stream that enters its layer.

    Raises:
        InputError: The rows are no positions.
    """
    kind, step = KINDS["position"], program.by_name.get(position.stop)
    sequence = program.axes(position.stop)[-2].sequence if step is not None and len(step.shape) > 1 else ""
    places = [
        place
        for place, steps in kind.places(program).items()
        if sequence and program.axes(steps[0])[-2].sequence == sequence
    ]
    if step is None or not places:
        raise InputError("the rows here are no positions of a sentence: go to a step with a row for each token")
    return Target("position", step.layer if step.layer in places else places[0], position.place.row)


_HERE: Mapping[str, Callable[[Program, Position], Target]] = {"head": head_here, "position": position_here}
