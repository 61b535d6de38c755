"""The screen that shows how several vocabularies cut the sentence."""

from __future__ import annotations

from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from reference import REFERENCES

from tui_transformer.explorer.tools.cuts import CutsScreen

BERT = str(REFERENCES / "bert/tokenizer.json")


def row(text: str, word: str) -> list[str]:
    """The cells of a word's line in the box."""
    line = next(line for line in text.splitlines() if line.startswith(f"│ {word} "))
    return line.strip("│ ").split()


async def test_each_vocabulary_has_a_column_and_each_word_a_row():
    async with exploring(WIDE, text="The waves 😊 zebra!") as explorer:
        await explorer.press("V")
        for size in (WIDE, MEDIUM):
            await explorer.resize(*size)
            assert "this model: waves" in explorer.text
            assert row(explorer.text, "waves") == ["waves", "waves", "waves", *"waves␣", "␣wa", "ves", "␣"]
            assert row(explorer.text, "zebra!")[1:5] == ["zebra?", "!", "zebra?", "!"]
            assert "4 tokens · 1 unknown" in explorer.text


async def test_a_narrow_screen_has_a_paragraph_for_each_and_another_vocabulary_can_be_added():
    async with exploring(SMALL, text="The waves") as explorer:
        for size in (SMALL, NARROW):
            await explorer.resize(*size)
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
