"""Words that are markup, escapes or of strange width are shown as they are and do nothing."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from driving import NARROW, WIDE, Explorer, exploring

MARKUP = ["[bold]x[/]", "[/]", "[@click=app.quit]x[/]", "[red]", "[[b]]", "\\[b]", ":smile:", "$accent", "**b**", "`c`"]
ESCAPES = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b31mred", "a\x00b", "\x7f", "\x08\x08"]
STRANGE = [
    *("\u202eabc\u202c", "\u200b", "a\u200db", "🙂", "👨\u200d👩\u200d👧", "e\u0301", "\u0301"),
    *("漢字", "ﷺ", "नमस्ते", "\ufeff", "\U000e0041"),
]
KINDS = {"markup": MARKUP, "escapes": ESCAPES, "strange": STRANGE}
HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def check_screen(explorer: Explorer) -> None:
    """Nothing harmful is on the screen, and every line is as wide as the screen."""
    width = explorer.app.size.width
    for strip in explorer.app.screen._compositor.render_strips():
        assert not [c for c in strip.text if unicodedata.category(c) in HARMFUL], strip.text
        assert strip.cell_length == width, strip.text
        assert all(segment.style is None or segment.style.meta.get("@click") is None for segment in strip)
    assert explorer.app.is_running
    assert explorer.app.return_code is None


@pytest.mark.parametrize("size", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_are_shown_harmlessly_everywhere(words, size, tmp_path: Path):
    vocabulary = tmp_path / "[red]odd.txt"
    words = [word.replace("\x00", "") for word in words]
    vocabulary.write_text(" ".join(words), encoding="utf-8")
    async with exploring(size, vocab=str(vocabulary), text=" ".join(words)) as explorer:
        check_screen(explorer)
        while explorer.stop != "text":
            await explorer.keys("space", "down")
            check_screen(explorer)
        while explorer.stop != "encoder.0.self_attention.weights":
            await explorer.keys("backspace")
        for key in ("G", "6", "c", "c", "5", "3", "2", "1", "4", "e", "escape", "x", "escape", "/", "escape"):
            await explorer.press(key)
            check_screen(explorer)


@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_in_the_prompts_messages_and_the_vocabulary(words):
    async with exploring(NARROW) as explorer:
        for word in words:
            await explorer.press("/")
            await explorer.write(word)
            check_screen(explorer)
            await explorer.press("enter", "escape")
            check_screen(explorer)
            await explorer.press("v", "v")
            await explorer.answer(f"{word}/none")
            check_screen(explorer)
            await explorer.press("escape", "f")
            await explorer.write(word)
            check_screen(explorer)
            await explorer.press("ctrl+u", "enter")
            explorer.parts.port.say(word, severity="error")
            await explorer.handled()
            check_screen(explorer)


@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_in_the_names_of_files(words, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    async with exploring(NARROW) as explorer:
        await explorer.go("embedding.output")
        for word in words:
            await explorer.press("x")
            await explorer.answer(f"no/{word}/there.csv")
            check_screen(explorer)
            await explorer.answer(f"~{word}/there.csv")
            check_screen(explorer)
            name = word.replace("/", "").replace("\x00", "")
            await explorer.answer(f"{name}.csv")
            check_screen(explorer)
            await explorer.press("escape")
        assert len(list(tmp_path.glob("*.csv"))) >= len(words) - 1
