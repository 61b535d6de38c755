from __future__ import annotations

import pytest

from tui_transformer.explorer.shell.pages import MessageScreen

WORDS = "\n".join(f"{number:5}  word{number}" for number in range(100))


@pytest.mark.parametrize("key", ["escape", "enter", "q"])
async def test_it_is_shown_and_closed(open_screen, screen_text, key, nothing):
    async with open_screen(MessageScreen("Vocabulary", WORDS)) as pilot:
        assert "Vocabulary" in screen_text(pilot.app)
        assert "    7  word7" in screen_text(pilot.app)
        assert pilot.app.result is nothing
        await pilot.press(key)
        assert pilot.app.result is None


@pytest.mark.parametrize(("keys", "first"), [("j", 1), ("jjk", 1), ("G", 78), (["G", "ctrl+home"], 0), (" ", 22)])
async def test_keys_scroll(open_screen, screen_text, keys, first):
    async with open_screen(MessageScreen("Vocabulary", WORDS)) as pilot:
        await pilot.press(*keys)
        for _ in range(3):
            await pilot.pause()
        shown = screen_text(pilot.app).splitlines()
        assert f"{first:5}  word{first} " in shown[1]


@pytest.mark.parametrize("kind", ["info", "error"])
async def test_text_is_no_markup_and_harmless(open_screen, screen_text, kind):
    async with open_screen(MessageScreen("[b]t[/", "[red]a[/b]\x1b[2J\n\x9b\u202e", kind)) as pilot:
        text = screen_text(pilot.app)
        assert "[b]t[/" in text
        assert "[red]a[/b]␛[2J" in text
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)


@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_an_error_has_another_colour(open_screen, theme):
    colors = set()
    for kind in ("info", "error"):
        async with open_screen(MessageScreen("t", "x", kind), theme=theme) as pilot:
            colors.add(pilot.app.screen.query_one("#box").styles.border_top[1])
    assert len(colors) == 2


async def test_a_small_terminal_and_no_colour(open_screen, screen_text, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_screen(MessageScreen("Vocabulary", WORDS, "error")) as pilot:
        for size in [(5, 3), (1, 1), (40, 12)]:
            await pilot.resize_terminal(*size)
        assert "word3" in screen_text(pilot.app)
        assert "esc close" in screen_text(pilot.app)
