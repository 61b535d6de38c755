"""Words that are markup, escapes or of strange width, and a look at a screen that shows them."""

from __future__ import annotations

import unicodedata

from driving import Explorer

from tui_transformer.explorer.shell.actions import SCREENS

MARKUP = ["[bold]x[/]", "[/]", "[@click=app.quit]x[/]", "[red]", "[[b]]", "\\[b]", ":smile:", "$accent", "**b**", "`c`"]
ESCAPES = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b31mred", "a\x00b", "\x7f", "\x08\x08"]
STRANGE = [
    *("\u202eabc\u202c", "\u200b", "a\u200db", "🙂", "👨\u200d👩\u200d👧", "e\u0301", "\u0301"),
    *("漢字", "ﷺ", "नमस्ते", "\ufeff", "\U000e0041"),
]
KINDS = {"markup": MARKUP, "escapes": ESCAPES, "strange": STRANGE}
ACTIONS = {
    name if "." in name.partition("(")[0] else f"screen.{name}"
    for actions in SCREENS.values()
    for name in (action.action for action in actions)
}
"""What a click on a line of keys does."""
HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def check_screen(explorer: Explorer) -> None:
    """Nothing harmful is on the screen, and every line is as wide as the screen; only keys can be clicked."""
    width, keys = explorer.app.size.width, explorer.main.query_one("#keys").region.y
    for y, strip in enumerate(explorer.app.screen._compositor.render_strips()):
        assert not [c for c in strip.text if unicodedata.category(c) in HARMFUL], strip.text
        assert strip.cell_length == width, strip.text
        clicked = {segment.style.meta.get("@click") for segment in strip if segment.style is not None} - {None}
        assert not any("quit" in action for action in clicked) or y == keys, strip.text
        assert clicked <= ACTIONS, strip.text
    assert explorer.app.is_running
    assert explorer.app.return_code is None
