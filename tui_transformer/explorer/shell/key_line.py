"""The line of keys at the foot of a screen: as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.content import Content

from tui_transformer.explorer.shell.keymap import in_use
from tui_transformer.explorer.shell.keys import Action
from tui_transformer.text.display import cells


def key_line(actions: Sequence[Action], app: App[Any], width: int, always: int = 2) -> Content:
    """The actions that have a word, each with its key, as many as fit; so many of the last ones in any case."""
    named = [action for action in in_use(actions, app) if action.short]
    room, chosen = width - 1 - sum(map(_width, named[-always:])), list[Action]()
    for action in named[:-always]:
        if _width(action) <= room:
            room -= _width(action)
            chosen.append(action)
    return Content("").join(map(_key, (*chosen, *named[-always:])))


def _width(action: Action) -> int:
    return cells(action.shown) + cells(action.short) + 3


def _key(action: Action) -> Content:
    return Content.assemble(" ", (action.shown, "bold $accent"), (f" {action.short} ", "$foreground 70%"))
