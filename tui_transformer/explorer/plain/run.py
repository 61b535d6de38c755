"""Run the explorer without a screen: lines of a pipe or a file, or single keys of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from tui_transformer.errors import InputError, reason
from tui_transformer.explorer.plain.keys import ASKS, Typed, key_name, meanings, pressed, read
from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.explorer.shell.keymap import hint_in
from tui_transformer.explorer.shell.preferences import preferences_path, read_preferences
from tui_transformer.guide.lecture import Lecture
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible

LONGEST = 100_000
"""Characters of a line; what is behind them is not read."""


def run_plain(session: Session, at: Position | None = None, told: Lecture | None = None) -> int:
    """Answer what is typed until it ends; the exit code is 1 where a line of a pipe could not be done."""
    preferences = read_preferences(preferences_path())
    by_line = sys.stdin is None or not sys.stdin.isatty()
    reader = Reader(Exploration.begun(session, at), told, preferences.keymap, by_line=by_line)
    known = meanings(preferences.keymap)
    begin = (*map(visible, preferences.problems), reader.begin())
    if sys.stdin is None:
        _say(*begin)
        return 0
    if by_line:
        _say(*begin)
        return int(_answered(reader, _lines(sys.stdin, known)))
    with _at_once(sys.stdin):  # before anything is said: whoever reads it may press a key
        _say(*begin)
        _answered(reader, _keys(sys.stdin, known, preferences.keymap))
    return 0


def _answered(reader: Reader, asked: Iterable[Typed | InputError]) -> bool:
    """Answer until it ends; whether something could not be done."""
    failed = False
    for typed in asked:
        try:
            if isinstance(typed, InputError):
                raise typed
            _say(reader.answer(typed))
        except (InputError, MemoryError) as error:
            _say(f"Not done: {visible(reason(error))}.")
            failed = True
        if reader.ended:
            break
    return failed


def _say(*sentences: str) -> None:
    """A line for each, at once: somebody may wait for it."""
    for sentence in sentences:
        sys.stdout.write(" ".join(sentence.splitlines()) + "\n")
    sys.stdout.flush()


def _lines(source: TextIO, known: Mapping[str, str]) -> Iterator[Typed | InputError]:
    while line := source.readline(LONGEST):
        rest = line
        while len(rest) == LONGEST and not rest.endswith("\n"):
            rest = source.readline(LONGEST)
        try:
            yield read(line.rstrip("\n"), known)
        except InputError as error:
            yield error


def _keys(source: TextIO, known: Mapping[str, str], keymap: Mapping[str, str]) -> Iterator[Typed | InputError]:
    """Commands of keys as they are pressed; words are read as a line."""
    count = menu = ""
    for key in pressed(source.fileno()):
        if key.isdecimal() and (count or key != "0") and len(count) < 4:
            count += key
            continue
        meaning, times, count = known.get(f"{menu}{key}" if menu else key_name(key), ""), int(count or 1), ""
        menu = key if meaning.startswith("menu.") else ""
        if key in ("\x03", "\x04"):
            yield Typed("quit")
        elif meaning in ASKS:
            yield Typed(meaning, words=_asked(source, ASKS[meaning]))
        elif meaning:
            yield Typed(meaning, times)
        else:
            yield InputError(f"the key {key!r} means nothing here: {hint_in(keymap, '{help}')} lists those that do")


def _asked(source: TextIO, what: str) -> str:
    """A line of words, with echo and its keys of editing."""
    import termios

    sys.stdout.write(f"{what}: ")
    sys.stdout.flush()
    now = termios.tcgetattr(source)
    line_by_line = [*now]
    line_by_line[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(source, termios.TCSADRAIN, line_by_line)
    try:
        return source.readline(LONGEST).strip()
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, now)


@contextmanager
def _at_once(source: TextIO) -> Iterator[None]:
    """Keys come as they are pressed, without echo; the terminal is as it was afterwards."""
    import termios
    import tty

    was = termios.tcgetattr(source)
    try:
        tty.setcbreak(source, termios.TCSADRAIN)  # nothing that was typed is lost
        yield
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, was)
