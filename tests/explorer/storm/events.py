"""Events of a storm: input of a terminal, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.keys import MENUS, UNBOUND

SIZES = (
    (160, 45),
    (120, 40),
    (100, 30),
    (80, 24),
    (60, 20),
    (40, 12),
    (20, 10),
    (12, 5),
    (5, 3),
    (2, 2),
    (1, 1),
)
LARGEST = (300, 100)
"""A size that is rare, as it takes long to draw."""

SPECIAL = {
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "pageup": b"\x1b[5~",
    "pagedown": b"\x1b[6~",
    "insert": b"\x1b[2~",
    "delete": b"\x1b[3~",
    "f1": b"\x1bOP",
    "shift+tab": b"\x1b[Z",
    "tab": b"\t",
    "enter": b"\r",
    "escape": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "slash": b"/",
    "comma": b",",
    "question_mark": b"?",
    "right_square_bracket": b"]",
    "left_square_bracket": b"[",
    "right_curly_bracket": b"}",
    "left_curly_bracket": b"{",
    "shift+up": b"\x1b[1;2A",
    "ctrl+right": b"\x1b[1;5C",
    "ctrl+home": b"\x1b[1;5H",
}

MOVES = tuple(SPECIAL[name] for name in ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab"))
ENDS = tuple(SPECIAL[name] for name in ("enter", "escape", "enter", "backspace"))
OTHERS = tuple(bytes([code]) for code in (*range(33, 127), *(code for code in range(1, 27) if code != 26)))
TEXTS = (
    "the cat",
    "a,b",
    "1 2 3",
    "0",
    "-1",
    "nan",
    "1e400",
    "漢字",
    "é́",
    "🙂‍↔️",
    "[red]x",
    "\u202eabc",
    "x.svg",
    "x.npz",
    "out.json",
    "7.csv",
)
RAW = (
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b[1;1R",
    b"\x1b[?2026;2$y",
    b"\x1b[?2048;2$y",
    b"\x1b[48;24;80;480;800t",
    b"\x1b[48;0;0;0;0t",
    b"\x1b[48;1;1;0;0t",
    b"\x1b[97;5u",
    b"\x1b[97:65;2u",
    b"\x1b[9999999999u",
    b"\x1b[27;1;27~",
    b"\x1b[?62;c",
    b"\x1b]11;rgb:0000/0000/0000\x07",
    b"\x1bP1$r0m\x1b\\",
    b"\x1b[",
    b"\x1b[<",
    b"\x1bO",
    b"\x1b[M   ",
    b"\x1b[M\x01\x01\x01",
    b"\xff",
    b"\xc3",
    b"\xe6\xbc",
    b"\x00",
    b"\x9b",
)


LONGEST = 60
"""Bytes of an event that are told."""


@dataclass(frozen=True)
class Event:
    """One thing that happens to the terminal: bytes come, or it gets another size."""

    sent: bytes = b""
    size: tuple[int, int] | None = None

    def __str__(self) -> str:
        """As a person reads it."""
        sent = self.sent if len(self.sent) < LONGEST else self.sent[:LONGEST] + b"..."
        return f"{self.size[0]}×{self.size[1]}" if self.size else repr(sent)[1:]


def storm(seed: int, count: int) -> Iterator[Event]:
    """So many events; a seed gives the same ones again."""
    chance = random.Random(seed)  # noqa: S311
    kinds, weights = zip(*KINDS.items(), strict=True)
    for kind in chance.choices(kinds, weights, k=count):
        yield kind(chance)


def _keymap() -> tuple[bytes, ...]:
    """Every key of the keymap, as a terminal sends it."""
    names = [name for action in ACTIONS for name in action.keys.split(",")]
    menus = [f"{menu.key}{letter}".encode() for menu in MENUS.values() for letter in menu.entries]
    return (*(_sent(name) for name in names if name != "ctrl+z" and not name.startswith(UNBOUND)), *menus)


def _sent(name: str) -> bytes:
    if name.startswith("ctrl+") and len(name) == len("ctrl+") + 1:
        return bytes([ord(name[-1]) & 0x1F])
    return SPECIAL[name] if name in SPECIAL else name.encode()


def _one_of(choices: tuple[bytes, ...]) -> Callable[[random.Random], Event]:
    return lambda chance: Event(chance.choice(choices))


def _text(chance: random.Random) -> Event:
    return Event(chance.choice(TEXTS).encode())


def _twice(chance: random.Random) -> Event:
    """The same key two or three times at once."""
    return Event(chance.choice((*_KEYMAP, *ENDS)) * chance.choice((2, 2, 3)))


def _together(chance: random.Random) -> Event:
    """A key that opens or chooses, and what comes right behind it."""
    return Event(b"".join(chance.choices((*_KEYMAP, *ENDS), k=chance.randint(2, 4))))


def _mouse(chance: random.Random) -> Event:
    x, y = chance.randint(0, chance.choice((10, 80, 320))), chance.randint(0, chance.choice((5, 24, 110)))
    button = chance.choice((0, 0, 0, 1, 2, 32, 35, 64, 65, 66, 67, 4, 16))
    if button == 0:
        return Event(f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m".encode())
    return Event(f"\x1b[<{button};{x};{y}{chance.choice('Mm')}".encode())


def _paste(chance: random.Random) -> Event:
    text = chance.choice((*TEXTS, "line\nline\r\n", "a" * 5_000, "\x1b[31mred", "\x00\x07"))
    return Event(b"\x1b[200~" + text.encode() + b"\x1b[201~")


def _noise(chance: random.Random) -> Event:
    """A control sequence with any parameters."""
    final = chance.choice("ABCDEFGHPQRSTu~tcnm$yZ")
    numbers = ";".join(
        str(chance.choice((0, 1, 2, 5, 48, 97, 255, 70_000, 10**12))) for _ in range(chance.randint(0, 4))
    )
    return Event(f"\x1b[{chance.choice(('', '?', '<', '>'))}{numbers}{final}".encode())


def _resize(chance: random.Random) -> Event:
    drawn = chance.random()
    if drawn < 0.03:
        return Event(size=LARGEST)
    if drawn < 0.7:
        return Event(size=chance.choice(SIZES))
    return Event(size=(chance.randint(1, 160), chance.randint(1, 50)))


_KEYMAP = _keymap()

KINDS: dict[Callable[[random.Random], Event], int] = {
    _one_of(_KEYMAP): 34,
    _one_of(MOVES): 16,
    _one_of(ENDS): 14,
    _one_of(OTHERS): 8,
    _twice: 5,
    _together: 5,
    _text: 4,
    _mouse: 7,
    _paste: 1,
    _one_of(RAW): 2,
    _noise: 1,
    _resize: 3,
}
