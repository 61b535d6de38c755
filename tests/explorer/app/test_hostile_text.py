"""Words that are markup, escapes or of strange width are shown as they are and do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import NARROW, WIDE, exploring
from hostile_words import KINDS, check_screen


@pytest.mark.parametrize(("words", "size"), zip(KINDS.values(), (NARROW, WIDE, NARROW), strict=True), ids=KINDS.keys())
async def test_strange_words_are_shown_harmlessly_everywhere(words, size, tmp_path: Path):
    vocabulary = tmp_path / "[red]odd.txt"
    words = [word.replace("\x00", "") for word in words]
    vocabulary.write_text(" ".join(words), encoding="utf-8")
    async with exploring(size, vocab=str(vocabulary), text=" ".join(words), sizes={"layers": 1}) as explorer:
        check_screen(explorer)
        while explorer.stop != "text":
            await explorer.keys("space", "down")
            check_screen(explorer)
        await explorer.go("encoder.0.self_attention.weights")
        for key in ("G", "6", "c", "c", "5", "3", "2", "1", "4", "e", "escape", "x", "escape", "/", "escape"):
            await explorer.press(key)
            check_screen(explorer)


@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_in_the_prompts_messages_and_the_vocabulary(words):
    async with exploring(NARROW) as explorer:
        await explorer.press("/")
        for word in words:
            await explorer.write(word)
            check_screen(explorer)
        await explorer.answer(" ".join(words))
        check_screen(explorer)
        await explorer.press("/")  # they are the sentence of before now
        check_screen(explorer)
        await explorer.press("escape")
        for word in words:
            await explorer.prompt("v", f"{word}/none")
            check_screen(explorer)
        await explorer.press("escape", "ctrl+f")
        for word in words:
            await explorer.write(word)
            check_screen(explorer)
        await explorer.press("ctrl+u", "enter")
        for word in words:
            explorer.parts.port.say(word, severity="error")
            await explorer.handled()
            check_screen(explorer)


@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_in_the_names_of_files(words, here):
    async with exploring(NARROW, at="embedding.output") as explorer:
        for word in words:
            await explorer.prompt("x", f"no/{word}/there.csv")
            check_screen(explorer)
            await explorer.answer(f"~{word}/there.csv")
            check_screen(explorer)
            name = word.replace("/", "").replace("\x00", "")
            await explorer.answer(f"{name}.csv")
            check_screen(explorer)
            await explorer.press("escape")
        assert len(list(here.glob("*.csv"))) >= len(words) - 1
