from __future__ import annotations

import subprocess
import sys

from driving import NARROW, exploring

from tui_transformer.explorer.shell.help_page import HelpScreen

TEXT = "# Keys\n\nWhat `space` does \x1b[2J [b]x[/b].\n\n" + "\\\n".join(f"line {i}" for i in range(60))


async def test_it_is_shown_scrolled_and_closed(open_screen, screen_text, shows, nothing):
    async with open_screen(HelpScreen(TEXT, "Help")) as pilot:
        await shows(pilot.app, "What space does ␛[2J [b]x[/b].")
        assert "\x1b" not in screen_text(pilot.app)
        # each from the top
        for keys, there in (("jjjk", "line 18"), ("  ", "line 43"), ("G", "line 59")):
            await pilot.press(*keys)
            await shows(pilot.app, there)
            await pilot.press("ctrl+home")
            await shows(pilot.app, "Keys")
        assert pilot.app.result is nothing
        for key in ("escape", "q", "question_mark", "f1"):
            await pilot.press(key)
            assert pilot.app.result is None, key
            pilot.app.result = nothing
            pilot.app.push_screen(HelpScreen("", "Help"), pilot.app.keep)
            await pilot.pause()


async def test_a_small_terminal_and_no_colour(open_screen, shows, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_screen(HelpScreen(TEXT, "Help")) as pilot:
        for theme in ("tui-dark", "tui-light"):
            pilot.app.theme = theme
            for size in [(5, 3), (1, 1), (40, 12)]:
                await pilot.resize_terminal(*size)
            await shows(pilot.app, "What space does")
            await shows(pilot.app, "esc close")


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
