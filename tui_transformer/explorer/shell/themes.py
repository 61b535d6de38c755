"""The colours of the explorer: navy with amber for what is chosen, dark and light."""

from __future__ import annotations

from textual.theme import Theme

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
    variables={
        "border": "#ffc04d",
        "border-blurred": "#2c3f86",
        "scrollbar": "#2c3f86",
        "scrollbar-hover": "#4560b8",
        "scrollbar-active": "#ffc04d",
        "scrollbar-background": "#0d1328",
        "scrollbar-background-hover": "#0d1328",
        "scrollbar-background-active": "#0d1328",
        "scrollbar-corner-color": "#0d1328",
        "block-cursor-background": "#ffc04d",
        "block-cursor-foreground": "#0b1021",
        "input-cursor-background": "#ffc04d",
        "input-cursor-foreground": "#0b1021",
        "input-selection-background": "#2c3f86",
        "footer-background": "#131b3a",
        "footer-key-foreground": "#ffc04d",
    },
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
    variables={
        "border": "#9a5a00",
        "border-blurred": "#a9b7dd",
        "scrollbar": "#a9b7dd",
        "scrollbar-hover": "#7f93c8",
        "scrollbar-active": "#9a5a00",
        "scrollbar-background": "#eceef4",
        "scrollbar-background-hover": "#eceef4",
        "scrollbar-background-active": "#eceef4",
        "scrollbar-corner-color": "#eceef4",
        "block-cursor-background": "#9a5a00",
        "block-cursor-foreground": "#ffffff",
        "input-cursor-background": "#9a5a00",
        "input-cursor-foreground": "#ffffff",
        "input-selection-background": "#c9d5f2",
        "footer-background": "#e4e9f6",
        "footer-key-foreground": "#9a5a00",
    },
)

THEMES = (DARK, LIGHT)
