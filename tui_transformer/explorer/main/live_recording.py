"""A recording of what is done: every screen from one moment on, for as long as it was there; written where it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.screen import Screen
from textual.strip import Strip

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.guard.frame import strips_of
from tui_transformer.explorer.recorded import Shot, form_of, self_contained
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.user_files import path_of
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import visible

EVERY = 0.1
"""Seconds between two looks at the screen."""

MOST = 1_000
"""Screens of a recording, which then ends by itself."""

WALK = "walk.html"


class LiveRecording:
    """Keeps what the screen shows between two presses of a key, and writes it."""

    def __init__(self, port: Port, screen: Screen[Any]) -> None:
        self._port, self._screen = port, screen
        self._screens: list[tuple[float, Sequence[Strip], str]] = []
        self._goes_on = False

    def begin_or_end(self) -> None:
        """Begin; or end, and ask for the file."""
        if self._goes_on:
            self._end()
            return
        self._screens, self._goes_on = [], True
        self._port.say(self._port.hint("everything that is shown is recorded: {record} ends it and asks for a file"))
        self._look()

    def _look(self) -> None:
        """Keep the screen where it is another than before."""
        if not self._goes_on:
            return
        strips = [*strips_of(self._screen.app)]
        if not self._screens or strips != self._screens[-1][1]:
            picture = self_contained(self._screen.app.export_screenshot())
            self._screens.append((time.monotonic(), strips, picture))
        if len(self._screens) == MOST:
            self._end()
        else:
            later(self._screen.app, EVERY, self._look)

    def _end(self) -> None:
        self._goes_on = False
        end, screens = time.monotonic(), self._screens
        ends = [*(begun for begun, _, _ in screens[1:]), end]
        shots = [
            Shot(number, "screen", f"screen {number} of {len(screens)}", until - begun, strips, lambda svg=picture: svg)  # type: ignore[misc]
            for number, ((begun, strips, picture), until) in enumerate(zip(screens, ends, strict=True), 1)
        ]
        if not shots:
            self._port.say("nothing was shown since the recording began")
            return
        prompt = PromptScreen(
            "Write the recording to",
            value=WALK,
            hint=f"{len(shots)} screens, as .cast, .gif, .png or .html, or into a folder",
            check=lambda name: form_of(path_of(name), "", lambda _: None),
            replaces=True,
        )
        self._port.open(prompt, lambda name: None if name is None else self._write(path_of(name), shots))

    def _write(self, path: Path, shots: Sequence[Shot]) -> None:
        """Write the file on the worker: a moving picture takes a while to draw."""
        title = f"{self._port.session.model.name}: {visible(self._port.session.text)}"

        def work(task: Task) -> str:
            try:
                form = form_of(path, title, lambda _: None)
                for shot in shots:
                    task.report(f"screen {shot.number} of {len(shots)}")
                    form.add(shot)
                form.finish()
            except (InputError, OSError) as error:
                return f"not written: {error}"
            return ""

        def done(problem: str) -> None:
            if problem:
                self._port.say(problem)
            else:
                self._port.written(str(path))

        self._port.ask("record", AT_ONCE + 1, work, done)
