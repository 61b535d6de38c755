"""The frame of the screen with what is being read, for a model that takes a while: it stands before there is one."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from os import get_terminal_size
from threading import Event, RLock, Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from tui_transformer.machine import ENDING
from tui_transformer.text.display import cells, fit, visible

if TYPE_CHECKING:
    from textual.theme import Theme

SOON, AGAIN = 1 / 3, 0.5
"""Seconds after which it is drawn, and after which it is drawn again."""

SIGNALS = (*ENDING, *((signal.SIGTSTP,) if hasattr(signal, "SIGTSTP") else ()))
"""Signals that end or stop the program: the terminal is given back before."""

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[0m\x1b[?25h\x1b[?1049l"
LEAST = 40, 8
"""Columns and lines below which one line is all that is drawn."""


class FirstFrame:
    """Stands on the terminal, once it has waited for a moment, until the explorer draws; is taken down by an exception.

    It is drawn by a thread, on standard error, as is everything by Textual.
    """

    def __init__(self, what: str, text: str | None, theme: str | None) -> None:
        """The frame of the screen while a model is read.

        Args:
            what: The model.
            text: The sentence that it will read, where one is given.
            theme: The colours, in place of those that the user prefers.
        """
        self._what, self._text, self._wanted = visible(what), visible(text or ""), theme
        self._ready, self._lock, self._up = Event(), RLock(), False
        self._begun = time.monotonic()
        self._settings: list[Any] | None = None
        self._handlers = {number: signal.getsignal(number) for number in SIGNALS}
        self._thread = Thread(target=self._stand, daemon=True)

    def __enter__(self) -> Self:
        for number, handler in self._handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._signalled)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ready.set()
        self._thread.join()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is not None:
            self._take_down()
        self._echo(on=True)

    def _stand(self) -> None:
        wait, colors = SOON, ("", "")
        while not self._ready.wait(wait):
            wait, colors = AGAIN, colors if any(colors) else _colors(self._wanted)
            with self._lock:
                if not self._up:
                    self._echo(on=False)
                _write(ENTER * (not self._up) + self._drawn(*colors))
                self._up = True

    def _take_down(self) -> None:
        with self._lock:
            if self._up:
                _write(LEAVE)
            self._up = False

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        """Give the terminal back, and do what the signal asks for; come back where it was to wait."""
        with self._lock:
            self._take_down()
            self._echo(on=True)
            signal.signal(number, self._handlers[number] or signal.SIG_DFL)
            signal.raise_signal(number)
            signal.signal(number, self._signalled)

    def _echo(self, *, on: bool) -> None:
        """Whether what is typed is seen; it is kept for the explorer in any case."""
        try:
            import termios

            if on and self._settings is not None:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._settings)
                self._settings = None
            elif not on:
                self._settings = before = termios.tcgetattr(sys.stdin.fileno())
                quiet = [*before]
                quiet[3] &= ~termios.ECHO
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
        except (ImportError, OSError, ValueError):  # Windows; or the terminal has gone
            return

    def _drawn(self, page: str, bar: str) -> str:
        try:
            width, height = get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        except OSError:
            width, height = 80, 24
        says = f"reading {self._what} · {time.monotonic() - self._begun:.0f} s"
        if width < LEAST[0] or height < LEAST[1]:
            return f"\x1b[H{page}\x1b[2J{fit(says, width)}"
        box = _box("Sentence", [self._text, ""], width) + _box("", ["", says], width, height - 6)
        lines = [bar + fit(f" tui-transformer   {self._what}", width), *(page + line for line in box)]
        lines.append(bar + fit(" interrupt it with ctrl+c", width))
        return "".join(f"\x1b[{y}H{line}\x1b[0m" for y, line in enumerate(lines, 1))


def _box(title: str, lines: list[str], width: int, height: int = 4) -> list[str]:
    named = f"╭─ {title} " if title else "╭─"
    inside = [f"│ {fit(line, width - 4)} │" for line in [*lines, *[""] * height][: height - 2]]
    return [named + "─" * (width - cells(named) - 1) + "╮", *inside, f"╰{'─' * (width - 2)}╯"]


def _colors(wanted: str | None) -> tuple[str, str]:
    """Sequences for the page and the bars; none but reversed bars where the terminal has not all colours."""
    if "NO_COLOR" in os.environ or os.environ.get("COLORTERM") not in ("truecolor", "24bit"):
        return "", "\x1b[7m"
    from textual.theme import BUILTIN_THEMES

    from tui_transformer.explorer.shell.preferences import preferences_path, read_preferences
    from tui_transformer.explorer.shell.themes import SHORT, THEMES

    themes: dict[str, Theme] = {**BUILTIN_THEMES, **{theme.name: theme for theme in THEMES}}
    name = wanted or read_preferences(preferences_path()).theme or os.environ.get("TEXTUAL_THEME", "")
    theme = themes.get(SHORT.get(name, name), THEMES[0])
    page, panel = theme.background, theme.panel or theme.background
    front = theme.foreground
    if not all(each and re.fullmatch("#[0-9a-fA-F]{6}", each) for each in (page, panel, front)):
        return "", "\x1b[7m"
    return _paint(48, page) + _paint(38, front), _paint(48, panel) + _paint(38, front)


def _paint(place: int, color: str | None) -> str:
    red, green, blue = (int(str(color)[at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[{place};2;{red};{green};{blue}m"


def _write(text: str) -> None:
    if sys.__stderr__ is not None:
        try:
            sys.__stderr__.write(text)
            sys.__stderr__.flush()
        except OSError:  # the terminal has gone
            return
