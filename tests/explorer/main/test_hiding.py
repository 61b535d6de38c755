"""Tokens that are left out of attention weights; the rest of every row sums to 1 again."""

from __future__ import annotations

import numpy as np
import pytest
from driving import WEIGHTS, WIDE, exploring

from tui_transformer.analysis.tokens import Hidden
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.scene import heads_of
from tui_transformer.session.step_scene import without_hidden
from tui_transformer.session.view_state import Overlay
from tui_transformer.views.step_view import view_of

SCALED = "encoder.0.self_attention.scaled"
TEXT = "[CLS] the waves crashed [SEP]"


@pytest.fixture
def words(tmp_path) -> str:
    path = tmp_path / "words.txt"
    path.write_text("[UNK] [PAD] [CLS] [SEP] the waves crashed")
    return str(path)


async def test_special_tokens_are_hidden_and_the_rest_is_renormalised(words):
    async with exploring(WIDE, text=TEXT, vocab=words) as explorer:
        await explorer.go(WEIGHTS, 0, 1, 1)
        await explorer.press("i")
        scene = explorer.scene
        stored = explorer.session.trace[WEIGHTS][0]
        shown = scene.view.window(range(5), range(5))
        assert np.isnan(shown[:, [0, 4]]).all()
        np.testing.assert_allclose(shown[:, 1:4], stored[:, 1:4] / stored[:, 1:4].sum(axis=1, keepdims=True), rtol=1e-6)
        np.testing.assert_allclose(shown[:, 1:4].sum(axis=1), 1, rtol=1e-6)
        assert "special tokens hidden" in explorer.text
        assert "×" in explorer.text
        assert scene.scale.high >= np.nanmax(shown)
        assert np.array_equal(explorer.session.trace[WEIGHTS][0], stored)
        # other steps are shown as they are
        await explorer.go(SCALED)
        shown = explorer.scene.view.window(range(5), range(5))
        assert np.array_equal(shown, explorer.session.trace[SCALED][0])
        # shown again
        await explorer.go(WEIGHTS)
        await explorer.press("i")
        assert np.array_equal(explorer.scene.view.window(range(5), range(5)), stored)
        assert "every row sums to 1" in explorer.text
        # the first token can be hidden too
        await explorer.press("I")
        shown = explorer.scene.view.window(range(5), range(5))
        assert np.isnan(shown[:, 0]).all()
        np.testing.assert_allclose(shown[:, 1:].sum(axis=1), 1, rtol=1e-6)
        assert "first token hidden" in explorer.text


async def test_cells_and_pictures_of_heads_leave_out_the_same_tokens(words):
    async with exploring(WIDE, text=TEXT, vocab=words) as explorer:
        await explorer.go(WEIGHTS, 1, 2, 1)
        await explorer.press("i", "right")
        stored = explorer.session.trace[WEIGHTS]
        row = stored[1, 2]
        drawn, there = explorer.scene.values
        assert explorer.scene.working.stored == there.value == row[2]
        np.testing.assert_allclose(drawn.value, row[2] / row[1:4].sum(), rtol=1e-6)
        await explorer.shown("  renormalised", "  explained here")
        await explorer.press("home")
        drawn, _ = explorer.scene.values
        assert (drawn.value, drawn.note) == (0, "key hidden")
        # the pictures of heads
        for tile, weights in zip(explorer.main.query_one(HeadThumbnails).tiles, stored, strict=True):
            assert np.isneginf(tile[:, [0, 4]]).all()
            np.testing.assert_allclose(tile[:, 1:4], weights[:, 1:4] / weights[:, 1:4].sum(1, keepdims=True), rtol=1e-6)
        assert "Heads · renormalised" in explorer.text
        await explorer.press("i")
        assert np.array_equal(explorer.main.query_one(HeadThumbnails).tiles, stored)
        assert explorer.main.query_one(HeadThumbnails).border_title == "Heads"


def test_part_of_a_row_is_that_part_of_the_whole_row():
    session = open_session(ModelOptions(model="question"), "[CLS] where is the cat [SEP]", None)
    whole = view_of(session.trace, WEIGHTS, session.labels)
    view = without_hidden(session, whole, Hidden(special=True, first=True))
    size = whole.columns.size
    np.testing.assert_array_equal(view.window(range(2), range(2, 4)), view.window(range(2), range(size))[:, 2:4])


async def test_what_is_compared_is_without_them_too(words):
    """The difference of what is left of both: never of what is left of one and all of the other."""
    other = "[CLS] crashed the waves waves [SEP]"

    def left(weights):
        return weights[:, 1:4] / (weights.sum(axis=1, keepdims=True) - weights[:, [0]] - weights[:, [-1]])

    async with exploring(WIDE, text=TEXT, vocab=words) as explorer:
        port = explorer.parts.port
        port.change(port.session.with_overlay(Overlay("trace", "other", text=other)))
        await explorer.go(WEIGHTS, 0, 1, 1)
        await explorer.press("i")
        whole = [session.trace[WEIGHTS].astype(float) for session in (port.session, port.session.other)]
        own, there = (left(weights[0]) for weights in whole)
        assert explorer.drawn == "both"
        np.testing.assert_allclose(explorer.scene.overlay.view.window(range(1, 4), range(1, 4)), there[1:4], rtol=1e-5)
        assert explorer.scene.scale.high >= there.max()
        await explorer.press("z")
        assert "special tokens hidden" in explorer.text
        difference = explorer.scene.drawn.window(range(1, 4), range(1, 4))
        np.testing.assert_allclose(difference, own[1:4] - there[1:4], atol=1e-6)
        drawn, stored = explorer.scene.values[-2:]
        assert (drawn.symbol, drawn.note) == ("as drawn", "renormalised")
        assert drawn.value == pytest.approx(own[1, 0] - there[1, 0], abs=1e-6)
        assert stored.value == whole[0][0, 1, 1]
        hidden = Hidden(special=True)
        tiles = heads_of(port.session, explorer.scene, hidden, lambda _: None).tiles
        one, two = (left(weights[3]) for weights in whole)
        np.testing.assert_allclose(tiles[3][1:4, 1:4], one[1:4] - two[1:4], atol=1e-6)
        await explorer.press("z", "z")
        assert explorer.drawn == "overlay"
        assert explorer.scene.values[-2].value == pytest.approx(there[1, 0], abs=1e-6)


async def test_a_gradient_is_drawn_whole_and_its_cell_says_so(words):
    async with exploring(WIDE, text=TEXT, vocab=words) as explorer:
        await explorer.press("b")
        await explorer.go(WEIGHTS, 0, 1, 0)
        await explorer.press("i")
        for drawn, said in (("both", ["value", "as drawn"]), ("overlay", ["value"])):
            assert explorer.drawn == drawn
            assert [each.symbol for each in explorer.scene.values] == said
            await explorer.press("z")
        assert [each.symbol for each in explorer.scene.values] == ["∂loss/∂x", "as drawn", "as stored"]
