"""How many questions were answered, and how many rightly, in a file of the user's state."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import make_folder, own_folders, read_json, write_whole

FILE = "score.json"
LARGEST = 1 << 12
MOST = 10**9


@dataclass(frozen=True)
class Score:
    """So many right of so many."""

    right: int = 0
    asked: int = 0

    def and_then(self, *, right: bool) -> Score:
        """With one more answer."""
        return Score(self.right + right, self.asked + 1)

    def __str__(self) -> str:
        """`3 of 4 predicted`."""
        return f"{self.right:,} of {self.asked:,} predicted"


def score_path() -> Path:
    """Where the file is."""
    return own_folders().user_state_path / FILE


def read_score() -> Score:
    """The score so far; none where the file cannot be read."""
    try:
        raw = read_json(score_path(), LARGEST)
    except (InputError, OSError):
        return Score()
    right, asked = (_count(raw.get(name)) for name in ("right", "asked"))
    return Score(right, asked) if 0 <= right <= asked <= MOST else Score()


def _count(value: object) -> int:
    """A count as it is kept; −1 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def keep_score(score: Score) -> None:
    """Write the score; a file that cannot be written is left as it is."""
    with suppress(InputError, OSError):
        path = score_path()
        make_folder(path.parent)
        write_whole(path, json.dumps({"right": score.right, "asked": score.asked}).encode())
