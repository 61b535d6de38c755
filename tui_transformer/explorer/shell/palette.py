"""The entries of the command palette: every action of the screen that is shown, and of what has the keys on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from textual.app import SystemCommand
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from tui_transformer.explorer.shell.keymap import bindings_in_use

Display = Callable[[Binding], str]


def commands_of(
    screen: Screen[Any], display: Display, keymap: Mapping[str, str], left_out: Collection[str]
) -> Iterator[SystemCommand]:
    """A command for every action but those that are of no use now.

    Args:
        screen: What is shown.
        display: Writes a key as the key line does.
        keymap: The keys of the user.
        left_out: The meanings that are of no use.
    """
    said: set[str] = set()
    nodes = (screen,) if screen.focused is None else (screen, screen.focused)
    for node in nodes:
        for binding in _bindings(node):
            if binding.tooltip not in said and binding.id not in left_out:
                said.add(binding.tooltip)
                keys = " ".join(map(display, bindings_in_use(binding, keymap)))
                hint = f"key: {keys}" if keys else "no key"
                yield SystemCommand(binding.tooltip, hint, partial(node.run_action, binding.action))


def _bindings(node: DOMNode) -> Iterator[Binding]:
    """Those of the program: each has a name, by which its keys can be changed, and says what it does."""
    for kind in type(node).__mro__:
        for binding in vars(kind).get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id and binding.tooltip:
                yield binding
