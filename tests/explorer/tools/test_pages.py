"""Tools that are read: cuts by vocabularies, the softmax of a row, the score of a text; and the list of exercises."""

from __future__ import annotations

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from reference import REFERENCES

from tui_transformer.analysis.score import score, text_targets
from tui_transformer.course.exercise import Progress, open_course, progress_path, write_progress
from tui_transformer.course.sources import step_of
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.cuts import CutsScreen
from tui_transformer.explorer.tools.softmax import SoftmaxScreen
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions

BERT = str(REFERENCES / "bert/tokenizer.json")


def row(text: str, word: str) -> list[str]:
    """The cells of a word's line in the box."""
    line = next(line for line in text.splitlines() if line.startswith(f"│ {word} "))
    return line.strip("│ ").split()


async def test_a_pair_is_cut_as_the_model_reads_it():
    session = open_session(ModelOptions(str(REFERENCES / "bert"), device="cpu"), "The waves", None, pair="a shore")
    async with exploring(WIDE, session=session) as explorer:
        await explorer.press("V")
        box = explorer.text[explorer.text.index("How the sentence is cut") :]
        assert f" {len(session.encoding.ids)} tokens " in box
        assert box[: box.index("╰")].count("[SEP]") == 2


async def test_each_vocabulary_has_a_column_and_each_word_a_row():
    async with exploring(WIDE, text="The waves 😊 zebra!") as explorer:
        await explorer.press("V")
        async for _ in explorer.sizes(WIDE, MEDIUM):
            assert "this model: waves" in explorer.text
            assert row(explorer.text, "waves") == ["waves", "waves", "waves", *"waves␣", "␣wa", "ves", "␣"]
            assert row(explorer.text, "zebra!")[1:5] == ["zebra?", "!", "zebra?", "!"]
            assert "4 tokens · 1 unknown" in explorer.text


async def test_a_narrow_screen_has_a_paragraph_for_each_and_another_vocabulary_can_be_added():
    async with exploring(SMALL, text="The waves") as explorer:
        async for _ in explorer.sizes(SMALL, NARROW):
            await explorer.press("V")
            assert "this model: waves · 2 tokens" in explorer.text
            assert "the waves" in explorer.text
            await explorer.press("escape")
        # what is none is refused
        await explorer.resize(*WIDE)
        await explorer.press("V", "v")
        await explorer.answer("nowhere")
        assert "no vocabulary is called" in explorer.text
        await explorer.answer(BERT)
        assert isinstance(explorer.app.screen, CutsScreen)
        assert "tokenizer.json" in explorer.text
        assert row(explorer.text, "waves")[-2:] == ["wa", "##ves"]
        await explorer.leave()


async def test_a_text_with_controls_is_shown_harmlessly():
    async with exploring(WIDE, text="a\x1b[2Jb \u202ec") as explorer:
        await explorer.press("V")
        assert isinstance(explorer.app.screen, CutsScreen)
        assert "\x1b" not in explorer.text
        assert "\u202e" not in explorer.text


async def test_the_row_under_the_cursor_is_shown_both_ways_and_the_naive_one_breaks():
    async with exploring(WIDE, text="the waves crashed") as explorer:
        # a step without a softmax
        await explorer.go("embedding.tokens")
        await explorer.open("softmax")
        assert "there is no softmax here" in explorer.text
        await explorer.go("encoder.0.self_attention.weights")
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.open("softmax")
            assert "Softmax, naive and safe" in explorer.text
            assert "Both are the same to" in explorer.text
            assert "head 0 of 8" in explorer.text
            await explorer.press("!")
            assert "The naive softmax is broken: e^s overflows" in explorer.text
            assert "nan" in explorer.text
            await explorer.press("!")
            assert "Both are the same to" in explorer.text
            await explorer.press("+", "+")
            assert "all scores + 20" in explorer.text
            await explorer.leave()
        # one that is masked altogether
        explorer.main.parts.port.open(SoftmaxScreen("masked", np.array([-np.inf, -np.inf], np.float32), ["a", "b"]))
        await explorer.settled()
        assert "Neither gives shares" in explorer.text
        await explorer.press("!")
        assert "neither softmax gives shares here" in explorer.text
        assert "all scores + 0" in explorer.text


@pytest.mark.parametrize(
    ("model", "tool", "said"),
    [
        ("gpt_oss", "softmax", "has a sink beside the scores"),
        ("bart", "score", "no token is predicted: give a decoder text of two tokens or more"),
    ],
)
async def test_what_a_model_does_not_tell_is_said(model: str, tool: str, said: str):
    async with exploring(WIDE, model=str(REFERENCES / model), text="The waves") as explorer:
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.open(tool)
        assert said in explorer.messages[-1]


async def test_a_text_is_scored_as_the_command_scores_it_and_one_of_one_token_is_said_to_predict_nothing():
    async with exploring(WIDE, model="story", text="Once there was a small girl") as explorer:
        await explorer.app.screen.run_action("open('score')")
        await explorer.shown("How likely the text is", "perplexity")
        assert "Once there was a small girl" in explorer.text
        assert "ln p of the text" in explorer.text
        assert "␣there" in explorer.text
        trace, targets = explorer.session.trace, text_targets(explorer.session.trace, explorer.session.predicted)
        cooler, warmer, smoothed = (
            score(trace, targets, **more) for more in ({}, {"temperature": 1.2}, {"smoothing": 0.1})
        )
        await explorer.shown(f"cross-entropy {cooler.cross_entropy:.4f}", f"0.1: {smoothed.cross_entropy:.4f} nats")
        await explorer.press("+")
        await explorer.shown("temperature 1.2", f"cross-entropy {warmer.cross_entropy:.4f}")
        await explorer.leave()
        await explorer.prompt("slash", "Once")
        await explorer.app.screen.run_action("open('score')")
        await explorer.shown("no token is predicted")


async def test_temperatures_of_keys_that_are_pressed_while_a_text_is_scored_add_up(monkeypatch):
    monkeypatch.setattr("tui_transformer.explorer.shell.requests.AT_ONCE", 0)  # as with a model that takes long
    async with exploring(WIDE, model="story", text="Once there was a small girl") as explorer:
        await explorer.open("score")
        await explorer.shown("temperature 1:")
        async with explorer.waiting():
            await explorer.keys("+", "+", "+", "-")
        await explorer.shown("temperature 1.5:")


COURSE = open_course()


async def test_a_key_opens_the_step_of_the_exercise_under_the_cursor_and_undo_goes_back():
    async with exploring(SMALL, model="encoder") as explorer:
        for size, key in ((SMALL, "x"), (NARROW, "x"), (MEDIUM, "E"), (WIDE, "x")):
            await explorer.resize(*size)
            await explorer.press("C", "g", *["down"] * 4, key)
            assert explorer.session.model.name == "question"
            assert explorer.session.text == COURSE.find("scores").text
            assert explorer.stop == "encoder.0.self_attention.scaled"
            await explorer.press("u")
            assert explorer.session.model.name == "encoder"
        await explorer.press("C", "G", "enter")
        exercise = COURSE.exercises[-1]
        assert explorer.session.model.name == exercise.model
        assert explorer.stop == step_of(exercise, explorer.session.trace.program)


async def test_the_first_that_is_not_done_is_under_the_cursor_and_its_task_is_read():
    write_progress(progress_path(), "", Progress(frozenset({"tokenize", "embed"})))
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("C")
        assert "2 of 15 done" in explorer.text
        assert "exercise start positions" in explorer.text
        assert COURSE.find("positions").task.split()[0] in explorer.text
        assert explorer.text.count("✓") == 2


def test_every_exercise_is_about_a_step_of_its_model():
    for exercise in COURSE.exercises:
        trace = Model.load(exercise.model).trace(exercise.text)
        assert step_of(exercise, trace.program) in trace.program.by_name, exercise.name
