"""Steering in the writing screen: a slider whose number is an edit, and the text with and without beside each other."""

from __future__ import annotations

import shlex
import subprocess
import sys

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer import Add, Features, Model, Scale, direction, generate
from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.keys import meanings, read
from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.explorer.tools.generate.draft import AT_FIRST
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.generation.text import token_texts
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.edit_format import as_written, words, written
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position
from tui_transformer.session.steering import Steer, round_up, said, same
from tui_transformer.views.step_view import Place

TEXT, AT = "Once there was", "decoder.1.feed_forward.residual"
ADDED = "1.output += 0.5*direction('I am happy', 'I am sad')"


def screen(explorer: Explorer) -> GenerateScreen:
    return explorer.screen(GenerateScreen)


async def steer(explorer: Explorer, written: str = ADDED) -> GenerateScreen:
    await explorer.prompt("e", written)
    return await explorer.front(GenerateScreen)


def expected(strength: float, count: int = AT_FIRST) -> str:
    """What the library writes."""
    model = Model.load("story")
    toward = direction(model, ["I am happy"], ["I am sad"], at="1.output")
    return generate(model, TEXT, edits=[toward.add(strength)], greedy=True, max_new_tokens=count)


def texts(shown: GenerateScreen) -> tuple[str, str]:
    """What was written without, and with what is added."""
    draft = shown.writing.draft
    without, own = ("".join(token_texts(each.writer.model, each.ids)) for each in (draft.without, draft))
    return without.removeprefix(TEXT), own.removeprefix(TEXT)


async def test_the_text_is_written_with_and_without_and_the_slider_is_an_edit_of_the_explorer() -> None:
    async with exploring(WIDE, model="story", text=TEXT) as explorer:
        await explorer.press("W")
        shown = await steer(explorer)
        assert texts(shown) == (expected(0), expected(0.5))
        assert "−1 ──" in explorer.text
        assert "with + 0.5 × direction" in explorer.text
        await explorer.press("plus", "plus", "minus", "plus")
        assert texts(shown) == (expected(0), expected(0.6))
        await explorer.press("space")
        assert texts(shown) == (expected(0, AT_FIRST + 1), expected(0.6, AT_FIRST + 1))
        await explorer.leave()
        (edit,) = explorer.session.edits
        assert (edit.name, edit.strength) == (AT, 0.6)
        assert "+ 0.6 × direction('I am happy', 'I am sad')" in explorer.text
        await explorer.press("u")
        assert not explorer.session.edits


async def test_what_cannot_be_added_is_said_and_undo_takes_back_each_move() -> None:
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        await explorer.press("W", "plus")
        assert "nothing is added" in explorer.messages[-1]
        for wrong in ("1.output = 0", "output.weight += 1", "9.output += 1", "1.output += 'a"):
            await explorer.prompt("e", wrong)
            assert explorer.app.screen.query(".problem.-said")
            await explorer.press("escape")
        shown = await steer(explorer, "1.output += direction('', 'I am sad')")
        assert shown.steering is None
        assert shown.writing.draft.ids == explorer.session.encoding.ids
        assert not explorer.app.failures.told
        # what can, moved and undone
        await steer(explorer)
        await explorer.press("plus")
        assert shown.steering.strength == 0.55
        await explorer.press("u")
        assert shown.steering.strength == 0.5
        assert texts(shown)[1] == expected(0.5)
        await explorer.press("u")
        assert shown.steering is None
        assert "without" not in explorer.text
        # nothing ends it
        await explorer.press("U")
        await steer(explorer, "")
        assert shown.steering is None
        assert shown.writing.draft.without is None
        await explorer.press("escape")
        assert not explorer.session.edits


async def test_what_an_edit_adds_is_on_the_slider_and_other_edits_act_on_both_texts() -> None:
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        scaled, added = Scale("decoder.0.self_attention.context", 0.5, heads=0), Add(AT, 0.5)
        explorer.parts.port.change(explorer.session.with_edits(added, scaled))
        await explorer.press("W", "plus")
        shown = screen(explorer)
        model, end = Model.load("story"), shown.writing.draft.end
        assert end == round_up(float(np.abs(explorer.session.base[AT]).max()))
        strength = shown.writing.draft.steering.values
        written = [
            generate(model, TEXT, edits=edits, greedy=True, max_new_tokens=AT_FIRST)
            for edits in ([scaled], [Add(AT, strength), scaled])
        ]
        assert texts(shown) == tuple(written)
        assert strength > 0.5


async def test_the_line_for_the_shell_writes_the_same_text_and_chooses_no_token_by_hand() -> None:
    async with exploring(NARROW, model="story", text=TEXT) as explorer:
        for key in ("W", "space", "y"):
            await explorer.press(key)
        assert explorer.messages[-1].startswith("copied: ")
        for key in ("down", "enter", "space", "y"):
            await explorer.press(key)
        assert explorer.messages[-1].startswith("copied, without what was chosen otherwise: ")
        await explorer.leave()
        await explorer.press("W")
        shown = await steer(explorer)
        await explorer.press("minus", "y")
        line = explorer.messages[-1].removeprefix("copied: ")
        assert "--edit \"decoder.1.feed_forward.residual += 0.45*direction('I am happy', 'I am sad')\"" in line
        command = [sys.executable, "-m", "tui_transformer", *shlex.split(line)[1:]]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ended.stdout.rstrip("\n") == texts(shown)[1]


async def test_a_feature_of_the_dictionary_is_added() -> None:
    async with exploring(WIDE, model="story", text=TEXT) as explorer:
        model = explorer.session.model
        featured = model.with_features(Features.of(model))
        explorer.parts.port.change(explorer.session.with_model(featured, is_the_same=True))
        explorer.parts.port.visit(Position("decoder.1.output.features", Place(0, 1, 7)))
        await explorer.settled()
        await explorer.press("W", "e")
        await explorer.press("enter")
        shown = screen(explorer)
        assert "features 7 + 4" in explorer.text
        added = Add("decoder.1.output.features", 4, columns=7)
        assert texts(shown)[1] == generate(featured, TEXT, edits=[added], greedy=True, max_new_tokens=AT_FIRST)


@pytest.mark.parametrize("model", ["story", "encoder-decoder", "decoder"])
async def test_it_is_drawn_at_every_size_and_for_every_model_that_writes(model) -> None:
    async with exploring(NARROW, model=model, **({"text": TEXT} if model == "story" else {})) as explorer:
        await explorer.press("W", "e")
        await explorer.press("enter")
        shown = screen(explorer)
        async for _ in explorer.sizes(NARROW, SMALL, (20, 8)):
            await explorer.press("minus", "minus")
            assert isinstance(shown.steering, Steer)
            assert same(shown.writing.draft.steering, shown.steering)


def test_edits_that_add_are_written_as_they_were_read() -> None:
    model = Model.load("story")
    program = model.program(4)
    for text in (
        "1.output += 4*'love' - 2*'hate'",
        "1.output -= 2*direction('a', 'b', mean)",
        "1.output += 0*'love' - 0*'hate'",
    ):
        change = written(program, text).change(model).placed(program, {})
        again = written(program, as_written(change, program)).change(model).placed(program, {})
        np.testing.assert_array_equal(np.asarray(again.values), np.asarray(change.values))
        assert words(again, program) == words(change, program)
    vector = direction(model, ["a"], ["b"], at="1.output", position="mean").vector
    change = written(program, "1.output -= 2*direction('a', 'b', mean)").change(model)
    np.testing.assert_allclose(change.values, -2 * vector)


def test_without_a_screen_the_same_is_written_and_slid() -> None:
    reader, known = Reader(Exploration.begun(open_session(ModelOptions("story"), TEXT))), meanings({})

    def typed(line: str) -> str:
        return reader.answer(read(line, known))

    assert typed("generate") == f"written: “{TEXT}{expected(0)}”."
    typed(f"set {ADDED}")
    assert f"without: “{TEXT}{expected(0)}”; with {AT} + 0.6 × " in typed("2+")
    assert f"“{TEXT}{expected(0.6)}”; its slider goes from −1 to 1" in typed("generate 16")
    assert f"“{TEXT}{expected(-1)}”" in typed("strength -1")
    assert "nothing changed" in typed("-")
    for _ in range(3):
        typed("u")
    with pytest.raises(InputError, match="nothing to undo"):
        typed("u")
    for wrong in ("strength 2", "+", "generate x", "generate 0"):
        with pytest.raises(InputError):
            typed(wrong)


async def test_rows_that_another_prompt_has_not_and_words_that_are_escapes_do_no_harm() -> None:
    async with exploring(MEDIUM, model="story", text=f"{TEXT} a small girl") as explorer:
        await explorer.press("W")
        shown = await steer(explorer, "1.output[4:6] += 'a\x1b[31m[/]' - 'sad'")
        assert "has no rows" not in explorer.text
        assert "\x1b" not in explorer.text
        assert shown.writing.draft.steering is not None
        await explorer.prompt("slash", "The")
        assert shown.steering is None
        await explorer.press("space", "u", "u", "escape")
        assert not explorer.app.failures.told
        assert not explorer.app.screen.query("GenerateScreen")


@pytest.mark.parametrize(
    ("model", "first", "second"), [("story", TEXT, "the crow"), ("dates", "May 2021", "June 2020")]
)
async def test_undo_has_the_prompt_back_for_the_line_of_the_shell_and_what_is_opened(model, first, second) -> None:
    async with exploring(NARROW, model=model, text=first) as explorer:
        await explorer.press("W")
        await explorer.press("space")
        await explorer.prompt("slash", second)
        await explorer.press("y")
        assert f"--text '{second}'" in explorer.messages[-1]
        for key in ("u", "y"):
            await explorer.press(key)
        assert f"--text '{first}'" in explorer.messages[-1]
        await explorer.press("o")
        assert explorer.session.encoding.text.startswith(first)


async def test_what_is_added_to_probabilities_is_left_out_and_the_text_is_written() -> None:
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        await explorer.prompt("e", "output.probabilities += 0.1")
        await explorer.press("W", "space")
        assert screen(explorer).steering is None
        assert len(screen(explorer).writing.draft.shares) == 1
        await explorer.leave()
        assert len(explorer.session.edits) == 1


def test_the_slider_says_which_heads_and_rows_it_is_of() -> None:
    session = open_session(ModelOptions("story"), TEXT)
    edits = {
        "decoder.0.self_attention.scaled[3, :, 1] += 2": "decoder.0.self_attention.scaled head 3 1 + 2",
        "1.output[2:] += 2*'love'": f"{AT} rows from 2 + 2 × 'love'",
        "1.output[2] -= 2": f"{AT} row 2 − 2",
    }
    for text, expected in edits.items():
        change = written(session.base.program, text).change(session.model)
        assert said(session.with_edits(change).edits[0]) == expected


@pytest.mark.parametrize(("model", "step"), [("question", "encoder.0.self_attention.output"), ("story", AT)])
def test_a_number_that_is_slid_is_not_said_to_be_not_done_where_nothing_is_written(model, step) -> None:
    reader, known = Reader(Exploration.begun(open_session(ModelOptions(model)))), meanings({})
    reader.answer(read(f"set {step} += 2", known))
    told = reader.answer(read("strength 3e38" if model == "story" else "strength 5", known))
    assert "changed: " in told
    assert "nothing is written: " in told


async def test_what_was_before_the_edits_is_not_beside_once_none_is_left() -> None:
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        await explorer.prompt("e", "1.output += 'love' - 'hate'")
        assert "before the edits" in explorer.text
        await explorer.press("W")
        await steer(explorer, "")
        await explorer.leave()
        assert not explorer.session.edits
        assert "before the edits" not in explorer.text
        await explorer.press("u")
        assert "before the edits" in explorer.text
