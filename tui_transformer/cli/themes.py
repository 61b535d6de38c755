"""Whether there is a theme."""

from __future__ import annotations

from tui_transformer.errors import UsageError


def check_theme(theme: str) -> None:
    """Raise UsageError where no theme is called so."""
    from textual.theme import BUILTIN_THEMES

    from tui_transformer.explorer.shell.themes import SHORT, theme_names

    names = theme_names(BUILTIN_THEMES)
    if theme not in (*names, *SHORT.values()):
        raise UsageError(f"no theme is called {theme[:40]!r}: use {', '.join(names)}")
