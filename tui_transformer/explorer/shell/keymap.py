"""The keys that are in use: those of the program, or those that the user gave to an action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.app import App
from textual.binding import Binding

from tui_transformer.explorer.shell.keys import KEYS, UNBOUND, Action, spelled


def bindings_in_use(binding: Binding, keymap: Mapping[str, str]) -> Iterator[Binding]:
    """A binding for each key of an action; none where it has no key."""
    keys = keymap.get(binding.id or "") or binding.key
    return (binding.with_key(key.strip(), None) for key in keys.split(",") if not key.startswith(UNBOUND))


def in_use(actions: Sequence[Action], app: App[Any]) -> Sequence[Action]:
    """Actions as the line of keys writes them: with the first of the keys that the user gave them."""
    keymap = _keymap(app)
    return [replace(each, shown=_first(each, app, keymap)) if each.id in keymap else each for each in actions]


def _first(action: Action, app: App[Any], keymap: Mapping[str, str]) -> str:
    return app.get_key_display(next(bindings_in_use(action.binding(), keymap)))


def keys_of(app: App[Any], meanings: Sequence[str]) -> Iterator[str]:
    """The keys of every meaning that begins with one of these, those of the user where there are any."""
    keymap = _keymap(app)
    for name, keys in KEYS.items():
        if name.startswith(tuple(meanings)):
            yield from (key.strip() for key in keymap.get(name, keys).split(","))


def first_key(app: App[Any], meaning: str) -> str:
    """The first key of a meaning, as it is written on the screen."""
    return spelled(next(keys_of(app, [meaning])))


def _keymap(app: App[Any]) -> Mapping[str, str]:
    """The keys that the user gave to actions, by the names of those; none in an app that has no such keys."""
    return getattr(app, "keymap", {})
