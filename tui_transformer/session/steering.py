"""Steering: a direction that is added to a step so many times, and the number of times on a slider.

The last edit that adds to a step is what the slider moves: `STEP += 4*vector.npy` adds 4 times the array. The slider
ends where what is added is as long as what it is added to (of single numbers: as large as the largest of the step),
rounded up to 1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import OPEN, Add
from tui_transformer.engine.edits import Change
from tui_transformer.engine.number_format import minus
from tui_transformer.engine.program import PROBABILITIES, Program
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.text.display import cells, visible

STEPS = 20
"""Steps of the slider from 0 to either end."""

MOST_ROWS = 64
"""Tokens that what is added to is measured at: the last ones."""

USUAL = 10.0
"""The end of a slider of what is added to nothing but zeros."""

LEFT, OFF, HERE = "─", "┼", "●"


@dataclass(frozen=True, eq=False)
class Steer(Add):
    """A direction added so many times; `terms` say how the direction is written, factors and values."""

    strength: float = 1.0
    direction: Host = field(default_factory=lambda: np.zeros(()), repr=False)
    terms: tuple[tuple[float, str], ...] = ()

    def at_strength(self, strength: float) -> Steer:
        """The same, added so many times."""
        return replace(self, strength=strength, values=strength * self.direction)

    @property
    def said(self) -> str:
        """What is added, in words: `+ 4 × ('love' − 'hate')`."""
        sign, size = "−" if self.strength < 0 else "+", f"{abs(self.strength):g} × "
        terms = ""
        for factor, what in self.terms:
            times = "" if abs(factor) == 1 else f"{abs(factor):g} × "
            terms += f" {'−' if factor < 0 else '+'} {times}{visible(what)}"
        terms = terms.removeprefix(" + ").strip()
        return f"{sign} {size}{terms}" if len(self.terms) < 2 else f"{sign} {size}({terms})"

    @property
    def written(self) -> str:
        """The same as `--edit` takes it: `+= 4*'love' - 4*'hate'`."""
        parts = ((self.strength * factor, what) for factor, what in self.terms)
        terms = [
            f" {'-' if math.copysign(1, factor) < 0 else '+'} {repr(abs(factor)).removesuffix('.0')}*{what}"
            for factor, what in parts
        ]
        return f"+= {''.join(terms).removeprefix(' + ').replace(' - ', '-', terms[0].startswith(' -'))}"


def steering(edits: Sequence[Change], program: Program) -> Add | None:
    """The edit that the slider moves: the last that adds a direction or a number to a step that a text comes from."""
    by_none = {*program.weights, *([PROBABILITIES] if program.logits else [])}
    of_steps = (each for each in reversed(edits) if isinstance(each, Add) and each.name not in by_none)
    return next((each for each in of_steps if isinstance(each, Steer) or np.ndim(each.values) == 0), None)


def strength_of(edit: Add) -> float:
    """How many times a direction, or how much, is added."""
    return edit.strength if isinstance(edit, Steer) else float(np.asarray(edit.values))


def added(edit: Add) -> str:
    """What is added, in words, and where: `+ 4 × happy.npy`, `12 + 4`, `head 3 row 5 + 4`."""
    strength, (heads, rows, columns) = strength_of(edit), edit.parts
    times = edit.said if isinstance(edit, Steer) else f"{'−' if strength < 0 else '+'} {abs(strength):g}"
    where = [_places(kind, part) for kind, part in (("head", heads), ("row", rows), ("", columns)) if part is not None]
    return " ".join([*where, times])


def _places(kind: str, part: range) -> str:
    """`head 3`, `rows 2 to 4`, `rows from 2`; of columns the numbers alone."""
    kind = f"{kind}{'s' * (len(part) > 1)} " if kind else ""
    if part.stop >= OPEN:
        return f"{kind}from {part.start}"
    return f"{kind}{part.start}" if len(part) == 1 else f"{kind}{part.start} to {part.stop - 1}"


def said(edit: Add) -> str:
    """The same with the step: `1.output + 4 × happy.npy`."""
    return f"{edit.name} {added(edit)}"


def at_strength(edit: Add, strength: float) -> Add:
    """The same, added so many times."""
    return edit.at_strength(strength) if isinstance(edit, Steer) else replace(edit, values=strength)


def alike(one: Add | None, other: Add | None) -> bool:
    """Whether the same is added to the same cells, however often."""
    if one is None or other is None:
        return one is other
    directions = [each.direction if isinstance(each, Steer) else None for each in (one, other)]
    return (one.name, one.parts) == (other.name, other.parts) and directions[0] is directions[1]


def same(one: Add | None, other: Add | None) -> bool:
    """Whether it is added as often, too."""
    if one is None or other is None:
        return one is other
    return alike(one, other) and strength_of(one) == strength_of(other)


def steered(session: Session, edit: Add | None) -> Session:
    """A session with this edit in place of the one that its slider moves, or with none.

    Raises:
        InputError: It has no such step.
    """
    own = steering(session.edits, session.base.program)
    if same(edit, own):
        return session
    edits = [edit if each is own else each for each in session.edits] if own is not None else [*session.edits, edit]
    changed = session.unedited.with_edits(*(each for each in edits if each is not None))
    beside = changed.overlay
    is_before = beside.kind == "trace" and not beside.edits and not changed.edits  # it is beside itself
    return changed.with_overlay(NOTHING) if is_before else changed


def end_of(edit: Add, trace: Trace) -> float:
    """Where the slider of an edit ends, from what it is added to."""
    shape = trace.program.shape(edit.name)
    region = list(whole(shape))
    if len(shape) > 1:
        region[-2] = range(max(shape[-2] - MOST_ROWS, 0), shape[-2])
    there = np.asarray(trace.window(edit.name, tuple(region)), np.float64)
    if isinstance(edit, Steer):
        rows = np.moveaxis(there, -2, 0).reshape(len(region[-2]), -1) if len(shape) > 1 else there[None]
        length = float(np.linalg.norm(edit.direction))
        most = float(np.linalg.norm(rows, axis=1).mean()) / length if length else 0.0
    else:
        most = float(np.abs(there).max(initial=0.0))
    most = most if math.isfinite(most) and most else USUAL
    return round_up(max(most, abs(strength_of(edit))))


def round_up(number: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(float(f"{size * power:.3g}") for size in (1, 2, 5, 10) if size * power >= number * (1 - 1e-9))


def moved(strength: float, end: float, by: int) -> float:
    """So many steps along the slider, not beyond its ends."""
    step = end / STEPS
    return float(f"{max(-STEPS, min(math.floor(strength / step + 0.5) + by, STEPS)) * step:.6g}") + 0.0


def track(strength: float, end: float, width: int) -> str:
    """The slider in so many columns: `−8 ────┼──●─ 8`; 0 is in its middle."""
    low, high = minus(f"{-end:g}"), f"{end:g}"
    room = max(width - cells(low) - cells(high) - 2, 3)
    marks = [LEFT] * room
    marks[room // 2] = OFF
    marks[round((max(-1.0, min(strength / end, 1.0)) + 1) / 2 * (room - 1))] = HERE
    return f"{low} {''.join(marks)} {high}"
