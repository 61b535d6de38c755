"""Words that are markup, escapes or of strange width, and a look at a screen that shows them."""

from __future__ import annotations

import unicodedata

from driving import Explorer

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
