"""The overlay of a step's values: nothing, their gradient, or the same step of another trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui_transformer.engine.edits import Change
from tui_transformer.model import Model

Kind = Literal["nothing", "gradient", "trace"]
Shown = Literal["both", "value", "overlay", "difference"]
"""Which matrices are drawn: both, the values alone, what is beside them alone, or the difference of the two."""

CYCLES: dict[tuple[Kind, bool], tuple[Shown, ...]] = {
    ("gradient", True): ("both", "overlay", "value"),
    ("gradient", False): ("overlay", "value"),
    ("trace", True): ("both", "difference", "value", "overlay"),
    ("trace", False): ("difference", "value", "overlay"),
    ("nothing", True): ("value",),
    ("nothing", False): ("value",),
}
"""The choices of one key, where there is room for two matrices and where there is not; the first is the default."""


@dataclass(frozen=True)
class Overlay:
    """A second matrix for every step. Of another trace it says in what that differs; the rest is as explored.

    Attributes:
        kind: Nothing, the gradient of the loss, or another trace.
        label: What the other trace is called.
        text: Its sentence (or token IDs, where the model has no words), if it is another.
        model: Its model, if it is another.
        edits: Whether what is edited here is edited in it too.
        values: Steps whose values are those of a dump; what it does not hold is computed from these.
        whole: What is broken here is not broken in it.
        first: Of a dump, the first step that is wrong: what is computed from it follows from it.
    """

    kind: Kind = "nothing"
    label: str = ""
    text: str | None = None
    model: Model | None = None
    edits: bool = True
    values: tuple[Change, ...] = ()
    first: str = ""
    whole: bool = False


NOTHING, GRADIENT = Overlay(), Overlay("gradient")
BEFORE = Overlay("trace", "before the edits", edits=False)
UNBROKEN = Overlay("trace", "unbroken", whole=True)


def shown_in(kind: Kind, wanted: Shown, *, wide: bool) -> Shown:
    """The matrices that are drawn, as the room allows."""
    cycle = CYCLES[kind, wide]
    return wanted if wanted in cycle else cycle[0]


def next_shown(kind: Kind, shown: Shown, *, wide: bool) -> Shown:
    """The choice that comes after the present one."""
    cycle = CYCLES[kind, wide]
    return cycle[(cycle.index(shown) + 1) % len(cycle)]
