from __future__ import annotations

import pytest
from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.main.panes.matrix import VocabularyPane
from tui_transformer.text.vocabulary import Vocabulary

WEIGHT = "embedding.tokens.weight"


def words_asked_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The IDs of all words that are asked for from now on."""
    asked: list[int] = []
    word = Vocabulary.word
    monkeypatch.setattr(Vocabulary, "word", lambda self, number: asked.append(number) or word(self, number))
    return asked


async def test_a_word_is_found_and_its_embedding_shown():
    async with exploring(WIDE, vocab="english") as explorer:
        words, explored = explorer.session.model.vocabulary, explorer.parts.explored
        entries = explorer.main.query_one(VocabularyPane).entries
        async for size in explorer.sizes(WIDE, SMALL):
            await explorer.press("ctrl+f", "ctrl+u", *"sea", "enter")
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
        # escape leaves the search before it leads back where one came from
        explored.trail[:] = [explored.position, explored.position]
        await explorer.press("ctrl+f", "s", "escape")
        assert entries.has_focus
        assert len(explored.trail) == 2
        await explorer.press("escape")
        assert len(explored.trail) == 1


async def test_the_words_of_a_trained_model_are_called_by_its_name():
    async with exploring(NARROW, model="question") as explorer:
        assert "Vocabulary · question · 123 words" in explorer.text


async def test_the_words_of_the_sentence_are_marked_and_found():
    async with exploring(NARROW) as explorer:
        # letters that are typed into the search do nothing else
        await explorer.press("ctrl+f", *"qsnpev{/,xt")
        assert explorer.stop == "vocabulary"
        assert explorer.focused_input.value == "qsnpev{/,xt"
        assert "0 found" in explorer.text
        await explorer.press("enter", "enter", "ctrl+f", "ctrl+u", "enter")
        assert "found" not in explorer.text
        assert "crashed" in explorer.text
        # words are marked as the sentence changes
        assert "in the sentence × 2" in explorer.text
        await explorer.prompt("/", "shore shore shore")
        assert "in the sentence × 3" in explorer.text


@pytest.mark.parametrize("size", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
async def test_a_large_vocabulary_is_gone_through_with_what_is_on_screen_only(
    size, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    path, count = tmp_path / "large.txt", 250_000
    path.write_text(" ".join(f"word{i}" for i in range(1, count)))
    async with exploring(size, vocab=str(path), text="word1 word2 word3 word249999") as explorer:
        asked = words_asked_for(monkeypatch)
        # of the words of the sentence, which come first, one was the last
        page = 5 * (explorer.main.query_one(VocabularyPane).entries.size.height - 1)
        for keys, last in ((["end"], count - 1), (["home"], 0), (["pagedown"] * 5, page - 1)):
            await explorer.keys(*keys)
            assert f"{last}  " in explorer.text
        assert len(asked) < 1000
        await explorer.keys("ctrl+f", "7")
        await explorer.keys("7")
        assert f"{sum('77' in str(i) for i in range(count)):,} found" in explorer.text
        await explorer.press("escape")
        for key in ["space"] * 12 + ["backspace"] * 12 + ["]", "end", "G", "5", "down", "1", "4", "6", "c", "c", "4"]:
            before = len(asked)
            await explorer.keys(key)
            assert len(asked) - before < 2000
        await explorer.press("ctrl+f", "ctrl+u", *"word249999", "enter", "enter")
        assert explorer.position.place.row == 249_999
        await explorer.press("G", "w", "e", "escape")
