from __future__ import annotations

import pytest
from driving import exploring
from textual.widgets import Input

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.shell.prompt import PromptScreen

WORDS = ["deutsch", "dog", "English words"]


def only_waves(text: str) -> None:
    if text != "waves":
        raise InputError(f"no vocabulary is called “{text}”: use waves [b]or[/b] a file")


async def test_enter_gives_the_text(open_screen, screen_text):
    async with open_screen(PromptScreen("Sentence", value="the shore", hint="words")) as pilot:
        assert "Sentence" in screen_text(pilot.app)
        assert "words" in screen_text(pilot.app)
        await pilot.press(*" q", "enter")
        assert pilot.app.result == "the shore q"


@pytest.mark.parametrize(
    ("keys", "given"), [(["5", "enter"], "5"), (["enter"], "3.25"), (["right", "5", "enter"], "3.255")]
)
async def test_what_is_typed_first_replaces_what_was_suggested(open_screen, keys, given):
    async with open_screen(PromptScreen("Value", value="3.25", replaces=True)) as pilot:
        await pilot.press(*keys)
        assert pilot.app.result == given


async def test_esc_leaves_without_a_text(open_screen, nothing):
    async with open_screen(PromptScreen("Sentence", value="the shore")) as pilot:
        assert pilot.app.result is nothing
        await pilot.press("x", "escape")
        assert pilot.app.result is None


async def test_a_text_that_cannot_be_used_is_kept_and_the_reason_said(open_screen, screen_text, nothing):
    async with open_screen(PromptScreen("Vocabulary", value="wave", check=only_waves)) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert "“wave”: use waves [b]or[/b] a file" in screen_text(pilot.app)
        assert pilot.app.result is nothing
        await pilot.press("s")
        await pilot.pause()
        assert "no vocabulary" not in screen_text(pilot.app)
        await pilot.press("enter")
        assert pilot.app.result == "waves"


@pytest.mark.parametrize(
    ("typed", "key", "whole"), [("d", "tab", "deutsch"), ("DO", "tab", "dog"), ("e", "right", WORDS[2])]
)
async def test_suggestions_complete(open_screen, typed, key, whole):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS)) as pilot:
        await pilot.press(*typed)
        await pilot.pause()
        await pilot.press(key, "enter")
        assert pilot.app.result == whole


async def test_tab_with_nothing_to_complete_changes_nothing(open_screen):
    async with open_screen(PromptScreen("Vocabulary", value="zebra", suggestions=WORDS)) as pilot:
        await pilot.press("tab", "enter")
        assert pilot.app.result == "zebra"


async def test_suggestions_that_fit_are_listed_first(open_screen, screen_text):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS)) as pilot:
        assert "deutsch   dog   English words" in screen_text(pilot.app)
        await pilot.press("e")
        await pilot.pause()
        assert "English words   deutsch   dog" in screen_text(pilot.app)


async def test_control_characters_are_shown_harmlessly_and_kept(open_screen, screen_text):
    value = "a\x1b[31mb\x9b\u202ec"
    screen = PromptScreen(
        "\x1b[2J[red]t", value=value, hint="\x1b[H[/]h", placeholder="\x1b", suggestions=["\x1bx", "ok"]
    )
    async with open_screen(screen) as pilot:
        text = screen_text(pilot.app)
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert "a␛[31mb··c" in text
        assert "␛[2J[red]t" in text
        assert "␛[H[/]h" in text
        await pilot.press("enter")
        assert pilot.app.result == value


async def test_an_empty_title_and_marks_with_nothing_to_sit_on(open_screen):
    async with open_screen(PromptScreen("", value="\u0301e\u0301\ufe0f")) as pilot:
        await pilot.press("enter")
        assert pilot.app.result == "\u0301e\u0301\ufe0f"


@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 12)])
@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_everything_is_seen_at_every_size(open_screen, screen_text, size, theme):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS, check=only_waves), size, theme) as pilot:
        await pilot.press("d", "enter")
        await pilot.pause()
        assert all(word in screen_text(pilot.app) for word in ("no vocabulary", "esc leave", "deutsch"))


async def test_a_small_terminal_is_no_mistake(open_screen, screen_text):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS)) as pilot:
        for size in [(5, 3), (1, 1), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.press("d")
        assert "ddd" in screen_text(pilot.app)
        assert pilot.app.screen.query_one(Input).has_focus


async def test_without_colour(open_screen, screen_text, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS, check=only_waves)) as pilot:
        await pilot.press("d", "enter")
        await pilot.pause()
        assert "no vocabulary" in screen_text(pilot.app)


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (40, 12)])
async def test_the_sentence_is_edited_in_its_place(size):
    async with exploring(size, model="question") as explorer:
        await explorer.press("slash")
        await explorer.resize(size[0] + 20, size[1] + 5)
        await explorer.handled()
        pane, box = explorer.main.query_one(SentencePane).region, explorer.app.screen.query_one("#box").region
        if pane:
            assert (box.offset, box.width) == (pane.offset, pane.width)
        else:
            assert box.y > 2
        await explorer.keys("a", "escape")
        assert explorer.app.screen is explorer.main
