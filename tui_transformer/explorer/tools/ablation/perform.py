"""Edits made on the main screen, shown beside what was before, and what the answer becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tui_transformer.engine.edits import Change
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import KINDS, Target
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.ablation.answer import answers
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import BEFORE
from tui_transformer.views.step_view import Place


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

    port.ask("answer", AT_ONCE + 1, lambda task: answers(before, after, task.report).line, say)


def ablate(port: Port, kind: str, *, mean: bool) -> None:
    """Ablate the head or position of the cell under the cursor; says so where it has none."""
    try:
        target = _HERE[kind](port.session.trace.program, port.position)
        perform(port, target.edits(port.session.trace.program, mean=mean))
    except InputError as error:
        port.say(str(error))


def _at(edit: Change, program: Program, place: Place) -> Position:
    """The first cell of an edit; where it sets a whole line, the cell stays where it was."""
    shape = program.shape(edit.name)
    cell = (place.head, place.row, place.column)[-len(shape) :]
    parts = zip(edit.region, shape, cell, strict=True)
    index = [part.start if len(part) < size else min(at, size - 1) for part, size, at in parts]
    return Position(edit.name, Place(*([0] * (3 - len(index)) + index)))


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
