"""The strip of heads: every head of a step, small, as what is drawn large beside it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.renormalized import renormalized
from tui_transformer.analysis.token_kinds import Hidden
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.hiding import hidden_keys
from tui_transformer.explorer.scene import Scene
from tui_transformer.explorer.session import Session
from tui_transformer.views.step_view import small, thumbnail
from tui_transformer.views.view import Scale

Report = Callable[[str], None]
THUMB_ROWS, THUMB_COLUMNS = 12, 24
MOST_THUMBS = 64


@dataclass(frozen=True, eq=False)
class Strip:
    """The heads, the range that their colours stand for, and what they show where it is not the step's values."""

    tiles: tuple[Host, ...]
    scale: Scale
    what: str = ""


def strip_of(session: Session, scene: Scene, choice: Hidden, report: Report) -> Strip:
    """The heads of the step of a scene; none where there is only one."""
    heads = scene.view.heads if scene.view.heads > 1 else 0
    gradient = scene.alone is not None and session.beside.kind == "gradient"
    made = _gradients(session, scene.view.name) if gradient else _values(session, scene.view.name, choice)
    tiles = []
    for head in range(min(heads, MOST_THUMBS)):
        report(f"head {head}")
        tiles.append(made(head))
    scale = scene.alone.scale if gradient and scene.alone is not None else scene.scale
    return Strip(tuple(tiles), scale, "∂loss/∂x" if gradient else "renormalised" if scene.hidden else "")


def _gradients(session: Session, name: str) -> Callable[[int], Host]:
    found = session.gradients.values[name]
    return lambda head: small(found[head], THUMB_ROWS, THUMB_COLUMNS)


def _values(session: Session, name: str, choice: Hidden) -> Callable[[int], Host]:
    """The step's own values, renormalised where keys are hidden."""
    hidden = hidden_keys(session, name, choice)

    def left(rows: Host) -> Host:
        return rows if hidden is None else np.where(hidden, -np.inf, renormalized(rows, hidden)).astype(rows.dtype)

    return lambda head: thumbnail(session.trace, name, head, THUMB_ROWS, THUMB_COLUMNS, drawn=left)
