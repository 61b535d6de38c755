"""How one looks at what is explored: everything on the screen that is neither the session nor the position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tui_transformer.analysis.metrics import MetricName
from tui_transformer.analysis.tokens import NOTHING as NONE_HIDDEN
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.edits import Change
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.views.step_view import Place


class Size(NamedTuple):
    """Columns and lines."""

    width: int
    height: int


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
class ViewState:
    """The chosen view of the session. Never changed, only replaced.

    Attributes:
        wanted: Which matrices are drawn where there is room for them: the values, what is beside them, or both.
        hidden: Tokens that are left out of attention weights.
        shared_scale: One scale for a step in all layers, instead of one for each.
        chart: How many charts further than the first of those that fit the step.
        temperature: What the logits are divided by where the most likely words are listed.
        active: The pane that has the keys.
        words: The sum of words whose neighbours are shown beside an embedding; "" for none.
        whole: Whether the whole is shown above the step; None where there is room for it.
        cell_width: Columns of a cell of the matrix; None for as many as fit.
        by_size: Whether the terms of a cell are in the order of their size.
        zoom: The pane that has the whole screen; None for all that there is room for.
        pointed: The step and the cell that arrows point at while the cursor is there; None for none.
        motion: Whether the next step is shown on its way to its values, where the terminal is quick enough.
        edited: Lines of the sentence while it is edited; 0 where it is not.
        unread: Whether what is typed there cannot be read: then all is of the sentence before.
    """

    wanted: Shown = "both"
    hidden: Hidden = NONE_HIDDEN
    shared_scale: bool = False
    chart: int = 0
    temperature: float = 1.0
    active: str = "matrix"
    words: str = ""
    whole: bool | None = None
    cell_width: int | None = None
    by_size: bool = False
    zoom: str | None = None
    pointed: tuple[str, Place] | None = None
    motion: bool = False
    edited: int = 0
    unread: bool = False


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


@dataclass(frozen=True)
class Measure:
    """A metric by its name, and the tokens that it is about; of a loss without any, on the targets of the session."""

    name: MetricName
    tokens: tuple[int, ...] = ()


def entry_of(first: Sequence[int], index: int) -> int:
    """The ID of a line of the vocabulary: some IDs come first, each once, then the others in order."""
    if index < len(first):
        return first[index]
    token = index - len(first)
    for used in sorted(first):
        token += used <= token
    return token
