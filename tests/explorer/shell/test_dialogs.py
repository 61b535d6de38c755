"""Dialogs: messages, pages of help, and prompts."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from textual.widgets import Input

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.shell.dialog import MessageScreen
from tui_transformer.explorer.shell.help_page import HelpScreen
from tui_transformer.explorer.shell.prompt import PromptScreen

LINES = "\n".join(f"{number:5}  word{number}" for number in range(100))
PAGE = "# Keys\n\nWhat `space` does \x1b[2J [b]x[/b].\n\n" + "\\\n".join(f"line {i}" for i in range(60))


async def leaves(pilot, keys: tuple[str, ...], another, nothing) -> None:
    """Each of these keys leaves a screen, of which there is another then."""
    assert pilot.app.result is nothing
    for key in keys:
        await pilot.press(key)
        assert pilot.app.result is None, key
        pilot.app.result = nothing
        await again(pilot, another())


async def again(pilot, screen) -> None:
    """Put another screen over the app, whose result is kept as that of the first."""
    pilot.app.push_screen(screen, pilot.app.keep)
    await pilot.pause()


async def test_a_message_is_shown_scrolled_and_closed(open_screen, screen_text, nothing):
    async with open_screen(MessageScreen("Vocabulary", LINES)) as pilot:
        assert "Vocabulary" in screen_text(pilot.app)
        assert "    7  word7" in screen_text(pilot.app)
        # each from the top
        for keys, first in (("j", 1), ("jjk", 1), ("G", 78), (["G", "ctrl+home"], 0), (" ", 22)):
            await pilot.press(*keys)
            for _ in range(3):
                await pilot.pause()
            assert f"{first:5}  word{first} " in screen_text(pilot.app).splitlines()[1]
            await pilot.press("ctrl+home")
        await leaves(pilot, ("escape", "enter", "q"), lambda: MessageScreen("", ""), nothing)


async def test_a_page_is_shown_scrolled_and_closed(open_screen, screen_text, shows, nothing):
    async with open_screen(HelpScreen(PAGE, "Help")) as pilot:
        await shows(pilot.app, "What space does ␛[2J [b]x[/b].")
        assert "\x1b" not in screen_text(pilot.app)
        # each from the top
        for keys, there in (("jjjk", "line 18"), ("  ", "line 43"), ("G", "line 59")):
            await pilot.press(*keys)
            await shows(pilot.app, there)
            await pilot.press("ctrl+home")
            await shows(pilot.app, "Keys")
        await leaves(pilot, ("escape", "q", "question_mark", "f1"), lambda: HelpScreen("", "Help"), nothing)


@pytest.mark.parametrize(
    ("screen", "said"),
    [(partial(MessageScreen, "Vocabulary", LINES), "word3"), (partial(HelpScreen, PAGE, "Help"), "What space does")],
)
async def test_a_small_terminal_and_no_colour(screen, said, open_screen, shows, no_colors):
    async with open_screen(screen()) as pilot:
        for theme in ("tui-dark", "tui-light"):
            pilot.app.theme = theme
            for size in [(5, 3), (1, 1), (40, 12)]:
                await pilot.resize_terminal(*size)
            await shows(pilot.app, said)
            await shows(pilot.app, "esc close")


async def test_text_is_no_markup_and_harmless(open_screen, screen_text):
    async with open_screen(MessageScreen("[b]t[/", "[red]a[/b]\x1b[2J\n\x9b\u202e")) as pilot:
        text = screen_text(pilot.app)
        assert "[b]t[/" in text
        assert "[red]a[/b]␛[2J" in text
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_markdown_is_imported_only_when_it_is_opened():
    code = "import sys, tui_transformer.explorer.shell.dialog; sys.exit('rich.markdown' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_page_in_a_terminal_of_a_few_cells_is_laid_out_once_and_rests():
    async with exploring(NARROW) as explorer:
        await explorer.keys("?")
        await explorer.resize(5, 3)
        for _ in range(5):
            await explorer.handled()
        assert not explorer.app.screen._layout_required


WORDS = ["deutsch", "dog", "English words"]


def only_waves(text: str) -> None:
    if text != "waves":
        raise InputError(f"no vocabulary is called “{text}”: use waves [b]or[/b] a file")


async def test_enter_gives_the_text_and_esc_leaves_without_one(open_screen, screen_text, nothing):
    async with open_screen(PromptScreen("Sentence", value="the shore", hint="words")) as pilot:
        assert "Sentence" in screen_text(pilot.app)
        assert "words" in screen_text(pilot.app)
        assert pilot.app.result is nothing
        await pilot.press(*" q", "enter")
        assert pilot.app.result == "the shore q"
        await again(pilot, PromptScreen("Sentence", value="the shore"))
        await pilot.press("x", "escape")
        assert pilot.app.result is None
        # what is typed first replaces what was suggested
        for keys, given in ((["5", "enter"], "5"), (["enter"], "3.25"), (["right", "5", "enter"], "3.255")):
            await again(pilot, PromptScreen("Value", value="3.25", replaces=True))
            await pilot.press(*keys)
            assert pilot.app.result == given


async def test_a_text_that_cannot_be_used_is_kept_and_the_reason_said(open_screen, screen_text, shows, nothing):
    async with open_screen(PromptScreen("Vocabulary", value="wave", check=only_waves)) as pilot:
        await pilot.press("enter")
        await shows(pilot.app, "“wave”: use waves [b]or[/b] a file")
        assert pilot.app.result is nothing
        await pilot.press("s")
        await pilot.pause()
        assert "no vocabulary" not in screen_text(pilot.app)
        await pilot.press("enter")
        assert pilot.app.result == "waves"


async def test_suggestions_that_fit_are_listed_first_and_complete(open_screen, screen_text, shows):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS)) as pilot:
        assert "deutsch   dog   English words" in screen_text(pilot.app)
        await pilot.press("e")
        await shows(pilot.app, "English words   deutsch   dog")
        await pilot.press("right", "enter")
        assert pilot.app.result == WORDS[2]
        # tab with nothing to complete changes nothing
        for typed, whole in (("d", "deutsch"), ("DO", "dog"), ("zebra", "zebra")):
            await again(pilot, PromptScreen("Vocabulary", suggestions=WORDS))
            await pilot.press(*typed)
            await pilot.pause()
            await pilot.press("tab", "enter")
            assert pilot.app.result == whole


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
        # an empty title, and marks with nothing to sit on
        await again(pilot, PromptScreen("", value="\u0301e\u0301\ufe0f"))
        await pilot.press("enter")
        assert pilot.app.result == "\u0301e\u0301\ufe0f"


@pytest.mark.parametrize(("theme", "colors"), [("tui-dark", True), ("tui-light", True), ("tui-dark", False)])
async def test_everything_is_seen_at_every_size(open_screen, screen_text, theme, colors, monkeypatch):
    if not colors:
        monkeypatch.setenv("NO_COLOR", "1")
    screen = partial(PromptScreen, "Vocabulary", suggestions=WORDS, check=only_waves)
    async with open_screen(screen(), theme=theme) as pilot:
        for size in [(160, 45), (80, 24), (40, 12)]:
            await pilot.press("escape")
            await pilot.resize_terminal(*size)
            await again(pilot, screen())
            await pilot.press("d", "enter")
            await pilot.pause()
            assert all(word in screen_text(pilot.app) for word in ("no vocabulary", "esc leave", "deutsch")), size


async def test_a_small_terminal_is_no_mistake(open_screen, screen_text):
    async with open_screen(PromptScreen("Vocabulary", suggestions=WORDS)) as pilot:
        for size in [(5, 3), (1, 1), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.press("d")
        assert "ddd" in screen_text(pilot.app)
        assert pilot.app.screen.query_one(Input).has_focus


async def test_the_sentence_is_edited_in_its_place():
    async with exploring(WIDE, model="question") as explorer:
        for width, height in (WIDE, MEDIUM, NARROW, SMALL):
            await explorer.resize(width, height)
            await explorer.press("slash")
            await explorer.resize(width + 20, height + 5)
            pane, box = explorer.main.query_one(SentencePane).region, explorer.app.screen.query_one("#box").region
            if pane:
                assert (box.offset, box.width) == (pane.offset, pane.width)
            else:
                assert box.y > 2
            await explorer.keys("a", "escape")
            assert explorer.app.screen is explorer.main
