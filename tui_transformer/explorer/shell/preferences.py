"""The user's preferences: a theme and other keys, in a TOML file that is only ever read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import is_there, own_folders, read_toml
from tui_transformer.records import dataclass, field

FILE = "config.toml"
LARGEST = 1 << 20

SWITCHES = {"whole": True, "classic": False, "motion": True}
"""What is true or false in a file, and what it is without one."""

HELD = {"ctrl", "shift", "alt", "super", "hyper", "meta"}
SHORT = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown"} | {
    "←": "left",
    "→": "right",
    "↑": "up",
    "↓": "down",
}
"""What is held while a key is pressed, and how keys are written shorter than they are called."""

RENAMED = {"beside": "overlay"}
"""Names that actions once had, which a file may still give keys to, with those that they have now."""


@dataclass(frozen=True)
class Preferences:
    """The settings of the file. `problems` are lines about what could not be used.

    Without `whole` the explorer opens with lists of steps and heads, however large the terminal is. With `classic` it
    has the keys that were before there were menus. Without `motion` no step is shown on its way to its values.

    A file looks so::

        theme = "tui-light"
        whole = false
        classic = true
        motion = false
        [keys]
        "step.next" = "space,j"
    """

    theme: str | None = None
    whole: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    classic: bool = False
    motion: bool = True

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys of the user, and below them the classic ones where those are wanted."""
        if not self.classic:
            return self.keys
        from tui_transformer.explorer.shell.keys import CLASSIC

        return {**CLASSIC, **self.keys}


def preferences_path() -> Path:
    """Where the file is looked for."""
    return own_folders().user_config_path / FILE


def read_preferences(path: Path) -> Preferences:
    """The preferences in a file; defaults where there is none, and a line for everything that cannot be used."""
    try:
        raw = read_toml(path, LARGEST) if is_there(path) else {}
    except (InputError, OSError) as error:
        return Preferences(problems=(str(error),))
    theme, keys = raw.get("theme"), raw.get("keys", {})
    switches = {name: raw.get(name, usual) for name, usual in SWITCHES.items()}
    problems = [f"{path}: {key} is not known" for key in raw if key not in ("theme", "keys", *switches)]
    if theme is not None and not isinstance(theme, str):
        problems.append(f"{path}: theme is a name in quotes")
    problems += [f"{path}: {name} is true or false" for name, value in switches.items() if not isinstance(value, bool)]
    raw_keys = keys if isinstance(keys, dict) else {}
    given = {name: value for name, value in raw_keys.items() if isinstance(value, str)}
    if raw_keys is not keys or len(given) < len(keys):
        problems.append(f'{path}: [keys] holds lines such as "step.next" = "space"')
    good, useless = _usable(given)
    problems += [f"{path}: [keys] {said}" for said in useless]
    name = theme if isinstance(theme, str) else None
    renamed = {RENAMED[former]: key for former, key in good.items() if former in RENAMED}
    usable = {name: value if isinstance(value, bool) else SWITCHES[name] for name, value in switches.items()}
    return Preferences(name, keys=renamed | good, problems=tuple(problems), **usable)


def _usable(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The keys of the names that there are, each as the program calls it; and what cannot be used."""
    if not given:
        return {}, []
    from tui_transformer.explorer.shell.actions import SCREENS
    from tui_transformer.explorer.shell.keys import MEANINGS

    good, useless = dict[str, str](), list[str]()
    known = {*MEANINGS, *RENAMED, *(action.id for actions in SCREENS.values() for action in actions if action.id)}
    for name, written in given.items():
        if name not in known:
            near = ", ".join(get_close_matches(name[:40], sorted(known), 3)) or "step.next"
            useless.append(f"{name[:40]!r} is no name of a key: use a name such as {near}")
            continue
        keys = ["comma"] if written.strip() == "," else [_named(each) for each in written.split(",") if each.strip()]
        good |= {name: ",".join(filter(None, keys))} if any(keys) else {}
        if not keys or None in keys:
            useless.append(f"{name} = {written[:40]!r} is no key: write it as x, /, space, escape, f5, ctrl+g")
    return good, useless


def _named(written: str) -> str | None:
    """The name of a key that may be written as help has it, `esc` or `Ctrl+G`; None where there is none."""
    from textual.keys import REPLACED_KEYS, Keys, key_to_character

    from tui_transformer.explorer.shell.keys import name_of_key

    *held, key = re.split(r"\+(?=.)", written.strip())
    held, key = [each.lower() for each in held], key.lower() if len(key) > 1 or held else key
    key = SHORT.get(key, name_of_key(key))
    if held == ["shift"] and len(key) == 1:
        return key.upper()
    there = {each.value.rpartition("+")[2] for each in Keys}
    known = len(key) == 1 or key in there or key in REPLACED_KEYS or key_to_character(key) is not None
    return "+".join((*held, key)) if known and {*held} <= HELD else None
