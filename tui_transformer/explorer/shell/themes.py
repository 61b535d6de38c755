"""The colours of the explorer: navy with amber for what is chosen, dark and light."""

from __future__ import annotations

from collections.abc import Iterable

from textual.color import Color as Mixed
from textual.design import ColorSystem
from textual.theme import Theme

from tui_transformer.explorer.guard.cell_style import LEAST
from tui_transformer.views.view import contrast_ratio


def _variables(
    *, chosen: str, on_chosen: str, border: str, hover: str, track: str, selection: str, footer: str
) -> dict[str, str]:
    """Textual's variables for borders, scroll bars, cursors and the footer."""
    return {
        "border": chosen,
        "border-blurred": border,
        "scrollbar": border,
        "scrollbar-hover": hover,
        "scrollbar-active": chosen,
        "scrollbar-background": track,
        "scrollbar-background-hover": track,
        "scrollbar-background-active": track,
        "scrollbar-corner-color": track,
        "block-cursor-background": chosen,
        "block-cursor-foreground": on_chosen,
        "input-cursor-background": chosen,
        "input-cursor-foreground": on_chosen,
        "input-selection-background": selection,
        "footer-background": footer,
        "footer-key-foreground": chosen,
    }


DARK = Theme(
    name="tui-dark",
    primary="#7aa2f7",
    secondary="#5a9bbd",
    accent="#ffc04d",
    foreground="#c8d3f5",
    background="#0b1021",
    surface="#10172e",
    panel="#18224a",
    warning="#ffc04d",
    error="#ff7a85",
    success="#8fd6a4",
    dark=True,
    variables=_variables(
        chosen="#ffc04d",
        on_chosen="#0b1021",
        border="#2c3f86",
        hover="#4560b8",
        track="#0d1328",
        selection="#2c3f86",
        footer="#131b3a",
    ),
)

LIGHT = Theme(
    name="tui-light",
    primary="#2d5693",
    secondary="#2f7f9c",
    accent="#9a5a00",
    foreground="#1d2747",
    background="#f7f7f3",
    surface="#ffffff",
    panel="#e4e9f6",
    warning="#9a5a00",
    error="#b3243b",
    success="#1f7a43",
    dark=False,
    variables=_variables(
        chosen="#9a5a00",
        on_chosen="#ffffff",
        border="#a9b7dd",
        hover="#7f93c8",
        track="#eceef4",
        selection="#c9d5f2",
        footer="#e4e9f6",
    ),
)

THEMES = (DARK, LIGHT)

SHORT = {"dark": DARK.name, "light": LIGHT.name}
"""What the themes of the program are called in short."""


def theme_names(others: Iterable[str]) -> tuple[str, ...]:
    """The themes that there are, those of the program first and by their short names."""
    return (*SHORT, *sorted(set(others) - set(SHORT.values())))


class Readable(Theme):
    """A light theme of Textual with an accent so dark that the cell that is chosen can be read on its page.

    It is looked for when the theme is chosen: to do so for all would hold up the first screen.
    """

    def to_color_system(self) -> ColorSystem:
        colors = super().to_color_system().generate()
        page, accent = (Mixed.parse(colors[name]) for name in ("background", "accent"))
        while contrast_ratio(accent.rgb, page.rgb) < LEAST:
            accent = accent.darken(0.02)
        return Theme(**{**vars(self), "accent": accent.hex}).to_color_system()


def readable(theme: Theme) -> Theme:
    """A theme of Textual as it is used here."""
    return theme if theme.dark or theme.ansi else Readable(**vars(theme))
