"""The user's preferences: a theme and other keys, in a TOML file that is only ever read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import is_there, own_folders, read_toml
from tui_transformer.records import dataclass, field

FILE = "config.toml"
LARGEST = 1 << 20

SWITCHES = {"whole": True, "classic": False, "motion": True}
"""What is true or false in a file, and what it is without one."""

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
    good = {name: value for name, value in raw_keys.items() if isinstance(value, str)}
    if raw_keys is not keys or len(good) < len(keys):
        problems.append(f'{path}: [keys] holds lines such as "step.next" = "space"')
    name = theme if isinstance(theme, str) else None
    renamed = {RENAMED[former]: key for former, key in good.items() if former in RENAMED}
    usable = {name: value if isinstance(value, bool) else SWITCHES[name] for name, value in switches.items()}
    return Preferences(name, keys=renamed | good, problems=tuple(problems), **usable)
