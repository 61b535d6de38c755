"""Models and texts of late, in a file of the user's state; without it nothing is lost but convenience."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Literal

from tui_transformer.errors import InputError
from tui_transformer.files import make_folder, own_folders, read_json, write_whole

Kind = Literal["edits", "models", "sentences", "surveys", "vocabularies"]
FILE = "recent.json"
MOST = 20
"""Entries of a kind that are kept."""

LONGEST = 2_000
"""Characters of an entry that is kept."""

LARGEST = 1 << 18


def recent_path() -> Path:
    """Where the file is."""
    return own_folders().user_state_path / FILE


def recent(kind: Kind) -> tuple[str, ...]:
    """Entries that were used lately, the last first; none where the file cannot be read."""
    return _read().get(kind, ())


def remember(kind: Kind, entry: str) -> None:
    """Put an entry first; a file that cannot be written is left as it is."""
    if not entry.strip() or len(entry) > LONGEST:
        return
    known = _read()
    known[kind] = (entry, *(old for old in known.get(kind, ()) if old != entry))[:MOST]
    with suppress(InputError, OSError, ValueError):
        path = recent_path()
        make_folder(path.parent)
        write_whole(path, json.dumps(known, ensure_ascii=True, indent=1).encode())


def _read() -> dict[str, tuple[str, ...]]:
    try:
        raw = read_json(recent_path(), LARGEST)
    except (InputError, OSError):
        return {}
    lists = {kind: value for kind, value in raw.items() if isinstance(value, list)}
    return {
        kind: tuple(entry for entry in value if isinstance(entry, str) and len(entry) <= LONGEST)[:MOST]
        for kind, value in lists.items()
    }
