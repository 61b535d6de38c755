"""Gradients in the explorer: targets, the way back from the loss, explained cells, norms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from driving import MEDIUM, NARROW, WEIGHTS, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer.engine.changes import Scale, Set
from tui_transformer.engine.gradient import gradients
from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.guide.texts import matching, tour
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.session import LOSS, VOCABULARY
from tui_transformer.views.step_view import Place

SIZES = {"sizes": {"d_model": 8, "heads": 2, "d_ff": 16}}
SCALED = "encoder.0.self_attention.scaled"
CLASSIFIER = str(REFERENCES.parent / "classifiers" / "opt")


@asynccontextmanager
async def backward(size: tuple[int, int], stop: str = "", *cell: int, **options: Any) -> AsyncIterator[Explorer]:
    """An explorer that took the default targets, and went to a cell."""
    async with exploring(size, **options) as explorer:
        await explorer.press("B", "enter")
        if stop:
            await explorer.go(stop, *cell)
        yield explorer


async def test_the_way_back_begins_at_the_loss_and_is_left_by_its_key_or_undone():
    async with backward(WIDE) as explorer:
        assert explorer.stop == LOSS
        assert explorer.place == (1, 21)
        trace = explorer.session.trace
        loss = gradients(trace, [explorer.session.loss_targets]).loss
        assert f"loss {loss:.6g}" in explorer.text
        assert f"← backward · loss {loss:.4g} · step 1 of 21" in explorer.text
        for share in trace["output.probabilities"][range(8), explorer.session.loss_targets]:
            assert percent(share) in explorer.text
        # the list of steps says the norms
        await explorer.go(SCALED)
        norm = np.linalg.norm(explorer.session.gradients.values[SCALED].astype(float))
        assert f"scaled {norm:.2g}".split()[1] in explorer.text
        assert "Steps · ‖∂loss/∂x‖" in explorer.text
        # undone
        await explorer.press("u")
        assert not explorer.session.backward
        assert explorer.stop == SCALED
        await explorer.press("U")
        assert explorer.session.backward
        # forward again, and back with the same targets
        await explorer.press("b")
        assert explorer.stop == SCALED
        assert "∂loss" not in explorer.text
        assert explorer.place == (10, 25)
        await explorer.press("b")
        assert explorer.session.backward
        assert "∂loss/∂scaled" in explorer.text


async def test_the_vocabulary_stays_beside_the_steps_and_the_way_back_begins_at_the_loss_from_there():
    async with backward(NARROW, SCALED) as explorer:
        explorer.parts.navigation.follow_vocabulary()
        await explorer.settled()
        explorer.parts.presenter.show_session()  # as a new explorer begins
        await explorer.settled()
        assert explorer.stop == VOCABULARY
        await explorer.press("b", "b")
        assert (explorer.session.backward, explorer.stop) == (True, LOSS)


@pytest.mark.parametrize(("model", "size"), [("encoder", NARROW), ("decoder", WIDE)])
async def test_space_goes_back_from_the_loss_to_the_embedding_and_backspace_forward_again(model, size):
    async with backward(size, model=model) as explorer:
        program = explorer.session.trace.program
        steps = [step.name for step in program.steps if step.name in explorer.session.gradients.values]
        assert explorer.session.stops == (LOSS, *reversed(steps))
        assert (steps[0], steps[-1]) == ("embedding.tokens", "output.logits")
        for stop in explorer.session.stops[1:]:
            await explorer.press("space")
            assert explorer.stop == stop
            assert "∂loss/∂" in explorer.text
            working = explorer.scene.working
            assert abs(working.difference) <= 1e-5 * max(1.0, abs(working.stored))
        await explorer.press("backspace")
        assert explorer.stop == steps[1]


async def test_value_and_gradient_are_side_by_side_with_one_cursor_or_alone_with_pictures_of_their_heads():
    async with backward(WIDE, WEIGHTS, 0, 2, 1) as explorer:
        assert f"{WEIGHTS} · head 0 of 8 · 8 × 8 × 8" in explorer.text
        assert "∂loss/∂weights · 8 × 8 × 8" in explorer.text
        first, second = (explorer.parts.panes.heat_map(name) for name in ("matrix", "overlay"))
        await explorer.press("down", "right")
        assert first.cursor == second.cursor == (3, 2)
        second.focus()
        await explorer.press("up")
        assert first.cursor == second.cursor == (2, 2)
        assert explorer.position.place == Place(0, 2, 2)
        # the cells beside are the gradient
        gradient = explorer.session.gradients.values[WEIGHTS]
        assert np.array_equal(explorer.scene.overlay.view.window(range(8), range(8)), gradient[0])
        await explorer.press("right_square_bracket")
        assert np.array_equal(explorer.scene.overlay.view.window(range(8), range(8)), gradient[1])
        # a resize shows both or one
        await explorer.go(SCALED)
        await explorer.press("left_square_bracket")
        await explorer.resize(*NARROW)
        assert explorer.drawn == "overlay"
        assert f"{SCALED} · " not in explorer.text
        await explorer.resize(*WIDE)
        assert f"{SCALED} · head 0 of 8 · 8 × 8 × 8" in explorer.text
        assert "∂loss/∂scaled" in explorer.text
        # the pictures of heads
        strip = explorer.main.query_one(HeadThumbnails)
        assert not strip.tiles, "two matrices above one another leave them no room"
        await explorer.press("z")
        assert explorer.drawn == "overlay"
        assert np.array_equal(strip.tiles, explorer.session.gradients.values[SCALED])
        assert strip.scale == explorer.scene.overlay.scale
        assert strip.border_title == "Heads · ∂loss/∂x"
        await explorer.press("z")
        assert np.array_equal(strip.tiles, explorer.session.trace[SCALED])


async def test_both_scroll_together():
    async with backward(WIDE, "encoder.0.feed_forward.hidden", text="the waves " * 20) as explorer:
        first, second = (explorer.parts.panes.heat_map(name) for name in ("matrix", "overlay"))
        await explorer.press("end", "G")
        assert first.scroll_offset == second.scroll_offset
        assert first.scroll_offset.x > 0 < first.scroll_offset.y


async def test_where_there_is_less_room_one_of_value_and_gradient_is_shown(here):
    async with backward(MEDIUM, SCALED, 0, 1, 2) as explorer:
        # one key goes from gradient to value
        async for _ in explorer.sizes(MEDIUM, NARROW):
            assert "∂loss/∂scaled · 8 × 8 × 8" in explorer.text
            await explorer.press("z")
            assert "∂loss/∂scaled" not in explorer.text
            assert f"{SCALED} · 8 × 8 × 8" in explorer.text
            await explorer.press("z")
            assert "∂loss/∂scaled · 8 × 8 × 8" in explorer.text
        # what is shown alone is what is exported
        await explorer.go(WEIGHTS)
        await explorer.keys("x")
        assert explorer.focused_input.value == f"gradient.{WEIGHTS}.head0.csv"
        await explorer.answer("a.csv")
        written = np.genfromtxt(here / "a.csv", delimiter=",")[1:, 1:]
        assert np.allclose(written, explorer.session.gradients.values[WEIGHTS][0], rtol=1e-6)
        # a gradient that is followed shows gradients, and a value values
        await explorer.go("encoder.0.feed_forward.norm", 0, 1, 1)
        await explorer.press("5", "enter")
        assert (explorer.stop, explorer.drawn) == ("output.logits", "overlay")
        await explorer.press("escape", "5", ";")
        assert (explorer.stop, explorer.drawn) == ("output.logits.weight", "value")


async def test_a_cell_of_a_gradient_is_explained_and_its_terms_are_followed():
    async with backward(WIDE, "encoder.0.feed_forward.norm", 0, 1, 1) as explorer:
        gradient = explorer.session.gradients.values["encoder.0.feed_forward.norm"][1, 1]
        assert "= ∂y Wᵀ" in explorer.text
        assert "a = ∂ output.logits" in explorer.text
        assert f"{gradient:.6g}".replace("-", "−") in explorer.text
        await explorer.press("5", "enter")
        assert explorer.stop == "output.logits"
        assert explorer.position.place.row == 1
        await explorer.press("escape")
        assert explorer.stop == "encoder.0.feed_forward.norm"
        # a weight has its gradient beside it
        await explorer.go("encoder.0.feed_forward.hidden")
        await explorer.press("w")
        name = "encoder.0.feed_forward.hidden.weight"
        assert explorer.stop == name
        assert "∂loss/∂weight" in explorer.text
        gradient = explorer.session.gradients.values[name]
        assert np.array_equal(explorer.scene.overlay.view.window(range(8), range(16)), gradient[:8, :16])
        assert "a = hidden" not in explorer.text
        assert "xᵀ ∂y" in explorer.text


async def test_layers_are_walked_backwards_and_norms_are_bars_by_layer_by_weight_and_along_the_stream():
    async with backward(WIDE, sizes={"layers": 3}) as explorer:
        stops = []
        for _ in range(5):
            await explorer.press("right_curly_bracket")
            stops.append(explorer.stop)
        assert stops == ["output.logits", *(f"encoder.{i}.self_attention.query" for i in (2, 1, 0)), "embedding.tokens"]
        await explorer.go("encoder.1.self_attention.query")
        chart = explorer.main.query_one("#chart").chart
        assert chart.labels == ("embedding", "encoder.0", "encoder.1", "encoder.2", "output")
        assert chart.logarithmic
        assert chart.labels[chart.marked] == "encoder.1"
        values = explorer.session.gradients.values
        squares = sum(float((g.astype(float) ** 2).sum()) for n, g in values.items() if n.startswith("output.logits.w"))
        assert chart.values[-1] == pytest.approx(squares**0.5, rel=1e-6)
        await explorer.press("c")
        assert explorer.main.query_one("#chart").chart.title.startswith("Norm of ∂loss/∂weight ·")
        await explorer.press("c")
        assert "along the residual stream" in explorer.text


async def test_an_edit_changes_the_gradients_and_another_sentence_has_targets_of_its_own():
    async with backward(WIDE, SCALED) as explorer:
        before, targets = explorer.session.gradients.loss, explorer.session.loss_targets
        await explorer.keys("e")
        assert float(explorer.focused_input.value) == explorer.session.trace[SCALED][0, 0, 0]
        await explorer.answer("5")
        assert explorer.session.gradients.loss != before
        assert explorer.session.loss_targets == targets
        await explorer.press("z", "z")
        assert "set by hand" in explorer.text
        await explorer.go(LOSS)
        await explorer.prompt("slash", "the shore")
        assert explorer.session.backward
        assert explorer.session.loss_targets == (1, 6)
        assert "2 of 2 positions" in explorer.text


@pytest.mark.parametrize("model", ["attention", CLASSIFIER])
async def test_a_model_without_logits_of_words_has_no_way_back(model):
    async with exploring(NARROW, model=model) as explorer:
        for key, said in {"b": "no logits of words", "B": "no loss", "&": "nothing to differentiate"}.items():
            await explorer.press(key)
            assert not explorer.session.backward
            assert said in explorer.messages[-1]


async def test_an_encoder_decoder_walks_back_through_both_stacks():
    async with backward(NARROW, model="encoder-decoder", **SIZES) as explorer:
        stops = explorer.session.stops
        assert stops[1] == "output.logits"
        assert any(stop.startswith("encoder.0") for stop in stops)
        assert stops.index("decoder.0.feed_forward.norm") < stops.index("encoder.0.feed_forward.norm")
        for _ in range(3):
            await explorer.press("space")
        assert "∂loss/∂" in explorer.text


async def test_a_large_backward_pass_is_done_by_the_worker():
    async with exploring(WIDE, sizes={"d_model": 128, "layers": 4, "d_ff": 512}) as explorer:
        await explorer.keys("B", "enter")
        await explorer.until(lambda: explorer.app.worker.busy or explorer.session.went_back)
        await explorer.settled()
        assert explorer.session.went_back


async def test_nothing_is_computed_or_shown_beside_while_it_is_off(monkeypatch):
    def fails(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("tui_transformer.session.step_scene.overlay_of", fails)
    monkeypatch.setattr("tui_transformer.session.session.backward", fails)
    async with exploring(WIDE) as explorer:
        await explorer.press("space", "space", "space", "down")
        assert not explorer.main.query_one("#overlay").display


async def test_the_tour_of_gradients_leads_back_from_the_loss():
    async with backward(WIDE, model="decoder") as explorer:
        await explorer.press("t")
        stops = []
        for stop in tour("gradients"):
            await explorer.shown(stop.title)
            stops.append(explorer.stop)
            await explorer.press("space")
        wanted = [stop.step for stop in tour("gradients")]
        assert [name for name, step in zip(stops, wanted, strict=True) if not matching([name], step)] == []
        assert explorer.session.backward
        assert not explorer.main.query(TourPanel)


async def test_without_targets_the_way_back_begins_at_the_second_most_likely_answer():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("b")
        assert explorer.session.backward
        assert explorer.stop == LOSS
        logits = explorer.session.trace["output.logits"][0]
        assert explorer.session.loss_targets[0] == int(np.argsort(-logits)[1])
        assert explorer.session.gradients.loss > 1
        assert explorer.messages[-1] == "backward from statement, the second most likely: B sets other targets"
        await explorer.press("b", "b")
        assert explorer.session.loss_targets[0] == int(np.argsort(-logits)[1])


async def test_where_the_answer_is_no_number_no_target_is_likely():
    session = open_session(ModelOptions(model="question"), "the fox")
    session = session.with_edits(Set("embedding.output", 3e38, rows=1), Scale("embedding.output", 1e38))
    async with exploring(WIDE, session=session) as explorer:
        await explorer.press("b")
        assert explorer.messages[-1].startswith("the answer is no number")
        assert not explorer.session.backward
