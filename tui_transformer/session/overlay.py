"""The overlay of a step: its gradient, another trace, the difference to that, or the values of a dump."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.engine.axis import shape_of, shape_text
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.files import expanded
from tui_transformer.records import dataclass, replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Overlay, Shown
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import (
    Limits,
    difference_of,
    extremes,
    gradient_of,
    joined,
    place_of,
    scale_for,
    tile_extremes,
    view_of,
)
from tui_transformer.views.view import Scale, Tile, View

Hide = Callable[[Session, View], View]
"""Makes of a view of a session that without some tokens."""

SCREENFUL = 256
"""Rows and columns that are fetched at first where a matrix is not drawn from memory as it is."""


@dataclass(frozen=True, eq=False)
class OverlayMatrix:
    """A matrix beside a step's own, ready to be drawn; `note` says what else is to be known of it."""

    view: View
    scale: Scale
    tile: Tile
    title: str
    note: str = ""


def overlay_of(
    session: Session, view: View, shown: Shown, report: Report, hide: Hide | None = None
) -> OverlayMatrix | None:
    """The overlay of a view; None where there is nothing, or where this step has no such thing.

    `hide` leaves out of another trace the tokens that are left out of the view.
    """
    if session.overlay.kind == "trace" and shown != "value":
        return _of_other(session, view, shown, report, hide)
    gradients = session.go_back(report) if session.overlay.kind == "gradient" else None
    values = None if gradients is None else gradients.values.get(view.name)
    if gradients is None or values is None:
        return None
    axes, start = session.trace.program.axes(view.name), gradients.start
    made = gradient_of(view, axes, values, "loss" if start is None else f"({start.description})")
    title = f"∂loss/∂{view.name.rpartition('.')[2]} · {shape_text(shape_of(axes))}"
    norm = float(np.linalg.norm(values.astype(np.float64)))
    return OverlayMatrix(
        made, scale_for("diverging", *tile_extremes(values)), _first_tile(made), title, f"norm {norm:.3g}"
    )


# Another trace


def other_view(session: Session, view: View, report: Report = lambda _: None) -> View | None:
    """The same step or weight of the other trace; None where it has none, or not this head."""
    other, name = session.other, view.name
    program = other.trace.program
    if name in program.by_name:
        other.trace.prepare(name, before=lambda step: report(step.name))
    elif name not in program.weights:
        return None
    axes = program.axes(name)
    heads = axes[0].size if len(axes) == 3 else 1
    head = view.head or 0
    if len(axes) != len(session.trace.program.axes(name)) or head >= heads:
        return None
    return view_of(other.trace, name, other.labels, head=head)


def _of_other(session: Session, view: View, shown: Shown, report: Report, hide: Hide | None) -> OverlayMatrix | None:
    second = other_view(session, view, report)
    if second is None:
        return None
    if hide is not None:
        second = hide(session.other, second)
    if shown == "difference":
        made = difference_of(view, second)
        tile = _first_tile(made)
        scale = scale_for(made.kind, *tile_extremes(tile.values))
        part = "common part " if view.shape != second.shape else ""
        title = f"this less {session.overlay.label} · {part}{shape_text(made.shape)}"
        return OverlayMatrix(made, scale, tile, title)
    pairs = (session.trace, view), (session.other.trace, second)
    both = joined(*(_limits(trace, each, hidden=hide is not None) for trace, each in pairs))
    scale = scale_for(view.kind, *both)  # one for both, so that the same colour is the same number
    title = f"{session.overlay.label} · {shape_text(second.shape)}"
    second = replace(second, title=f"{visible(session.overlay.label)} · {second.title}")
    return OverlayMatrix(second, scale, _first_tile(second), title)


def _limits(trace: Trace, view: View, *, hidden: bool) -> Limits:
    """Those of all heads; where tokens are left out, also of what becomes of the rest."""
    known = extremes(trace, view.name)
    if known is not None and not hidden:
        return known
    drawn = tile_extremes(_first_tile(view).values, shares=view.shares)
    return drawn if known is None else joined(known, drawn)


def _first_tile(view: View) -> Tile:
    """All cells of a view where they are few, else the first."""
    rows, columns = view.shape
    if rows * columns > SCREENFUL**2:
        rows = columns = SCREENFUL
    return view.tile(range(rows), range(columns))


def apart(session: Session, name: str) -> str:
    """How far a step is apart in the two traces, and which step is the first that differs, once that is known.

    The key that goes there is named by its meaning.
    """
    compared = session.comparison
    if session.overlay.kind != "trace" or compared is None:
        return ""
    first = "nothing differs" if compared.first is None else f"first that differs: {compared.first} ({{compare.first}})"
    difference = compared.differences.get(name)
    if difference is not None and difference.beyond and _mark(session, name):
        first = f"{FOLLOWS} follows from {session.overlay.first}" if name != session.overlay.first else "wrong itself"
    if difference is None:
        return first
    return f"largest difference {difference.largest:.3g}, relative {difference.relative:.3g} · {first}"


def details(session: Session) -> Mapping[str, str]:
    """A number for every step that has one: the norm of its gradient, or its largest difference."""
    if session.overlay.kind == "gradient" and session.went_back:
        return {name: f"{size:.2g}" for name, size in session.gradient_norms.items()}
    if session.comparison is not None:
        differences = session.comparison.differences
        return {
            name: f"{_mark(session, name) if difference.beyond else ''}{difference.largest:.2g}"
            for name, difference in differences.items()
        }
    return {}


WRONG, FOLLOWS = "≠", "↳"
"""Of a dump: the first step that is wrong, and what differs because of it."""


def marks(session: Session) -> Mapping[str, str]:
    """The steps that are wrong in a dump, by what that means; of another trace the first that differs."""
    compared = session.comparison
    if compared is None or compared.first is None:
        return {}
    if not session.overlay.first:
        return {compared.first: WRONG}
    beyond = (name for name, difference in compared.differences.items() if difference.beyond)
    return {name: mark for name in beyond if (mark := _mark(session, name))}


def _mark(session: Session, name: str) -> str:
    """The mark of a step that differs from a dump: wrong itself, or only what follows."""
    first = session.overlay.first
    if not first:
        return ""
    if name == first:
        return WRONG
    return FOLLOWS if name in session.trace.program.downstream([first]) else ""


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


def of_dump(session: Session, where: str, report: Report = lambda _: None) -> Dumped:
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
