"""The whole reads what it shows, band by band: nothing is computed before the first band is there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from driving import WIDE, exploring

from tui_transformer.engine.computation import Computation
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.scene import Scene
from tui_transformer.session.store import AT_ONCE, ENDLESS, Reading, Store
from tui_transformer.session.whole.layout import place_bands
from tui_transformer.session.whole.scene import Drawing

DEEP = {"d_model": 32, "heads": 4, "layers": 30, "d_ff": 64}
LONG = tuple(1 + i % 7 for i in range(500))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The steps that were computed, in order."""
    names: list[str] = []
    run = Computation.run

    def counted(values: Computation, step: object, *rest: object) -> object:
        names.append(step.name)  # type: ignore[attr-defined]
        return run(values, step, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Computation, "run", counted)
    return names


def outside_embedding(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(("tokens", "embedding"))]


def test_the_first_band_computes_what_it_shows_alone(computed: list[str]) -> None:
    session = open_session(ModelOptions("decoder", device="cpu", sizes=DEEP), None, LONG)
    position = Position("embedding.output")
    placed = place_bands(session, position, 160, 30)
    drawing = Drawing(session, session.trace.program, position, Reading(Store(), here=True))
    pictures = drawing.draw(placed[0])
    assert len(pictures[1].rows) <= 12
    assert not outside_embedding(computed)
    drawing.draw(placed[1])
    assert {name.split(".")[1] for name in outside_embedding(computed)} == {"0"}


async def test_the_first_band_is_drawn_before_a_layer_is_computed(
    computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[tuple[int, list[str]]] = []
    show = WholePane.show_scene

    def shown(pane: WholePane, scene: Scene) -> None:
        bands = [] if scene.whole is None else scene.whole.bands
        count = sum(not any(picture.missing for picture in pictures) for _, pictures in bands)
        there.append((count, outside_embedding(computed)))
        show(pane, scene)

    monkeypatch.setattr(WholePane, "show_scene", shown)
    async with exploring(WIDE, model="decoder", sizes=DEEP, ids=LONG, whole=None) as explorer:
        with_first = next(names for count, names in there if count)
        program = explorer.session.trace.program
        assert sum(program.flops(program.step(name)) for name in with_first) <= AT_ONCE
        assert "rows 0–" in explorer.text
        assert outside_embedding(computed)


def test_a_picture_of_many_columns_is_the_largest_of_its_neighbours_in_every_head(computed: list[str]) -> None:
    session = open_session(ModelOptions("decoder", device="cpu", sizes=DEEP), None, LONG)
    position = Position("decoder.0.self_attention.weights")
    drawing = Drawing(session, session.trace.program, position, Reading(Store(), here=True, most=ENDLESS))
    placed = place_bands(session, position, 160, 30)
    pictures = next(drawing.draw(each) for each in placed if position.stop in each.band.steps)
    picture = next(each for each in pictures if each.step == position.stop)
    whole = session.trace[position.stop]
    for head, tile in zip(picture.heads, picture.tiles.values, strict=True):
        width = tile.shape[1]
        for column in range(width):
            cells = whole[head, picture.rows.start, 500 * column // width : 500 * (column + 1) // width]
            assert tile[0, column] == cells[np.argmax(np.abs(cells))]
    assert computed
