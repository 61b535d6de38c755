"""Files of the user: what was used lately, how many questions were answered, and files that are named to be written.

Without the first two nothing is lost but convenience: one that cannot be read is empty, one that cannot be written is
left as it is. Files to be written are where a person says, or downloads of a visitor who has no folder here.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from textual.app import App

from tui_transformer.errors import InputError
from tui_transformer.files import expanded, make_folder, own_folders, read_json, write_whole
from tui_transformer.gate import Gate, gate
from tui_transformer.records import dataclass

Kind = Literal["commands", "edits", "labels", "models", "sentences", "surveys", "vocabularies"]
RECENT, SCORE = "recent.json", "score.json"
LARGEST = 1 << 18
"""Bytes of either file."""

MOST, LONGEST = 20, 2_000
"""Entries of a kind that are kept, and characters of one."""

MOST_ASKED = 10**9
DOWNLOADS = "downloads"
LONGEST_NAME = 100
"""Characters of a name that a browser is told."""


def recent_path() -> Path:
    """Where the file of what was used lately is."""
    return own_folders().user_state_path / RECENT


def recent(kind: Kind) -> tuple[str, ...]:
    """Entries that were used lately, the last first."""
    return _recent().get(kind, ())


def remember(kind: Kind, entry: str) -> None:
    """Put an entry first."""
    if not entry.strip() or len(entry) > LONGEST:
        return
    known = _recent()
    known[kind] = (entry, *(old for old in known.get(kind, ()) if old != entry))[:MOST]
    _keep(recent_path(), json.dumps(known, ensure_ascii=True, indent=1))


def _recent() -> dict[str, tuple[str, ...]]:
    lists = {kind: value for kind, value in _read(recent_path()).items() if isinstance(value, list)}
    return {
        kind: tuple(entry for entry in value if isinstance(entry, str) and len(entry) <= LONGEST)[:MOST]
        for kind, value in lists.items()
    }


@dataclass(frozen=True)
class Score:
    """Number of questions that were answered, and number of correct answers among them."""

    right: int = 0
    asked: int = 0

    def __str__(self) -> str:
        """`3 of 4 predicted`."""
        return f"{self.right:,} of {self.asked:,} predicted"


def score_path() -> Path:
    """Where the file of the score is."""
    return own_folders().user_state_path / SCORE


def read_score() -> Score:
    """The score so far."""
    raw = _read(score_path())
    right, asked = raw.get("right"), raw.get("asked")
    if type(right) is int and type(asked) is int and 0 <= right <= asked <= MOST_ASKED:  # True and False are none
        return Score(right, asked)
    return Score()


def count_answer(*, right: bool) -> Score:
    """The score with one more answer, which is kept."""
    known = read_score()
    score = Score(known.right + right, known.asked + 1)
    _keep(score_path(), json.dumps({"right": score.right, "asked": score.asked}))
    return score


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(read_json(path, LARGEST))
    except (InputError, OSError):
        return {}


def _keep(path: Path, text: str) -> None:
    with suppress(InputError, OSError, ValueError):
        make_folder(path.parent)
        write_whole(path, text.encode())


def path_of(name: str) -> Path:
    """The path that a person names, with ~ for their folder; of a download, where it is kept until it is handed over.

    Raises:
        InputError: The name is empty, or a visitor may not write there.
    """
    if not name.strip():
        raise InputError("give the file a name")
    closed = _without_folder()
    if closed is None:
        return expanded(name.strip())
    folder = closed.own / DOWNLOADS
    folder.mkdir(exist_ok=True)
    return folder / (re.sub(r"[^A-Za-z0-9._-]", "_", Path(name.strip()).name)[-LONGEST_NAME:] or "download")


def hand_over(app: App[Any], name: str) -> str:
    """What became of a file that was written to `path_of(name)`; a visitor's browser is given what cannot be kept."""
    if _without_folder() is None:
        return f"written: {name}"
    path = path_of(name)
    app.deliver_binary(path.open("rb"), save_directory=path.parent, save_filename=path.name)
    return f"downloaded: {path.name}"


def _without_folder() -> Gate | None:
    closed = gate()
    return closed if closed is not None and closed.folder is None else None
