"""The ladder of layers: the length of a token's stream after each, what sublayers add, and where one is."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from driving import WIDE, exploring

from tui_transformer import Model
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.session.whole.layer_norms import (
    Ladder,
    Lengths,
    Rung,
    ladder_columns,
    lengths_of,
    rung_of,
    rungs,
    short,
)
from tui_transformer.views.numbers import share_bar
from tui_transformer.views.step_view import Labels, view_of

DEEP = {"d_model": 16, "heads": 2, "layers": 30, "d_ff": 32}

STREAM_AND_ADDED = ("feed_forward.residual", "self_attention.output")


def test_a_rung_is_the_norm_of_the_stream_and_of_what_each_sublayer_adds() -> None:
    trace = Model.load("copy").trace("q f a s m")
    first, *layers = rungs(trace.program)
    assert first == Rung("decoder", "embedding.output")
    assert [rung.layer for rung in layers] == ["decoder.0", "decoder.1"]
    assert layers[1].added == ("decoder.1.self_attention.output", "decoder.1.feed_forward.output")
    lengths = lengths_of(partial(view_of, trace, labels=Labels()), layers[1], range(2, 9))
    stream, added = (np.linalg.norm(trace[f"decoder.1.{name}"], axis=1) for name in STREAM_AND_ADDED)
    assert lengths.shape == (7, 3)
    np.testing.assert_allclose(lengths[:, 0], [*stream[2:], *[stream[-1]] * (9 - len(stream))], rtol=1e-6)
    np.testing.assert_allclose(lengths[: len(added) - 2, 1], added[2:], rtol=1e-6)


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


@pytest.mark.parametrize("columns", [18, 32, 60])
def test_numbers_of_a_rung_never_touch(columns: int) -> None:
    numbers = [0.0, 1e-38, 1.23e-5, 0.0123, 0.999, 54.5, 999.6, 1234.5, 22_712.0, 99_999.9, 1.23e10, 3.4e38, np.inf]
    added = ("e.0.self_attention.output", "e.0.feed_forward.output")
    rung = Rung("encoder.0", "stream", added)
    for first, second in pairwise([*numbers, *reversed(numbers)]):
        lengths = {"encoder.0": Lengths(first, (second, first))}
        line = "".join(text for text, _ in Ladder((rung,), lengths, columns=columns).lines(2)[1][0])
        said = re.sub("[▏▎▍▌▋▊▉█░]", " ", line).split()[-3 if columns >= 32 else -1 :]
        wanted = (first, second, first) if columns >= 32 else (first,)
        read = [float(each.replace("∞", "inf")) for each in said]
        assert read == pytest.approx(wanted, rel=0.5)
        assert len(line) <= columns


def test_as_many_digits_are_shown_as_fit() -> None:
    assert [short(each).strip() for each in (54.5, 2.27e4, 1234.5, 1.23e10)] == ["54.5", "22700", "1234", "1e10"]


async def test_a_click_on_a_rung_goes_to_that_layer() -> None:
    async with exploring(WIDE, model="copy", whole=None) as explorer:
        width = explorer.main.query_one(WholePane).size.width
        await explorer.pilot.click(offset=(width - 10, 5))
        await explorer.settled()
        assert explorer.stop == "decoder.1.feed_forward.residual"


async def test_a_double_click_on_a_rung_stays_at_its_layer_where_the_window_moves() -> None:
    async with exploring((100, 30), sizes={"layers": 12}, whole=True, at="encoder.2.self_attention.query") as explorer:
        ladder = [line[-32:].split() for line in explorer.text.splitlines()]
        y = next(y for y, words in enumerate(ladder) if words[:2] == ["│", "6"])
        await explorer.pilot.click(offset=(85, y), times=2)
        await explorer.settled()
        assert explorer.stop.startswith("encoder.6.")


async def test_the_current_layer_is_on_the_screen_however_few_lines_there_are() -> None:
    async with exploring(WIDE, model="decoder", sizes=DEEP, text="the waves", whole=True) as explorer:
        assert "‖x‖" in explorer.text
        # thirty layers are a window around the current one
        await explorer.press(*["}"] * 25)
        layer = explorer.stop.split(".")[1]
        here = [line[-32:].split() for line in explorer.text.split("\n") if "│ ▸" in line[-32:]]
        assert [line[2] for line in here] == [layer]
        assert explorer.stop.startswith("decoder.2")
        assert "‖x‖ +attn   +ff" in explorer.text
        assert "of 32 · norms" in explorer.text
        for lines in (11, 8, 7, 6):
            await explorer.resize(160, lines)
            here = [line[-32:].split() for line in explorer.text.split("\n") if "▸" in line[-32:]]
            assert [line[line.index("▸") + 1] for line in here] == [layer], explorer.text
            assert ("‖x‖" in explorer.text) == (lines > 6)  # the heading stands above it where both have room
        await explorer.resize(*WIDE)
        await explorer.press(*["}"] * 12)
        assert " 29 " in explorer.text


def test_what_is_no_number_has_no_bar() -> None:
    assert share_bar(np.nan, 4) == "    "
    assert share_bar(np.inf, 4) == "████"
