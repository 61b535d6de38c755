from __future__ import annotations

from pathlib import Path

import pytest
from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.main.panes.matrix import VocabularyPane
from tui_transformer.text.vocabulary import Vocabulary

WEIGHT = "embedding.tokens.weight"


def word_list(path: Path, count: int) -> str:
    path.write_text(" ".join(f"word{i}" for i in range(1, count)))
    return str(path)


def words_asked_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The IDs of all words that are asked for from now on."""
    asked: list[int] = []
    word = Vocabulary.word
    monkeypatch.setattr(Vocabulary, "word", lambda self, number: asked.append(number) or word(self, number))
    return asked


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_word_is_found_and_its_embedding_shown(size):
    async with exploring(size, vocab="english") as explorer:
        words = explorer.session.model.vocabulary
        await explorer.press("ctrl+f", *"sea", "enter")
        entries = explorer.main.query_one(VocabularyPane).entries
        assert entries.has_focus
        assert "sea" in explorer.text
        assert (" found" in explorer.text) == (size != SMALL)
        await explorer.press("enter")
        assert explorer.stop == WEIGHT
        assert explorer.position.place.row == words.ids["sea"]
        assert WEIGHT in explorer.text
        await explorer.press("escape")
        assert explorer.stop == "vocabulary"
        assert entries.has_focus


async def test_the_words_of_a_trained_model_are_called_by_its_name():
    async with exploring(NARROW, model="question") as explorer:
        assert "Vocabulary · question · 123 words" in explorer.text


async def test_escape_leaves_the_search_before_it_leads_back_where_one_came_from():
    async with exploring(WIDE, vocab="english") as explorer:
        explored = explorer.parts.explored
        explored.trail += [explored.position, explored.position]
        await explorer.press("ctrl+f", "s", "escape")
        assert explorer.main.query_one(VocabularyPane).entries.has_focus
        assert len(explored.trail) == 2
        await explorer.press("escape")
        assert len(explored.trail) == 1


async def test_letters_typed_into_the_search_do_nothing_else():
    async with exploring(NARROW) as explorer:
        await explorer.press("ctrl+f", *"qsnpev{/,xt")
        assert explorer.stop == "vocabulary"
        assert explorer.focused_input.value == "qsnpev{/,xt"
        assert "0 found" in explorer.text
        await explorer.press("enter", "enter", "ctrl+f", "ctrl+u", "enter")
        assert "found" not in explorer.text
        assert "crashed" in explorer.text


async def test_the_words_of_the_sentence_are_marked_as_it_changes():
    async with exploring(NARROW) as explorer:
        assert "in the sentence × 2" in explorer.text
        await explorer.press("/")
        await explorer.answer("shore shore shore")
        assert "in the sentence × 3" in explorer.text


@pytest.mark.parametrize("count", [250_000])
async def test_a_large_vocabulary_opens_and_scrolls_and_calls_for_what_is_on_screen_only(
    count, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    path = word_list(tmp_path / "large.txt", count)
    async with exploring(NARROW, vocab=path, text="word1 word2 word3") as explorer:
        asked = words_asked_for(monkeypatch)
        for keys, last in (
            (["end"], count - 1),
            (["home"], 0),
            (["pagedown"] * 5, explorer.main.query_one(VocabularyPane).entries.size.height * 5 - 5),
        ):
            await explorer.keys(*keys)
            assert f"{last}  " in explorer.text
        assert len(asked) < 1000
        await explorer.keys("ctrl+f", "7")
        await explorer.keys("7")
        assert f"{sum('77' in str(i) for i in range(count)):,} found" in explorer.text


@pytest.mark.parametrize("size", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
async def test_a_large_vocabulary_is_stepped_through_with_what_is_on_screen_only(
    size, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    path = word_list(tmp_path / "large.txt", 250_000)
    async with exploring(size, vocab=path, text="word1 word2 word3 word249999") as explorer:
        asked = words_asked_for(monkeypatch)
        for key in ["space"] * 12 + ["backspace"] * 12 + ["]", "end", "G", "5", "down", "1", "4", "6", "c", "c", "4"]:
            before = len(asked)
            await explorer.keys(key)
            assert len(asked) - before < 2000
        await explorer.press("ctrl+f", *"word249999", "enter", "enter")
        assert explorer.position.place.row == 249_999
        await explorer.press("G", "w", "e", "escape")
