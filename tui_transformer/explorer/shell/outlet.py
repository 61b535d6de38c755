"""Files that a person names to be written: where they say, or as downloads of a visitor who has no folder here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from textual.app import App

from tui_transformer.errors import InputError
from tui_transformer.files import expanded
from tui_transformer.gate import Gate, gate

DOWNLOADS = "downloads"
LONGEST = 100
"""Characters of a name that a browser is told."""


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
    return folder / (re.sub(r"[^A-Za-z0-9._-]", "_", Path(name.strip()).name)[-LONGEST:] or "download")


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
