"""The step that is asked about, as it is shown: nothing that gives the answer away."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.engine.axis import shape_text
from tui_transformer.explorer.main.panes.texts import step_words, stop_title
from tui_transformer.explorer.main.scene import Scene, first_tile
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.step_view import Place, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Scale, Tile, View

MOST_OPERANDS = 2


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix with its values, and a title that says its shape."""

    title: str
    view: View
    scale: Scale
    tile: Tile


@dataclass(frozen=True, eq=False)
class About:
    """Title of the step and of its matrix, how it is computed, and the first of the matrices that it is made from."""

    title: str
    matrix: str
    what: str
    operands: tuple[Matrix, ...]


def about(session: Session, scene: Scene) -> About:
    """Description of a scene without its values."""
    title, head = stop_title(session, scene.view.name), f" · head {scene.place.head}" if scene.view.heads > 1 else ""
    return About(title, f"{title}{head}", step_words(session, scene.view.name).what, _operands(session, scene))


def _operands(session: Session, scene: Scene) -> tuple[Matrix, ...]:
    program, name = session.trace.program, scene.view.name
    inputs = program.step(name).inputs if name in program.by_name else ()
    made_from = [each for each in dict.fromkeys(inputs) if each in program.by_name or each in program.weights]
    return tuple(_matrix(session, each, scene.place.head) for each in made_from[:MOST_OPERANDS])


def _matrix(session: Session, name: str, head: int) -> Matrix:
    trace = session.trace
    heads = view_of(trace, name, session.labels, head=0).heads
    view = view_of(trace, name, session.labels, head=min(head, max(heads - 1, 0)))
    tile = first_tile(trace, view, Place())
    scale = scale_for(view.kind, *tile_extremes(tile.values))
    own = f" · head {view.head}" if heads > 1 else ""
    return Matrix(
        f"made from {stop_title(session, name)}{own} · {shape_text(trace.program.shape(name))}", view, scale, tile
    )
