"""Paths as people write them into a form."""

from __future__ import annotations

from pathlib import Path

from tui_transformer.files import expanded


def path_of(text: str) -> Path:
    """A path as a person writes it, whole."""
    return expanded(text.strip()).absolute()
