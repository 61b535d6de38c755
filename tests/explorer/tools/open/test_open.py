"""Opening another model, and what was used lately."""

from __future__ import annotations

import json
import shutil

from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.shell.user_files import MOST, recent, recent_path, remember
from tui_transformer.explorer.tools.open import at_once, matching, with_models
from tui_transformer.model import Model
from tui_transformer.model.local_models import TRAINED, LocalModel, trained_models


async def test_a_model_is_found_by_its_name_and_opened_and_undo_goes_back():
    async with exploring(SMALL, model="question") as explorer:
        async for _ in explorer.sizes(SMALL, NARROW, MEDIUM, WIDE):
            await explorer.prompt("o", "dates")
            assert explorer.session.model.name == "dates"
            assert explorer.session.text == "the 3rd of May 2021"
            await explorer.press("u")
            assert explorer.session.model.name == "question"
            assert recent("models") == ("dates",)
        # what is no model is said in one line, and nothing changes
        before = explorer.session
        for name in ("/nowhere/[b]", "~nobody-here/model"):
            await explorer.prompt("o", name)
            assert name in explorer.messages[-1]
            assert "no such folder" in explorer.messages[-1]
            assert explorer.session is before
        # what is called so comes before what speaks of it
        for name in ("decoder", "attention", "encoder", "decoder"):
            await explorer.press("o", *name)
            await explorer.press("enter")
            assert explorer.session.model.name == name
            assert not explorer.parts.tour.stop


async def test_a_model_is_chosen_from_the_list_and_a_folder_opened_by_its_path_is_listed_the_next_time(tmp_path):
    folder = tmp_path / "mine" / "model"
    shutil.copytree(TRAINED / "question", folder)
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("o")
        assert "Where does .99 come from?" in explorer.text
        assert "recent" not in explorer.text
        await explorer.press("down", "up", "enter")
        assert explorer.session.model.name == trained_models()[0]
        # a folder
        await explorer.prompt("o", str(folder))
        assert explorer.session.model.folder == folder
        assert explorer.session.model.name == "mine"
        await explorer.press("o")
        assert "recent" in explorer.text


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


async def test_sentences_used_lately_come_back_with_the_arrows_and_are_in_the_list():
    async with exploring(NARROW, model="question") as explorer:
        for text in ("who did it ?", "the cat sleeps ."):
            await explorer.prompt("/", text)
        await explorer.press("/", "up")
        assert explorer.focused_input.value == "who did it ?"
        await explorer.press("up", "down", "down")
        assert explorer.focused_input.value == "the cat sleeps ."
        await explorer.press("up", "enter")
        assert explorer.session.text == "who did it ?"
        # in the list
        await explorer.prompt("o", "the cat")
        assert explorer.session.text == "the cat sleeps ."
        await explorer.press("u")
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


# Tours and vocabularies


async def test_tours_are_begun_from_the_list_on_their_models():
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.prompt("o", "does a language model choose")
        assert explorer.session.model.name == "story"
        assert "1 of 9" in explorer.text
        await explorer.press("escape", "u")
        assert explorer.session.model.name == "encoder"
        # the second of a model: from another, and on its own
        for _ in range(2):
            await explorer.prompt("o", "what do the heads look for")
            assert explorer.session.model.name == "question"
            assert "Stop 1 of 9 · One of four heads" in explorer.text
            await explorer.press("escape")
        # of gradients, without going back first
        await explorer.prompt("o", "which way does every number")
        assert explorer.session.backward
        assert "1 of 9" in explorer.text
        await explorer.press("space")
        await explorer.shown("the target is statement")
        await explorer.press("escape")
        assert not explorer.session.backward


async def test_a_vocabulary_is_chosen_from_a_list_and_a_file_of_words_is_remembered(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("alpha beta gamma delta")
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("v")
        assert "built in" in explorer.text
        await explorer.answer("dog")
        assert explorer.session.text == "a dog bites a man"
        assert "another takes its place" in explorer.messages[-1]
        # a file of words
        await explorer.press("v")
        assert "mine.txt" not in explorer.text
        await explorer.answer(str(path))
        assert recent("vocabularies") == (str(path),)
        await explorer.press("v")
        assert "mine.txt" in explorer.text
