"""Opening another model, and what was used lately."""

from __future__ import annotations

import json
import shutil

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.shell.user_files import MOST, recent, recent_path, remember
from tui_transformer.explorer.tools.open import at_once, matching, with_models
from tui_transformer.model import Model
from tui_transformer.model.local_models import TRAINED, LocalModel, trained_models


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW, SMALL])
async def test_a_model_is_found_by_its_name_and_opened_and_undo_goes_back(size):
    async with exploring(size, model="question") as explorer:
        await explorer.press("o")
        await explorer.answer("dates")
        assert explorer.session.model.name == "dates"
        assert explorer.session.text == "the 3rd of May 2021"
        await explorer.press("u")
        assert explorer.session.model.name == "question"
        assert recent("models") == ("dates",)


async def test_the_list_names_the_questions_of_the_tours():
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("o")
        assert "Where does .99 come from?" in explorer.text
        await explorer.press("down", "up", "enter")
        assert explorer.session.model.name == trained_models()[0]


async def test_a_folder_is_opened_by_its_path_and_listed_the_next_time(tmp_path):
    folder = tmp_path / "mine" / "model"
    shutil.copytree(TRAINED / "question", folder)
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("o")
        await explorer.answer(str(folder))
        assert explorer.session.model.folder == folder
        assert explorer.session.model.name == "mine"
        await explorer.press("o")
        assert "recent" in explorer.text


@pytest.mark.parametrize("name", ["/nowhere/[b]", "~nobody-here/model"])
async def test_what_is_no_model_is_said_in_one_line_and_nothing_changes(name):
    async with exploring(NARROW, model="question") as explorer:
        before = explorer.session
        await explorer.press("o")
        await explorer.answer(name)
        assert name in explorer.messages[-1]
        assert "no such folder" in explorer.messages[-1]
        assert explorer.session is before


def test_found_models_are_listed_once(tmp_path):
    choices = with_models(
        at_once(["a/b"]), [LocalModel("a/b", "cache", tmp_path), LocalModel("new", "package", tmp_path)]
    )
    names = [each.name for each in choices]
    assert names.count("a/b") == 1
    assert "new" in names
    assert [choices[place].kind for place in matching(choices, "where does .99")] == ["tour"]
    assert [choices[place].name for place in matching(choices, "question_heads")] == ["question-heads"]
    tours = [each.name for each in choices if each.kind == "tour"]
    assert tours[:5] == ["copy", "copy-paths", "dates", "question", "question-heads"]


def test_a_model_in_a_folder_called_model_has_the_name_of_the_folder_above(tmp_path):
    shutil.copytree(TRAINED / "question", tmp_path / "run-7" / "model")
    assert Model.load(tmp_path / "run-7" / "model", device="cpu").name == "run-7"


async def test_sentences_used_lately_come_back_with_the_arrows():
    async with exploring(NARROW, model="question") as explorer:
        for text in ("who did it ?", "the cat sleeps ."):
            await explorer.press("/")
            await explorer.answer(text)
        await explorer.press("/", "up")
        assert explorer.focused_input.value == "who did it ?"
        await explorer.press("up", "down", "down")
        assert explorer.focused_input.value == "the cat sleeps ."
        await explorer.press("up", "enter")
        assert explorer.session.text == "who did it ?"


# The file


def test_the_last_is_first_and_only_so_many_are_kept():
    for number in range(MOST + 5):
        remember("sentences", f"sentence {number}")
    remember("sentences", "sentence 10")
    sentences = recent("sentences")
    assert sentences[0] == "sentence 10"
    assert len(sentences) == len(set(sentences)) == MOST
    assert recent("models") == ()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"models": 3}', '{"models": [1, null, "x"]}', "\x00" * 50])
def test_a_file_that_is_broken_is_no_reason_to_fail(content):
    recent_path().parent.mkdir(parents=True)
    recent_path().write_text(content)
    assert set(recent("models")) <= {"x"}
    remember("models", "y")
    assert recent("models")[0] == "y"


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail():
    recent_path().parent.parent.mkdir(parents=True)
    recent_path().parent.write_text("a file")
    remember("models", "y")
    assert recent("models") == ()


def test_unusual_characters_are_kept_as_they_are():
    remember("sentences", "\x1b[2J ü [b]")
    assert recent("sentences") == ("\x1b[2J ü [b]",)
    assert json.loads(recent_path().read_text())
    assert not [path for path in recent_path().parent.iterdir() if path != recent_path()]


# Tours, sentences and vocabularies


async def test_a_tour_is_begun_from_the_list_on_its_model_and_leaves_nothing():
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("o")
        await explorer.answer("does a language model choose")
        assert explorer.session.model.name == "story"
        assert "1 of 9" in explorer.text
        await explorer.press("escape", "u")
        assert explorer.session.model.name == "encoder"


async def test_the_second_tour_of_a_model_is_begun_from_the_list():
    async with exploring(WIDE, model="encoder") as explorer:
        for _ in range(2):  # on its model, and from another
            await explorer.press("o")
            await explorer.answer("what do the heads look for")
            assert explorer.session.model.name == "question"
            assert "Stop 1 of 9 · One of four heads" in explorer.text
            await explorer.press("escape")


async def test_the_tour_of_gradients_begins_from_the_list_without_going_back_first():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("o")
        await explorer.answer("which way does every number")
        assert explorer.session.backward
        assert "1 of 9" in explorer.text
        await explorer.press("space")
        await explorer.shown("the target is statement")
        await explorer.press("escape")
        assert not explorer.session.backward


async def test_sentences_used_lately_are_in_the_list():
    remember("sentences", "who did it ?")
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("o")
        await explorer.answer("who did")
        assert explorer.session.text == "who did it ?"
        await explorer.press("u")
        assert explorer.session.text.startswith("where did")


async def test_a_vocabulary_is_chosen_from_a_list_and_what_becomes_of_the_sentence_is_said():
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("v")
        assert "built in" in explorer.text
        await explorer.answer("dog")
        assert explorer.session.text == "a dog bites a man"
        assert "another takes its place" in explorer.messages[-1]


async def test_a_file_of_words_is_remembered(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("alpha beta gamma delta")
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("v")
        await explorer.answer(str(path))
        assert recent("vocabularies") == (str(path),)
        await explorer.press("v")
        assert "mine.txt" in explorer.text
