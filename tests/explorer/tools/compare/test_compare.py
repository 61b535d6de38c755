"""Two traces compared in the explorer, cell by cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, WIDE, Explorer, exploring

from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.explanation import Operand
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.model import Model
from tui_transformer.report.differences import compare_traces
from tui_transformer.session.overlay import apart, details
from tui_transformer.session.position import Position
from tui_transformer.session.scene import heads_of
from tui_transformer.views.step_view import Place

SENTENCE = "The waves crashed forcefully against the shore!"
SCALED = "encoder.0.self_attention.scaled"
VALUE = "encoder.0.self_attention.value"


async def choose(explorer: Explorer, title: str, answer: str | None = None) -> None:
    """Choose an offer by its title, and answer what it asks."""
    await explorer.press("d")
    titles = list(explorer.app.screen._offers)
    await explorer.press(*["down"] * titles.index(title), "enter")
    if answer is not None:
        await explorer.answer(answer)


async def compare(explorer: Explorer, title: str, answer: str | None = None) -> None:
    await choose(explorer, title, answer)
    await explorer.until(lambda: explorer.session.overlay.kind == "trace" and explorer.session.comparison is not None)
    await explorer.settled()


async def test_another_sentence_is_beside_with_the_same_scale_and_cursor_and_both_values():
    other = Model.load("encoder").trace("the shore crashed against the waves")[SCALED]
    async with exploring(WIDE) as explorer:
        await compare(explorer, "another sentence", "the shore crashed against the waves")
        await explorer.go(SCALED, 0, 1, 2)
        assert "“the shore crashed against the waves” · 6 × 6" in explorer.text
        scene, own = explorer.scene, explorer.session.trace[SCALED]
        assert scene.scale == scene.overlay.scale
        assert np.array_equal(scene.overlay.view.window(range(6), range(6)), other[0])
        # both values and the difference
        a, b = float(own[0, 1, 2]), float(other[0, 1, 2])
        for number in (a, b, a - b):
            assert f"{number:.6g}".replace("-", "−") in explorer.text
        await explorer.press("down")
        assert explorer.parts.panes.heat_map("overlay").cursor == (2, 2)
        await explorer.go(SCALED, 0, 7, 7)
        assert "no such cell" in explorer.text
        # the difference is of the part in common, and lies around 0
        await explorer.go(SCALED, 0, 1, 2)
        await explorer.press("z")
        scene = explorer.scene
        assert np.array_equal(scene.drawn.window(range(6), range(6)), own[0, :6, :6].astype(float) - other[0])
        assert scene.alone.scale.kind == "diverging"
        assert scene.alone.scale.low == -scene.alone.scale.high
        assert "common part 6 × 6" in explorer.text
        assert "waves/shore" in explorer.text
        await explorer.shown("Heads · difference")
        tiles = heads_of(explorer.session, scene, Hidden(), lambda _: None).tiles
        assert np.array_equal(tiles[3], own[3, :6, :6].astype(float) - other[3])
        await explorer.press("down")
        assert explorer.scene.place.row == 2


async def test_the_first_step_that_differs_is_named_and_gone_to():
    async with exploring(WIDE) as explorer:
        await compare(explorer, "another sentence", "The waves crashed forcefully against the shore the")
        assert explorer.session.comparison.first == "tokens"
        await explorer.go(SCALED, 0)
        assert "first that differs: tokens (D)" in explorer.text
        difference = explorer.session.comparison.differences[SCALED]
        assert f"largest difference {difference.largest:.3g}, relative {difference.relative:.3g}" in explorer.text
        await explorer.press("D")
        assert explorer.stop == "tokens"
        assert explorer.position.place.row == 7
        await explorer.press("escape")
        assert explorer.stop == SCALED
        # before and after an edit
        await explorer.go(VALUE, 0, 1, 0)
        before = explorer.session.trace[VALUE][0, 1, 0]
        await explorer.press("d", "e")
        await explorer.answer("9")
        await compare(explorer, "before the edits")
        assert explorer.session.comparison.first == VALUE
        assert explorer.scene.working.stored == 9
        assert f"{before:.6g}".replace("-", "−") in explorer.text
        differences = explorer.session.comparison.differences
        assert differences[SCALED].largest == 0
        assert differences["output.logits"].largest > 0


async def test_float64_beside_float32():
    async with exploring(WIDE) as explorer:
        await compare(explorer, "float64")
        await explorer.go(SCALED, 0, 1, 1)
        assert explorer.session.comparison.first is None
        assert "nothing differs" in explorer.text
        assert explorer.scene.overlay.view.window(range(1), range(1)).dtype == np.float64
        await explorer.press("D")
        assert any("nothing differs: 23 steps agree within 1e-05" in message for message in explorer.messages)
        # ended, and brought back
        await explorer.press("d")
        assert explorer.session.overlay.kind == "nothing"
        assert not explorer.main.query_one("#overlay").display
        await explorer.press("u")
        assert explorer.session.overlay.label == "float64"
        # it follows to a new sentence
        await explorer.prompt("slash", "the shore")
        assert explorer.session.overlay.label == "float64"
        assert explorer.session.other.trace["tokens"].tolist() == [1, 6]
        await explorer.until(lambda: explorer.session.comparison is not None)


async def test_two_checkpoints_of_one_family(tmp_path):
    Model.load("encoder", seed=1, layers=2).save(tmp_path / "epoch1")
    Model.load("encoder", seed=2).save(tmp_path / "epoch2")
    async with exploring(WIDE, model=str(tmp_path / "epoch1"), text="the waves") as explorer:
        await compare(explorer, "another checkpoint", str(tmp_path / "epoch2"))
        assert explorer.session.comparison.first == "embedding.tokens"
        await explorer.go("encoder.0.feed_forward.hidden.weight", 0)
        assert "epoch2 · 8 × 128" in explorer.text
        other = Model.load(tmp_path / "epoch2").trace("the waves")
        shown = explorer.scene.overlay.view.window(range(8), range(128))
        assert np.array_equal(shown, other["encoder.0.feed_forward.hidden.weight"])
        # a step that the other lacks is shown alone
        await explorer.go("encoder.1.self_attention.scaled", 0, 1, 1)
        assert explorer.scene.overlay is None
        assert "no such step" in explorer.text


async def test_what_cannot_be_compared_is_said(tmp_path):
    async with exploring(WIDE) as explorer:
        for title, answer, said in (
            ("another checkpoint", "/nowhere", "/nowhere: no such folder"),
            ("another checkpoint", "", "give a checkpoint's folder"),
            ("another checkpoint", "attention", "only one of the same family"),
            ("another sentence", "", "no tokens"),
            ("a dump", str(tmp_path / "none.npz"), "none.npz"),
        ):
            await choose(explorer, title, answer)
            await explorer.until(lambda said=said: any(said in message for message in explorer.messages))
            assert explorer.session.overlay.kind == "nothing"


async def test_one_key_goes_through_difference_value_and_other_in_a_narrow_terminal():
    async with exploring(NARROW) as explorer:
        await compare(explorer, "another sentence", "the shore crashed")
        await explorer.go(SCALED, 0)
        assert "this less “the shore crashed” · common part 3 × 3" in explorer.text
        await explorer.press("z")
        assert f"{SCALED} · 8 × 8 × 8" in explorer.text
        await explorer.press("z")
        assert "“the shore crashed” · 3 × 3" in explorer.text
        assert "this less" not in explorer.text


async def test_a_sentence_with_markup_is_shown_as_it_was_written():
    async with exploring(WIDE) as explorer:
        await compare(explorer, "another sentence", "[bold]the[/] waves \x1b[31m")
        await explorer.go(SCALED, 0)
        assert "“[bold]the[/] waves" in explorer.text
        await explorer.press("z", "z", "z")
        await explorer.shown("Heads · “[bold]the[/] waves")
        assert "\x1b" not in explorer.text


def test_two_lengths_are_compared_in_their_common_part():
    a, b = (Model.load("encoder").trace(text) for text in ("the waves crashed", "the waves"))
    comparison = compare_traces(a, b)
    assert comparison.first == "tokens"
    assert comparison.differences["tokens"].largest == 0
    assert comparison.differences["tokens"].shapes == ((3,), (2,))
    wanted = np.abs(a[VALUE].astype(float)[:, :2] - b[VALUE]).max()
    assert comparison.differences[VALUE].largest == pytest.approx(wanted)


async def test_the_cursor_stays_inside_what_is_drawn():
    """A difference has only the cells that both have, the other step alone may have more than this one."""
    async with exploring(WIDE) as explorer:
        await compare(explorer, "another sentence", "the shore")
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.press("z", "z")
            await explorer.go(SCALED, 0, 7, 7)
            for _ in range(4):
                await explorer.press("z", "end", "G", "Y", "c")
                rows, columns = explorer.scene.drawn.shape
                cursor = explorer.parts.panes.heat_map("matrix").cursor
                place = explorer.scene.place
                assert (place.row, place.column) == cursor == (min(rows, 8) - 1, min(columns, 8) - 1)
    async with exploring(WIDE, text="the shore") as explorer:
        await compare(explorer, "another sentence", "the waves crashed against the shore")
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.go(SCALED, 0)
            for _ in range(4):
                await explorer.press("z", "end", "G", "Y", "c")
                assert (explorer.scene.place.row, explorer.scene.place.column) == (1, 1)
                assert explorer.parts.panes.heat_map("matrix").cursor == (1, 1)
                assert not explorer.app.failure


def dump_of(folder: Path, wrong: bool) -> Path:
    """A few steps of the encoder, the scores divided by √d_model or as they should be."""
    trace = Model.load("encoder").trace(SENTENCE)
    at = "encoder.0.self_attention"
    arrays = {name: trace[f"{at}.{name}"].astype(float) for name in ("query", "key", "value")}
    scores = arrays["query"] @ arrays["key"].transpose(0, 2, 1) / np.sqrt(8 if wrong else arrays["query"].shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    arrays |= {"scaled": scores, "weights": weights, "context": weights @ arrays["value"]}
    path = folder / "dump.npz"
    np.savez(path, **{f"{at}.{name}": array for name, array in arrays.items()})
    return path


async def test_a_wrong_dump_is_shown_at_its_first_wrong_cell_with_both_values_and_marked(tmp_path):
    path = dump_of(tmp_path, wrong=True)
    async with exploring(WIDE, whole=None) as explorer:
        await compare(explorer, "a dump", str(path))
        assert explorer.position.stop == SCALED
        place = explorer.position.place
        with np.load(path) as dump:
            theirs = dump[SCALED]
        ours = explorer.session.trace[SCALED]
        cell = (place.head, place.row, place.column)
        assert cell == np.unravel_index(np.abs(theirs - ours).argmax(), ours.shape)
        assert np.allclose(explorer.session.other.trace[SCALED], theirs)
        assert explorer.session.comparison.first == SCALED
        # the steps that are wrong themselves, and those that follow
        marks = details(explorer.session)
        assert marks[SCALED].startswith("≠")
        assert marks["encoder.0.self_attention.weights"].startswith("↳")
        assert not marks["encoder.0.self_attention.scores"].startswith(("≠", "↳"))
        assert "wrong itself" in apart(explorer.session, SCALED)
        assert f"follows from {SCALED}" in apart(explorer.session, "encoder.0.self_attention.output")
        messages = explorer.app.messages.text.splitlines()
        assert any("divide by √d_k" in each and "2 more steps differ and follow from it" in each for each in messages)
        # their boxes in the whole
        lines = explorer.text.split("\n")
        title = next(line for line in lines if "softmax" in line)
        assert "≠Q Kᵀ ÷ √" in title
        assert "↳softmax" in title
        assert title.count("≠") == 1
        assert not any(mark in line for line in lines for mark in "≠↳" if "embedding" in line)


async def test_a_right_dump_is_said_to_agree(tmp_path):
    path = dump_of(tmp_path, wrong=False)
    async with exploring(WIDE) as explorer:
        stop = explorer.position.stop
        await compare(explorer, "a dump", str(path))
        assert explorer.position.stop == stop
        assert any("6 arrays agree" in message for message in explorer.messages)


async def test_a_head_that_the_other_model_lacks_is_beside_no_other_head_and_can_be_edited(tmp_path):
    Model.load("encoder", heads=2).save(tmp_path / "two")
    async with exploring(NARROW, text="the waves") as explorer:
        await compare(explorer, "another checkpoint", str(tmp_path / "two"))
        await explorer.go(SCALED, 5, 0, 1)
        assert explorer.scene.overlay is None
        assert "this less" not in explorer.text
        await explorer.go(SCALED, 1, 0, 1)
        assert "this less two · 2 × 2" in explorer.text
        tiles = heads_of(explorer.session, explorer.scene, Hidden(), lambda _: None).tiles
        assert [bool(np.isfinite(tile).any()) for tile in tiles] == [True] * 2 + [False] * 6
        # what only this model has can be set in it alone
        await explorer.go(SCALED, 5, 0, 1)
        await explorer.prompt("e", "9")
        assert explorer.session.trace[SCALED][5, 0, 1] == 9
        assert not explorer.session.other.edits
        assert not explorer.messages
        await explorer.go(SCALED, 1, 0, 1)
        await explorer.prompt("e", "7")
        assert [edit.index for edit in explorer.session.other.edits] == [(1, 0, 1)]


async def test_the_key_to_what_differs_first_is_one_that_there_is_and_a_chart_says_whose_numbers_it_draws():
    async with exploring(WIDE, preferences=Preferences(), text="the shore") as explorer:
        await explorer.press("c", "s")
        await explorer.answer("the waves")
        await explorer.go(SCALED, 0)
        await explorer.press("c", "b")
        assert "first that differs: tokens (c n)" in explorer.text
        await explorer.press("c", "b", "c", "b")
        assert explorer.drawn == "overlay"
        assert f"“the waves” · {SCALED} · head 0 · query the" in explorer.text


async def test_a_cell_that_is_gone_to_is_on_the_screen_also_where_the_other_has_none():
    async with exploring(NARROW, model="question", text="where is the map ?", preferences=Preferences()) as explorer:
        await explorer.press("c", "s")
        await explorer.answer("who is")
        port, weights = explorer.parts.port, "encoder.0.self_attention.weights"
        # a token that is found
        await explorer.go(weights, 0)
        await explorer.prompt("/", "?")
        assert "token 4, ?" in explorer.messages[-1]
        assert (explorer.drawn, explorer.scene.place.row) == ("value", 4)
        # a term that is followed, and a token that is clicked
        for way in (
            lambda: port.follow_operand(Operand("encoder.0.self_attention.masked", (0, 0, 4), 0.0)),
            lambda: port.go_to_token(0, 4),
            lambda: port.visit(Position(weights, Place(0, 1, 3))),
        ):
            port.look(wanted="difference")
            await explorer.go(weights, 0)
            assert "common part 2 × 2" in explorer.text
            way()
            await explorer.settled()
            assert (explorer.drawn, explorer.scene.place) == ("value", explorer.position.place)
            assert max(explorer.scene.place.row, explorer.scene.place.column) > 2
        # one that it has is shown as it was wanted
        port.look(wanted="difference")
        await explorer.go(weights, 0)
        port.visit(Position(weights, Place(0, 1, 1)))
        await explorer.settled()
        assert explorer.drawn == "difference"


async def test_the_same_in_another_precision_is_not_beside_other_weights():
    async with exploring(WIDE, model="encoder", device="cpu", preferences=Preferences()) as explorer:
        await explorer.press("c", "f")
        assert "beside float64" in explorer.text
        await explorer.press("m", "d")
        assert explorer.session.model.seed == 1
        assert "beside" not in explorer.text
        await explorer.press("u")
        assert "beside float64" in explorer.text


async def test_both_are_scrolled_alike_again_where_one_was_alone():
    async with exploring((120, 36), model="question", at="embedding.output") as explorer:
        await explorer.open("compare-precision")
        first, second = (explorer.parts.panes.heat_map(name) for name in ("matrix", "overlay"))
        await explorer.press("4", "end", *["left"] * 5)
        assert first.scroll_offset == second.scroll_offset != (0, 0)
        await explorer.press(*["z"] * 4)
        assert explorer.drawn == "both"
        assert first.scroll_offset == second.scroll_offset != (0, 0)
