"""A dump of another program beside what is explored: its values, and the first cell that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tui_transformer.engine.edits import Patch
from tui_transformer.errors import InputError
from tui_transformer.explorer.state.overlay import Overlay
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session
from tui_transformer.files import expanded
from tui_transformer.views.step_view import place_of


@dataclass(frozen=True)
class Dumped:
    """A dump beside a session.

    Attributes:
        overlay: Its values; what it does not hold is computed from them by the right steps.
        at: The first cell that is wrong; None where all is right.
        says: What is wrong with it, what follows from it, and what to mend.
    """

    overlay: Overlay
    at: Position | None
    says: str


def of_dump(session: Session, where: str, report: Callable[[str], None] = lambda _: None) -> Dumped:
    """Read a dump and compare it with what is explored.

    Raises:
        InputError: It cannot be read, is of other tokens, or no array in it is a step.
    """
    from tui_transformer.diagnosis import Input, diagnose
    from tui_transformer.diagnosis.dumps import open_dump

    if not where.strip():
        raise InputError("give the path of a dump: a file of arrays, or a folder with a file a step")
    givens = session.base.givens
    ids = givens.get("input.ids")
    dump = open_dump(expanded(where.strip()))
    same = (
        each for each in dump.further if ids is not None and each.ids is not None and each.ids.tolist() == ids.tolist()
    )
    dump = next(same, dump)
    if ids is not None and dump.ids is not None and dump.ids.tolist() != ids.tolist():
        raise InputError(
            f"{dump.path}: is of other tokens: explore its sentence first, or use `diff {dump.path} --open`"
        )
    visible = givens.get("input.visible")
    read = Input(ids if session.model.config.vocab_size else None, givens.get("decoder.input.ids"), mask=visible)
    diagnosis = diagnose(dump, session.model, read, report=report)
    whole = {step: values for step, values in diagnosis.theirs.items() if step not in diagnosis.partial}
    values = tuple(Patch.of(step, array[0]) for step, array in whole.items() if step in session.base.program.by_name)
    if not values:
        raise InputError(f"{dump.path}: holds no step whole: compare it with `diff`")
    overlay, first = Overlay("trace", dump.path.name, values=values), diagnosis.first
    if first is None:
        rest = f"; {len(diagnosis.unmatched)} more were not compared" if diagnosis.unmatched else ""
        said = f"{len(diagnosis.steps)} arrays agree as far as rounding goes{rest}"
        return Dumped(overlay, None, f"{dump.path.name}: {said}")
    name = session.base.program.step(first.step).name
    index = first.index[-len(session.base.program.by_name[name].axes) :]
    count = sum(each.step in diagnosis.following and each.verdict == "follows" for each in diagnosis.steps)
    follows = f" {count} more steps differ and follow from it." if count else ""
    at = Position(name, place_of(session.base.program.by_name[name].axes, index)) if index else Position(name)
    return Dumped(replace(overlay, first=name), at, f"{first.says}{follows}")
