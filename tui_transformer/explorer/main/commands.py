"""Entries of the palette beside actions: every step, the models and tours of the program, every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.app import SystemCommand

from tui_transformer.explorer.main.parts import Parts
from tui_transformer.explorer.state.session import LOSS, TEXT, VOCABULARY
from tui_transformer.explorer.tools.opening import COMMANDS
from tui_transformer.guide.texts import step_text

Commands = Iterator[SystemCommand]


def commands(parts: Parts) -> Commands:
    """A command for each, with what it leads to."""
    yield from _steps(parts)
    yield from (SystemCommand(*command) for command in COMMANDS(parts.port))


def _steps(parts: Parts) -> Commands:
    session = parts.explored.session
    for number, stop in enumerate(session.stops, 1):
        words = step_text(stop)
        name = "" if stop in (VOCABULARY, TEXT, LOSS) else f" · {stop}"
        go: Callable[[], None] = partial(parts.navigation.go_to_stop, stop)
        yield SystemCommand(f"Step {number}: {words.label}{name}", words.what or "go to the step", go)
