from __future__ import annotations

from tui_transformer.explorer.shell.dialog import MessageScreen

WORDS = "\n".join(f"{number:5}  word{number}" for number in range(100))


async def test_it_is_shown_scrolled_and_closed(open_screen, screen_text, nothing):
    async with open_screen(MessageScreen("Vocabulary", WORDS)) as pilot:
        assert "Vocabulary" in screen_text(pilot.app)
        assert "    7  word7" in screen_text(pilot.app)
        # each from the top
        for keys, first in (("j", 1), ("jjk", 1), ("G", 78), (["G", "ctrl+home"], 0), (" ", 22)):
            await pilot.press(*keys)
            for _ in range(3):
                await pilot.pause()
            assert f"{first:5}  word{first} " in screen_text(pilot.app).splitlines()[1]
            await pilot.press("ctrl+home")
        assert pilot.app.result is nothing
        for key in ("escape", "enter", "q"):
            await pilot.press(key)
            assert pilot.app.result is None, key
            pilot.app.result = nothing
            pilot.app.push_screen(MessageScreen("", ""), pilot.app.keep)
            await pilot.pause()


async def test_text_is_no_markup_and_harmless(open_screen, screen_text):
    async with open_screen(MessageScreen("[b]t[/", "[red]a[/b]\x1b[2J\n\x9b\u202e")) as pilot:
        text = screen_text(pilot.app)
        assert "[b]t[/" in text
        assert "[red]a[/b]␛[2J" in text
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)


async def test_a_small_terminal_and_no_colour(open_screen, screen_text, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_screen(MessageScreen("Vocabulary", WORDS)) as pilot:
        for size in [(5, 3), (1, 1), (40, 12)]:
            await pilot.resize_terminal(*size)
        assert "word3" in screen_text(pilot.app)
        assert "esc close" in screen_text(pilot.app)
