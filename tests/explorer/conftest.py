from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal with all colours, and folders of the user that are empty.

    What a program keeps out of collections for as long as it runs would stay here for all tests.
    """
    monkeypatch.setattr(gc, "freeze", lambda: None)
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL_")]:
        if name != "TEXTUAL_SNAPSHOT_TEMPDIR":
            monkeypatch.delenv(name)
    for name in FOLDERS:
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture
def screen_text() -> Callable[[App[Any]], str]:
    """A function that gives the text on an app's screen."""
    return lambda app: "\n".join(strip.text for strip in app.screen._compositor.render_strips())
