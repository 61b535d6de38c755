"""Paths as people write them into a form."""

from __future__ import annotations

from pathlib import Path

from tui_transformer.files import expanded, meant
from tui_transformer.learning.run import runs_in

RUNS = Path("runs")
"""Where runs are put that nobody named another folder for."""


def path_of(text: str) -> Path:
    """A path as a person writes it, whole."""
    return expanded(text.strip()).absolute()


def runs_here() -> list[str]:
    """The runs of the usual folder that have checkpoints, the one that was saved last first."""
    return [str(RUNS / path.name) for path in runs_in(meant(RUNS))]
