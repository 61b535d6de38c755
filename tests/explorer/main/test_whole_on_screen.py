"""The whole: where there is room for it, gone through by keys and clicks; its names, and the ladder of its layers."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer import Model
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.pane_fit import lines_below
from tui_transformer.session.position import Position
from tui_transformer.session.whole.layer_norms import (
    Ladder,
    Rung,
    ladder_columns,
    lengths_of,
    rung_of,
    rungs,
    short,
)
from tui_transformer.session.whole.layout import place_bands
from tui_transformer.session.whole.names import symbol
from tui_transformer.views.step_view import Labels, view_of
from tui_transformer.views.whole import bands

QUERY = "encoder.0.self_attention.query"
LARGE = (120, 36)
BANDS = ("From words to vectors", "Self-attention · layer 0", "Feed-forward · layer 0", "Answer")


def pane(explorer: Explorer) -> WholePane:
    return explorer.main.query_one(WholePane)


@pytest.mark.parametrize("size", [WIDE, LARGE, MEDIUM, SMALL])
async def test_the_whole_opens_where_there_is_room_and_is_one_key_away_elsewhere(size):
    opens = size in (WIDE, LARGE)
    async with exploring(size, model="question", whole=None) as explorer:
        assert pane(explorer).display is opens
        await explorer.press("0")
        assert pane(explorer).display is not opens
        await explorer.press("0")
        assert pane(explorer).display is opens


async def test_every_band_is_in_view_with_the_matrix_and_its_cell_and_tab_and_digits_go_to_other_panes():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        # a click goes to a box, its head and its row
        await explorer.click("softmax, all heads", 11, 2)
        assert explorer.stop == WEIGHTS
        assert (explorer.position.place.head, explorer.position.place.row) == (1, 2)
        explorer.parts.navigation.go_to_cell(head=0, row=0, column=0)
        await explorer.settled()
        shown = ("token     ID", "vocabulary 123", "Q 9 × 8", "softmax, all heads", "head 3", "99.9", "e^(s − max)")
        for title in (*BANDS, *shown):
            assert title in explorer.text
        # backward the arrows are turned round
        forward = explorer.text.count("▸")
        await explorer.press("b")
        await explorer.shown("∂ softmax")
        assert explorer.text.count("◂") > forward / 2
        assert "▸" not in explorer.text
        await explorer.press("b")
        await explorer.shown("softmax, all heads")
        assert "◂" not in explorer.text
        # other panes
        seen = [explorer.view.active]
        for _ in range(3):
            await explorer.press("tab")
            seen.append(explorer.view.active)
        assert seen == ["whole", "matrix", "cell", "whole"]
        await explorer.press("2")
        assert explorer.view.active == "steps"
        assert not pane(explorer).display


async def test_steps_and_arrows_move_the_frame():
    async with exploring(WIDE, model="question", whole=True) as explorer:
        await explorer.press("0", "0")
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.go(QUERY)
            assert "▐" in explorer.text
            await explorer.press("right")
            assert explorer.stop == "encoder.0.self_attention.key"
            await explorer.press("left", "left")
            assert explorer.stop == "encoder.0.self_attention.norm"
            await explorer.press("down")
            assert explorer.stop.startswith("encoder.0.feed_forward")
            await explorer.press("up", "up")
            assert explorer.stop == "tokens"
            await explorer.press("enter")
            assert "Look inside" in explorer.text
            await explorer.press("escape")
            assert explorer.view.active == "whole"


async def test_sixteen_tokens_leave_room_for_every_band_above_their_matrix():
    async with exploring(WIDE, model="story", whole=None) as explorer:
        assert len(explorer.session.encoding.tokens) == 16
        await explorer.go("decoder.0.self_attention.weights")
        assert all(title in explorer.text for title in (*BANDS, "vocabulary 512"))
        assert "␣lived   .03" in explorer.text


async def test_all_bands_are_in_view_at_first_however_long_the_sentence_is():
    text = "the old sailor hid the map"
    async with exploring(LARGE, model=str(REFERENCES / "gpt2"), text=text, whole=None) as explorer:
        assert len(explorer.session.encoding.tokens) == 18
        assert all(band in explorer.text for band in BANDS)
        assert "s, after a space     in the sentence" in explorer.text
        await explorer.press("space")
        assert all(f" {token.id} " in explorer.text for token in explorer.session.encoding.tokens)
        await explorer.press("backspace")
        assert all(band in explorer.text for band in BANDS)


async def test_a_narrow_band_says_what_a_column_is():
    async with exploring(WIDE, model=str(REFERENCES / "t5"), whole=None) as explorer:
        assert "Encoder norm ╮" in explorer.text
        assert "╰ largest of 3 ─╯" in explorer.text


@pytest.mark.parametrize("tokens", [20, 26])
def test_all_bands_share_the_room_that_the_matrix_of_a_long_sentence_leaves(tokens):
    session = open_session(ModelOptions("story"), None, tuple(range(10, 10 + tokens)))
    height = 43 - lines_below(tokens, 45, 43, first=True)
    for stop in ("tokens", WEIGHTS.replace("encoder", "decoder"), "output.probabilities"):
        placed = place_bands(session, Position(stop), 160, height)
        assert len({each.top for each in placed}) == 3
        assert max(each.top + each.lines for each in placed) <= height
        assert "output" in {each.band.name for each in placed}


def test_a_short_target_leaves_its_lines_to_the_bands_after_it():
    session = open_session(ModelOptions(str(REFERENCES / "bart")), None, None)
    assert [len(each.tokens) for each in session.sequences.values()] == [22, 1]
    placed = place_bands(session, Position("decoder.0.cross_attention.weights"), 160, 20)
    rows = {each.band.name: each.rows for each in placed}
    assert rows["decoder.0.self_attention"] == 1
    assert rows["output"] >= 4
    assert rows["decoder.0.cross_attention"] == 4
    lower = place_bands(session, Position("decoder.0.cross_attention.weights"), 160, 18)
    assert [each.band for each in lower] == [each.band for each in placed]


async def test_a_step_reads_only_what_was_not_read_before(monkeypatch):
    read = []
    window = Trace.window
    monkeypatch.setattr(Trace, "window", lambda trace, name, *rest: read.append(name) or window(trace, name, *rest))
    async with exploring(WIDE, model="question", whole=None, at=QUERY) as explorer:
        read.clear()
        await explorer.press("space")
        assert not [name for name in read if name.startswith("encoder.0.feed_forward")]
        # a row of the vocabulary is no row of the sentence
        last = explorer.session.model.vocabulary.size - 1
        for stop in ("embedding.tokens.weight", "vocabulary"):
            await explorer.press("0")
            explorer.parts.navigation.go_into(stop, None, last)
            await explorer.press("0")
            assert "vocabulary 123" in explorer.text
            assert explorer.position.place.row == last


@pytest.mark.parametrize(
    ("model", "size"),
    [("attention", NARROW), ("dates", NARROW), ("copy", WIDE), ("story", NARROW), ("encoder-decoder", WIDE)],
)
async def test_the_whole_of_every_model_can_be_stepped_through(model, size):
    async with exploring(size, model=model, whole=True) as explorer:
        await explorer.keys("0", "0", *["space"] * 12)
        await explorer.press("}", "right", "down", "]")
        assert pane(explorer).display


ATTENTION = "decoder.0.self_attention"


def program_of(family: str) -> Program:
    return Model.load(REFERENCES / family).trace(ids=[5, 6, 7]).program


@pytest.mark.parametrize(
    ("family", "step", "name"),
    [
        ("gpt2", f"{ATTENTION}.masked", "Q Kᵀ ÷ √8, masked"),
        ("gemma2", f"{ATTENTION}.masked", "Q Kᵀ ÷ √24, capped, masked"),
        ("bloom", f"{ATTENTION}.masked", "Q Kᵀ ÷ √8 + ALiBi, masked"),
        ("qwen3", f"{ATTENTION}.query_rotated", "Q, norm, rotated"),
        ("qwen3", f"{ATTENTION}.key_norm", "K, norm"),
        ("llama", f"{ATTENTION}.key_rotated", "K, rotated"),
        ("gpt_oss", f"{ATTENTION}.weights", "softmax with a sink"),
        ("qwen2_moe", "decoder.0.feed_forward.experts.output", "Σ share · expert"),
        ("qwen2_moe", "decoder.0.feed_forward.shared.weighted", "shared expert"),
        ("qwen2_moe", "decoder.0.feed_forward.experts.2.hidden", "x W₁ of expert 2"),
        ("qwen2_moe", "decoder.0.feed_forward.expert_weights", "shares of experts"),
        ("granite", "output.scaled", "scaled"),
        ("bert", "output.transform.hidden", "x W"),
    ],
)
def test_a_step_has_the_name_of_what_was_done(family: str, step: str, name: str) -> None:
    program = program_of(family)
    assert symbol(program, step) == name


def test_what_is_done_to_an_output_before_it_is_added_stands_between_the_two() -> None:
    attention = next(band for band in bands(program_of("gemma2"), ATTENTION + ".scores") if band.name == ATTENTION)
    assert [box.last for box in attention.boxes][-3:] == [
        f"{ATTENTION}.output",
        f"{ATTENTION}.output_norm",
        f"{ATTENTION}.residual",
    ]


def test_distances_come_before_the_scores_that_they_are_added_to() -> None:
    program, own = program_of("deberta-v2"), "encoder.0.self_attention"
    in_order = bands(program, f"{own}.scores")
    attention = next(band for band in in_order if band.name == own)
    shown = [box.last for box in attention.boxes]
    assert shown.index(f"{own}.key_distance_scores") < shown.index(f"{own}.masked")
    assert "encoder.distances" in in_order[0].steps


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
    stops = {
        "vocabulary": "encoder",
        "embedding.output": "encoder",
        "encoder.1.feed_forward.hidden": "encoder.1",
        "decoder.embedding.output": "decoder",
        "output.logits": "",
    }
    assert {stop: rung_of(program, stop) for stop in stops} == stops


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
        lengths = {"encoder.0": (first, second, first)}
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
        await explorer.click_at(width - 10, 5)
        assert explorer.stop == "decoder.1.feed_forward.residual"


async def test_a_double_click_on_a_rung_stays_at_its_layer_where_the_window_moves() -> None:
    async with exploring((100, 30), sizes={"layers": 12}, whole=True, at="encoder.2.self_attention.query") as explorer:
        ladder = [line[-32:].split() for line in explorer.text.splitlines()]
        y = next(y for y, words in enumerate(ladder) if words[:2] == ["│", "6"])
        await explorer.click_at(85, y, times=2)
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
