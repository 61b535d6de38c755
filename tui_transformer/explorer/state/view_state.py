"""How one looks at what is explored: everything on the screen that is neither the session nor the position."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.analysis.tokens import NOTHING, Hidden
from tui_transformer.explorer.state.overlay import Shown


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
    """

    wanted: Shown = "both"
    hidden: Hidden = NOTHING
    shared_scale: bool = False
    chart: int = 0
    temperature: float = 1.0
    active: str = "matrix"
    words: str = ""
    whole: bool | None = None
    cell_width: int | None = None
    by_size: bool = False
    zoom: str | None = None
