"""Keys in use, those of the program or of the user, and where they are written: hints, line of keys, palette."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.keys import KEYS, UNBOUND, Action, spelled
from tui_transformer.guide.lecture import Lecture
from tui_transformer.text.display import cells

_MEANING, _KEY = re.compile(r"\{([a-z.-]+)\}"), re.compile(r"\{key:([^{}\s]+)\}")

_LISTED = re.compile(r"- `[^:]*`:")
"""The beginning of a line of help, with its keys."""


def bindings_in_use(binding: Binding, keymap: Mapping[str, str]) -> Iterator[Binding]:
    """A binding for each key of an action; none where it has no key."""
    keys = keymap.get(binding.id or "") or binding.key
    return (binding.with_key(key.strip(), None) for key in keys.split(",") if not key.startswith(UNBOUND))


def in_use(actions: Sequence[Action], app: App[Any]) -> Sequence[Action]:
    """Actions as the line of keys writes them: with the first of the keys that the user gave them."""
    keymap = keymap_of(app)
    return [replace(each, shown=_shown(each, app, keymap)) for each in actions]


def _shown(action: Action, app: App[Any], keymap: Mapping[str, str]) -> str:
    meanings = action.of.split() or [action.id]
    if keymap.keys().isdisjoint(meanings):
        return action.shown
    return " ".join(_displayed(meaning, app, keymap) for meaning in meanings)


def _displayed(meaning: str, app: App[Any], keymap: Mapping[str, str]) -> str:
    """The first key of a meaning in the line of keys; a name that is none is a key itself."""
    if meaning not in KEYS and meaning not in keymap:
        return meaning
    return app.get_key_display(next(bindings_in_use(Action(meaning, "", "").binding(), keymap)))


def keys_of(app: App[Any], meanings: Sequence[str]) -> Iterator[str]:
    """The keys of these meanings, those of the user where there are any; `step.` stands for all of this beginning."""
    keymap, groups = keymap_of(app), tuple(each for each in meanings if each.endswith("."))
    for name, keys in KEYS.items():
        if name in meanings or name.startswith(groups):
            yield from (key.strip() for key in (keymap.get(name) or keys).split(","))


def first_key(app: App[Any], meaning: str) -> str:
    """The first key of a meaning, as it is written on the screen."""
    return _first_key(keymap_of(app), meaning)


def _first_key(keymap: Mapping[str, str], meaning: str) -> str:
    return spelled((keymap.get(meaning) or KEYS[meaning]).split(",")[0].strip())


def hint(app: App[Any], text: str) -> str:
    """A text that names keys by their meanings: `{undo} takes it back` is `u takes it back`."""
    return hint_in(keymap_of(app), text)


def hint_in(keymap: Mapping[str, str], text: str) -> str:
    """The same with the keys that a user gave to meanings."""
    return _MEANING.sub(lambda match: _first_key(keymap, match[1]) if match[1] in KEYS else match[0], text)


def with_keys(told: Lecture, keymap: Mapping[str, str]) -> Lecture:
    """A tour in whose texts `{key:undo}` is the key for that, of the user's or the program's.

    Raises:
        InputError: A text names a key that there is not.
    """
    stops = []
    for stop in told.stops:
        fill = partial(_KEY.sub, partial(_named, keymap, f"{told.path or told.name}: [{stop.name}]"))
        stops.append(replace(stop, title=fill(stop.title), text=fill(stop.text), notes=fill(stop.notes)))
    return replace(told, stops=tuple(stops))


def _named(keymap: Mapping[str, str], where: str, named: re.Match[str]) -> str:
    if named[1] not in KEYS:
        near = ", ".join(get_close_matches(named[1], KEYS, 3, 0.3)) or "undo"
        raise InputError(f"{where} {named[0][:60]} is no key of the program: use a name such as {near}")
    return _first_key(keymap, named[1])


def with_own_keys(app: App[Any], markdown: str) -> str:
    """A page in which keys stand between backticks, with those that the user gave in the place of the program's."""
    keymap = keymap_of(app)
    own = {
        f"`{spelled(key)}`": f"`{_first_key(keymap, meaning)}`"
        for meaning in keymap
        for key in KEYS.get(meaning, "").split(",")
        if key
    }
    return re.sub(r"`[^`\s]+`", lambda match: own.get(match[0], match[0]), markdown)


def without(markdown: str, meanings: Collection[str]) -> str:
    """A page without the lines of a list about keys of these meanings alone: "- `W`: write on"."""
    keys = {f"`{spelled(key)}`" for meaning in meanings for key in KEYS.get(meaning, "").split(",") if key}
    return "\n".join(line for line in markdown.split("\n") if not _of_keys(line, keys))


def _of_keys(line: str, keys: set[str]) -> bool:
    said = _LISTED.match(line)
    return said is not None and set(re.findall(r"`[^`]+`", said[0])) <= keys


def keymap_of(app: App[Any]) -> Mapping[str, str]:
    """The keys that the user gave to actions, by the names of those; none in an app that has no such keys."""
    return getattr(app, "keymap", {})


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
