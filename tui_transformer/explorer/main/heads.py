"""Every head of a step, small, as what is drawn large below it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tui_transformer.analysis.renormalized import renormalized
from tui_transformer.analysis.token_kinds import Hidden
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.main.overlay import other_view
from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.state.hiding import hidden_keys
from tui_transformer.explorer.state.session import Session
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import difference_of, small, thumbnail, view_of
from tui_transformer.views.view import Scale

Report = Callable[[str], None]
THUMB_ROWS, THUMB_COLUMNS = 12, 24
MOST_THUMBS = 64


@dataclass(frozen=True, eq=False)
class Heads:
    """The heads of a step.

    Attributes:
        tiles: A small picture of each.
        scale: The range that their colours stand for.
        shape: Rows × columns of each.
        what: What they show where it is not the step's values.
        of: How many heads the step has.
    """

    tiles: tuple[Host, ...]
    scale: Scale
    shape: tuple[int, int]
    what: str = ""
    of: int = 0


def heads_of(session: Session, scene: Scene, choice: Hidden, report: Report) -> Heads:
    """The heads of the step of a scene; none where there is only one."""
    heads = scene.view.heads if scene.view.heads > 1 else 0
    made, scale, what = _drawn(session, scene, choice)
    tiles = tuple(made(head, partial(report, f"head {head}")) for head in range(min(heads, MOST_THUMBS)))
    return Heads(tiles, scale, scene.view.shape, what, heads)


Made = Callable[[int, Callable[[], None]], Host]
"""The picture of a head, given what is called before a part of it is read."""


def _drawn(session: Session, scene: Scene, choice: Hidden) -> tuple[Made, Scale, str]:
    """How a head is drawn, on which scale, and what that is where it is not the step's values."""
    name, alone = scene.view.name, scene.alone
    if alone is None:
        return _values(session, name, choice), scene.scale, "renormalised" if scene.hidden else ""
    if session.overlay.kind == "gradient":
        return _gradients(session, name), alone.scale, "∂loss/∂x"
    difference = scene.shown == "difference"
    what = "difference" if difference else visible(session.overlay.label)
    return _of_others(session, name, difference=difference), alone.scale, what


def _gradients(session: Session, name: str) -> Made:
    of_heads = session.gradients.values[name]
    return lambda head, _: small(of_heads[head], THUMB_ROWS, THUMB_COLUMNS)


def _of_others(session: Session, name: str, *, difference: bool) -> Made:
    """The values of the other trace, or those of this one less them."""

    def made(head: int, before: Callable[[], None]) -> Host:
        own = view_of(session.trace, name, session.labels, head=head)
        other = other_view(session, own)
        shown = own if other is None else difference_of(own, other) if difference else other
        return thumbnail(shown, THUMB_ROWS, THUMB_COLUMNS, before=before)

    return made


def _values(session: Session, name: str, choice: Hidden) -> Made:
    """The step's own values, renormalised where keys are hidden."""
    hidden = hidden_keys(session, name, choice)

    def left(rows: Host) -> Host:
        return rows if hidden is None else np.where(hidden, -np.inf, renormalized(rows, hidden)).astype(rows.dtype)

    def made(head: int, before: Callable[[], None]) -> Host:
        before()
        view = view_of(session.trace, name, session.labels, head=head)
        return thumbnail(view, THUMB_ROWS, THUMB_COLUMNS, left, before)

    return made
