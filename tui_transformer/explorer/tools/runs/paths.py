"""Paths as people write them into a form."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def path_of(text: str) -> Path:
    """A path as a person writes it, whole."""
    path = Path(text.strip())
    with suppress(RuntimeError, ValueError):
        path = path.expanduser()
    return path.absolute()
