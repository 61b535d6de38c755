"""Every head of a step, small, as what is drawn large below it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
from tui_transformer.views.view import Scale, View

Report = Callable[[str], None]
THUMB_ROWS, THUMB_COLUMNS = 12, 24
MOST_THUMBS = 64
MOST_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class Heads:
    """The heads, the range that their colours stand for, and what they show where it is not the step's values."""

    tiles: tuple[Host, ...]
    scale: Scale
    what: str = ""


def heads_of(session: Session, scene: Scene, choice: Hidden, report: Report) -> Heads:
    """The heads of the step of a scene; none where there is only one."""
    heads = scene.view.heads if scene.view.heads > 1 else 0
    made, scale, what = _drawn(session, scene, choice)
    tiles = []
    for head in range(min(heads, MOST_THUMBS)):
        report(f"head {head}")
        tiles.append(made(head))
    return Heads(tuple(tiles), scale, what)


def _drawn(session: Session, scene: Scene, choice: Hidden) -> tuple[Callable[[int], Host], Scale, str]:
    """How a head is drawn, on which scale, and what that is where it is not the step's values."""
    name, alone = scene.view.name, scene.alone
    if alone is None:
        return _values(session, name, choice), scene.scale, "renormalised" if scene.hidden else ""
    if session.overlay.kind == "gradient":
        return _gradients(session, name), alone.scale, "∂loss/∂x"
    difference = scene.shown == "difference"
    what = "difference" if difference else visible(session.overlay.label)
    return _of_others(session, name, difference=difference), alone.scale, what


def _gradients(session: Session, name: str) -> Callable[[int], Host]:
    found = session.gradients.values[name]
    return lambda head: small(found[head], THUMB_ROWS, THUMB_COLUMNS)


def _of_others(session: Session, name: str, *, difference: bool) -> Callable[[int], Host]:
    """The values of the other trace, or those of this one less them."""

    def made(head: int) -> Host:
        own = view_of(session.trace, name, session.labels, head=head)
        other = other_view(session, own)
        return _small(own if other is None else difference_of(own, other) if difference else other)

    return made


def _small(view: View) -> Host:
    """A view of few cells from all of them; of many from evenly spaced rows."""
    height, width = view.shape
    if height * width <= MOST_CELLS:
        return small(view.window(range(height), range(width)), THUMB_ROWS, THUMB_COLUMNS)
    rows = (height * row // THUMB_ROWS for row in range(THUMB_ROWS))
    cells = np.concatenate([view.window(range(row, row + 1), range(width)) for row in rows])
    return small(cells, THUMB_ROWS, THUMB_COLUMNS)


def _values(session: Session, name: str, choice: Hidden) -> Callable[[int], Host]:
    """The step's own values, renormalised where keys are hidden."""
    hidden = hidden_keys(session, name, choice)

    def left(rows: Host) -> Host:
        return rows if hidden is None else np.where(hidden, -np.inf, renormalized(rows, hidden)).astype(rows.dtype)

    return lambda head: thumbnail(session.trace, name, head, THUMB_ROWS, THUMB_COLUMNS, drawn=left)
