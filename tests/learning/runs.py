"""Shared by the tests of runs: short texts, small models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.settings import Settings

SMALL = {"d_model": 16, "heads": 2, "layers": 1}
TEXTS = {
    "next-word": "story",
    "next-character": "story",
    "masked-word": "story",
    "classify": "question",
    "pairs": "dates",
}


def text_file(folder: Path, task: str, count: int = 60) -> Path:
    """A file of lines for a task."""
    path = folder / f"{task}.txt"
    path.write_text("".join(f"{line}\n" for line in lines_of(TEXTS[task], count)), encoding="utf-8")
    return path


def small(folder: Path, task: str = "next-character", count: int = 60, **more: Any) -> Settings:
    """Settings of a run that takes a moment."""
    settings = {"steps": 8, "batch": 4, "length": 16, "warm_up": 2, "save_every": 100, "device": "cpu"} | more
    sizes = SMALL | settings.pop("sizes", {})
    return Settings(task, str(text_file(folder, task, count)), sizes=sizes, **settings)
