"""The ladder of layers: the length of a token's stream after each, what sublayers add, and where one is."""

from __future__ import annotations

import numpy as np
import pytest
from driving import WIDE, exploring

from tui_transformer import Model
from tui_transformer.explorer.main.whole.ladder import Rung, ladder_columns, lengths_of, rung_of, rungs
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.main.whole.rungs import Ladder

DEEP = {"d_model": 16, "heads": 2, "layers": 30, "d_ff": 32}


def test_a_rung_is_the_norm_of_the_stream_and_of_what_each_sublayer_adds() -> None:
    trace = Model.load("copy").trace("q f a s m")
    first, *layers = rungs(trace.program)
    assert first == Rung("decoder", "embedding.output")
    assert [rung.layer for rung in layers] == ["decoder.0", "decoder.1"]
    assert layers[1].added == ("decoder.1.self_attention.output", "decoder.1.feed_forward.output")
    lengths = lengths_of(trace, layers[1], 2)
    assert lengths.stream == pytest.approx(np.linalg.norm(trace["decoder.1.feed_forward.residual"][2]), rel=1e-6)
    assert lengths.added[0] == pytest.approx(np.linalg.norm(trace["decoder.1.self_attention.output"][2]), rel=1e-6)


def test_two_stacks_are_two_ladders() -> None:
    program = Model.load("dates").trace("May 3, 2021").program
    both = rungs(program)
    assert [rung.name for rung in both] == ["x", "0", "1", "x", "0", "1"]
    assert [rung.stack for rung in both] == ["encoder"] * 3 + ["decoder"] * 3
    headings = [pieces[0][0].strip() for pieces, rung in Ladder(both, columns=18).lines(20) if rung is None]
    assert headings == ["encoder", "decoder"]


def test_what_enters_a_stack_and_what_leaves_the_last_have_their_places() -> None:
    program = Model.load("dates").trace("May 3, 2021").program
    stops = (
        "vocabulary",
        "embedding.output",
        "encoder.1.feed_forward.hidden",
        "decoder.embedding.output",
        "output.logits",
    )
    assert [rung_of(program, stop) for stop in stops] == ["encoder", "encoder", "encoder.1", "decoder", ""]


def test_there_is_a_ladder_where_there_are_layers_and_room() -> None:
    deep, flat = Model.load("copy").trace("q f").program, Model.load("question").trace("where ?").program
    assert ladder_columns(deep, 160) > ladder_columns(deep, 120) > ladder_columns(deep, 80) == 0
    assert ladder_columns(flat, 160) == 0


async def test_thirty_layers_are_a_window_around_the_current_one() -> None:
    async with exploring(WIDE, model="decoder", sizes=DEEP, text="the waves", whole=None) as explorer:
        assert "‖x‖" in explorer.text
        await explorer.press(*["}"] * 25)
        here = [line[-32:].split() for line in explorer.text.split("\n") if "│ ▸" in line[-32:]]
        assert [line[2] for line in here] == [explorer.stop.split(".")[1]]
        assert explorer.stop.startswith("decoder.2")
        assert "‖x‖ +attn   +ff" in explorer.text
        assert "of 32 · norms" in explorer.text
        await explorer.press(*["}"] * 12)
        assert " 29 " in explorer.text


async def test_a_click_on_a_rung_goes_to_that_layer() -> None:
    async with exploring(WIDE, model="copy", whole=None) as explorer:
        width = explorer.main.query_one(WholePane).size.width
        await explorer.pilot.click(offset=(width - 10, 5))
        await explorer.settled()
        assert explorer.stop == "decoder.1.feed_forward.residual"
