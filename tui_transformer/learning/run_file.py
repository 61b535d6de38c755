"""`run.json` in a run's folder: its settings, and the fingerprint of its text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_json, write_whole
from tui_transformer.learning.settings import Settings
from tui_transformer.text.files import shown_path

RUN = "run.json"

CHANGEABLE = ("steps", "save_every", "device")
"""Settings that may be others when a run is resumed."""

_LARGEST = 1 << 20


def is_run(folder: Path) -> bool:
    """Whether a run was begun in the folder."""
    return is_file(folder / RUN)


def settings_of(folder: Path) -> Settings:
    """The settings of a run.

    Raises:
        InputError: No run is there, or its file is damaged.
    """
    return read_settings(folder)[0]


def write_settings(folder: Path, settings: Settings, text: str) -> None:
    """Keep the settings of a run, and the fingerprint of its text.

    Raises:
        InputError: The file cannot be written.
    """
    data = json.dumps({"settings": settings.to_json(), "text": text}, indent=2) + "\n"
    write_whole(folder / RUN, data.encode())


def read_settings(folder: Path) -> tuple[Settings, str]:
    """The settings of a run, and the fingerprint of its text.

    Raises:
        InputError: No run is there, or its file is damaged.
    """
    if not is_run(folder):
        raise InputError(f"{shown_path(folder)} holds no run: leave out --resume to begin one")
    raw = read_json(folder / RUN, _LARGEST)
    try:
        return Settings.from_json(raw["settings"]), str(raw["text"])
    except UsageError as error:
        raise InputError(f"{shown_path(folder / RUN)}: {error}: the file is damaged") from error
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{shown_path(folder / RUN)}: not the settings of a run: the file is damaged") from error


def with_changes(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings of the run, with those of `given` that may change.

    Raises:
        UsageError: One that may not is another.
    """
    own = settings.to_json()
    for key, value in given.items():
        for name, wanted, has in _compared(key, value, own):
            if wanted != has:
                option = f"--{name.replace('_', '-')}" if name != "file" else "FILE"
                raise UsageError(f"{option} {wanted}: the run has {has}: leave it out, or begin another run in --out")
    return replace(settings, **{key: given[key] for key in CHANGEABLE if key in given})


def _compared(key: str, value: Any, own: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    if key == "sizes":
        yield from ((name, size, own["sizes"].get(name, "another")) for name, size in value.items())
    elif key not in CHANGEABLE:
        yield key, value, own[key]
