"""A first look computes what is on the screen, and no more."""

from __future__ import annotations

import pytest
from driving import NARROW, WIDE, exploring

from tui_transformer.engine.computation import Computation
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.step_scene import WORD_ROWS, around, step_cost, tile_of
from tui_transformer.session.store import AT_ONCE
from tui_transformer.views.step_view import Place, view_of

WEIGHTS = "encoder.0.self_attention.weights"
TWO_LAYERS = {"layers": 2, "heads": 4}


@pytest.fixture
def ran(monkeypatch) -> set[str]:
    """The steps that ran whole."""
    names: set[str] = set()
    run = Computation.run

    def spy(values, step, *rest):
        names.add(step.name)
        return run(values, step, *rest)

    monkeypatch.setattr(Computation, "run", spy)
    return names


@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_weights_of_the_first_layer_are_shown_before_another_layer_is_computed(ran, size, budget):
    async with exploring(size, text="the waves", sizes=TWO_LAYERS, budget=budget, at=WEIGHTS) as explorer:
        await explorer.press("]", "down", "right", "c")
        assert explorer.scene.view.name == WEIGHTS
        assert not explorer.view.shared_scale
        assert "encoder.0.self_attention.query" in ran
        assert not any(name.startswith(("encoder.1", "output")) for name in ran)


async def test_the_shared_scale_computes_the_other_layers_and_none_after_it_is_off(ran):
    async with exploring(WIDE, text="the waves", sizes=TWO_LAYERS) as explorer:
        await explorer.press("m")
        await explorer.go("encoder.0.self_attention.query")
        assert "encoder.1.self_attention.query" in ran
        await explorer.press("m", "space")
        assert "encoder.1.self_attention.key" not in ran


def test_of_dropped_probabilities_only_the_rows_on_the_screen_are_fetched():
    session = open_session(ModelOptions(budget=0), None, (1,) * 300)
    name = "output.probabilities"
    view = view_of(session.trace, name, session.labels)
    tile = tile_of(session.trace, view, *around(view, Place(row=200)))
    assert tile.row <= 200 < tile.row + len(tile.values)
    assert len(tile.values) == WORD_ROWS


def cost(name: str, tokens: int, *, shared: bool = False) -> int:
    session = open_session(ModelOptions(budget=0), None, (1,) * tokens)
    session.trace.prepare(name)
    return step_cost(session, name, shared=shared)


@pytest.mark.parametrize("shared", [False, True])
def test_a_look_at_a_part_costs_the_part(shared):
    small, large = (cost(WEIGHTS, tokens, shared=shared) for tokens in (256, 1024))
    assert small < AT_ONCE
    assert large <= 4 * small  # rows of four times as many keys; as many queries of one head


def test_what_the_part_is_made_from_counts_until_it_is_there():
    session = open_session(ModelOptions(budget=0), None, (1,) * 64)
    before = step_cost(session, WEIGHTS, shared=False)
    session.trace.prepare(WEIGHTS)
    sources = session.trace.program.flops(session.trace.program.step("encoder.0.self_attention.query"))
    assert step_cost(session, WEIGHTS, shared=False) < before - 2 * sources
