"""Tokens that are left out of attention weights; the rest of every row sums to 1 again."""

from __future__ import annotations

import numpy as np
from driving import WIDE, exploring

from tui_transformer.analysis.tokens import Hidden
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.step_scene import without_hidden
from tui_transformer.views.step_view import Place, view_of

WEIGHTS, SCALED = "encoder.0.self_attention.weights", "encoder.0.self_attention.scaled"
TEXT = "[CLS] the waves crashed [SEP]"


def words(folder):
    path = folder / "words.txt"
    path.write_text("[UNK] [PAD] [CLS] [SEP] the waves crashed")
    return str(path)


async def test_special_tokens_are_hidden_and_the_rest_is_renormalised(tmp_path):
    async with exploring(WIDE, text=TEXT, vocab=words(tmp_path)) as explorer:
        explorer.parts.port.go(Position(WEIGHTS, Place(0, 1, 1)))
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
        await explorer.press("i")
        assert np.array_equal(explorer.scene.view.window(range(5), range(5)), stored)
        assert "every row sums to 1" in explorer.text


async def test_the_first_token_can_be_hidden_too(tmp_path):
    async with exploring(WIDE, text="the waves crashed", vocab=words(tmp_path)) as explorer:
        explorer.parts.port.go(Position(WEIGHTS, Place(0, 1, 1)))
        await explorer.press("I")
        shown = explorer.scene.view.window(range(3), range(3))
        assert np.isnan(shown[:, 0]).all()
        np.testing.assert_allclose(shown[:, 1:].sum(axis=1), 1, rtol=1e-6)
        assert "first token hidden" in explorer.text


async def test_other_steps_are_shown_as_they_are(tmp_path):
    async with exploring(WIDE, text=TEXT, vocab=words(tmp_path)) as explorer:
        await explorer.press("i")
        explorer.parts.port.go(Position(SCALED, Place(0, 1, 1)))
        await explorer.settled()
        shown = explorer.scene.view.window(range(5), range(5))
        assert np.array_equal(shown, explorer.session.trace[SCALED][0])


async def test_the_cell_says_what_is_stored_and_what_is_drawn(tmp_path):
    async with exploring(WIDE, text=TEXT, vocab=words(tmp_path)) as explorer:
        explorer.parts.port.go(Position(WEIGHTS, Place(1, 2, 1)))
        await explorer.press("i", "right")
        row = explorer.session.trace[WEIGHTS][1, 2]
        left, stored = explorer.scene.values
        assert explorer.scene.working.stored == stored.value == row[2]
        np.testing.assert_allclose(left.value, row[2] / row[1:4].sum(), rtol=1e-6)
        await explorer.shown("  renormalised", "  explained here")
        await explorer.press("home")
        left, _ = explorer.scene.values
        assert (left.value, left.note) == (0, "key hidden")


async def test_the_pictures_of_heads_leaves_the_same_tokens_out(tmp_path):
    async with exploring(WIDE, text=TEXT, vocab=words(tmp_path)) as explorer:
        explorer.parts.port.go(Position(WEIGHTS, Place(0, 1, 1)))
        await explorer.press("i")
        tiles = explorer.main.query_one(HeadThumbnails).tiles
        stored = explorer.session.trace[WEIGHTS]
        for tile, weights in zip(tiles, stored, strict=True):
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
