"""A recording of what is done: every screen from one moment on, for as long as it was there; written where it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.screen import Screen

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.guard.frame import strips_of
from tui_transformer.explorer.recorded import Packed, Shot, form_of, packed, unpacked
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.user_files import path_of
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.files import is_there
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import visible

EVERY = 0.1
"""Seconds between two looks at the screen."""

MOST, MOST_LINES = 1_000, 20_000
"""Screens of a recording at most, and lines that differ, about 30 MB."""

WALK = "walk"
MOST_WALKS = 1_000
"""Recordings in a folder that are given a name that is free."""


class LiveRecording:
    """Keeps what the screen shows between two presses of a key, and writes it."""

    def __init__(self, port: Port, screen: Screen[Any]) -> None:
        self._port, self._screen = port, screen
        self._lines: dict[Packed, int] = {}
        self._screens: list[tuple[float, tuple[int, ...]]] = []
        self._goes_on = False

    def begin_or_end(self) -> None:
        """Begin; or ask for the file, and go on where none is given: nothing is lost by a slip."""
        if self._goes_on:
            self._ask()
            return
        self._lines, self._screens, self._goes_on = {}, [], True
        self._port.say(self._port.hint("everything that is shown is recorded: {record} ends it and asks for a file"))
        self._look()

    def _look(self) -> None:
        """Keep the screen where it is another than before, as often as that may be."""
        if not self._goes_on or not self._screen.app.screen_stack:  # the program ends
            return
        lines = (packed(strip) for strip in strips_of(self._screen.app))
        numbers = tuple(self._lines.setdefault(line, len(self._lines)) for line in lines)
        if numbers and (not self._screens or numbers != self._screens[-1][1]):
            self._screens.append((time.monotonic(), numbers))
        if len(self._screens) < MOST and len(self._lines) < MOST_LINES:
            later(self._screen.app, EVERY, self._look)
        else:
            many = f"{len(self._screens):,} screens are recorded, and no more"
            self._port.say(self._port.hint(f"{many}: {{record}} asks for a file"))

    def _ask(self) -> None:
        shown, lines = list(self._screens), list(self._lines)
        if not shown:  # the terminal had no room for a line
            self._port.say("nothing was shown yet that could be written")
            return
        ends = [*(begun for begun, _ in shown[1:]), time.monotonic()]

        def shots() -> Iterator[Shot]:
            for number, ((begun, numbers), until) in enumerate(zip(shown, ends, strict=True), 1):
                strips = [unpacked(lines[each]) for each in numbers]
                yield Shot(number, "screen", f"screen {number} of {len(shown)}", until - begun, strips, len(shown))

        def finish(name: str | None) -> None:
            if name is None:
                self._port.say(self._port.hint("the recording goes on: {record} asks for a file"))
                return
            self._write(path_of(name), shots())

        prompt = PromptScreen(
            "Write the recording to",
            value=_free_name(),
            hint=f"{len(shown)} screens, as .cast, .gif, .png or .html, or into a folder",
            check=lambda name: form_of(path_of(name), "", lambda _: None),
            replaces=True,
        )
        self._port.open(prompt, finish)

    def _write(self, path: Path, shots: Iterator[Shot]) -> None:
        """Write the file on the worker: a moving picture takes a while to draw."""
        title = f"{self._port.session.model.name}: {visible(self._port.session.text)}"

        def work(task: Task) -> str:
            try:
                form = form_of(path, title, lambda _: None)
                for shot in shots:
                    task.report(shot.title)
                    form.add(shot)
                form.finish()
            except (InputError, OSError) as error:
                return f"not written, and the recording goes on: {error}"
            return ""

        def done(problem: str) -> None:
            if problem:
                self._port.say(problem)
                return
            self._goes_on = False
            self._port.written(str(path))

        self._port.ask("record", AT_ONCE + 1, work, done)


def _free_name() -> str:
    """`walk-01.html`, or the number after those that are there."""
    names = [f"{WALK}-{number:02}.html" for number in range(1, MOST_WALKS)]
    return next((name for name in names if not is_there(path_of(name))), names[-1])
