"""Bytes that a key writes to the terminal, on a model of the size of a sentence encoder, felt over a slow line."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.keys import COLUMNS, LINES
from benchmarks.measure import Promise, report
from benchmarks.terminal import Terminal

SENTENCE = "Where did the old sailor hide the map of the island?"
SIZES = ("--d-model", "384", "--heads", "12", "--layers", "6", "--d-ff", "1536")
COMMAND = (sys.executable, "-m", "tui_transformer", "--device", "cpu", "--text", SENTENCE, *SIZES)

ARROW, STEP, HEADS = 1.2, 1.6, 29.0
"""KiB that are promised."""

REST = 0.6
"""Seconds without output after which everything is drawn."""

PATIENCE = 3.0
"""Seconds in which a key writes something, if it does."""

DOWN, RIGHT, TAB, SPACE = b"\x1b[B", b"\x1b[C", b"\t", b" "
STEPS = 16
"""Steps of the embedding and of a layer, the last of which is another layer's."""


def main() -> None:
    with Terminal(COMMAND, COLUMNS, LINES) as terminal:
        terminal.until(b"quit")
        terminal.drain(1.0)
        for name, keys, bound in _turns():
            spent = [_kib(terminal, key) for key in keys]
            report(Promise(f"most that {name} writes, of {len(spent)}", max(spent), "KiB", bound))


def _turns() -> Iterator[tuple[str, list[bytes], float | None]]:
    """Keys in turn, and the KiB that each may write."""
    yield "a step, below the whole", [SPACE] * STEPS, STEP
    yield "going to another layer, below the whole", [b"}", b"}"], None
    yield "going to the matrix", [TAB], None
    yield "an arrow in the matrix, below the whole", [DOWN, RIGHT] * 4, ARROW
    yield "taking the whole away", [b"0"], None
    yield "a step", [SPACE] * STEPS, STEP
    yield "an arrow in the matrix", [DOWN, RIGHT] * 4, ARROW
    yield "the grid of all heads", [b"H"], HEADS
    yield "an arrow in the grid", [RIGHT, DOWN] * 3, ARROW


def _kib(terminal: Terminal, key: bytes) -> float:
    """KiB that a key writes, from its first byte until nothing more comes."""
    before, waiting = terminal.written, PATIENCE
    terminal.press(key)
    while terminal.written == before and waiting > 0:
        terminal.drain(REST)
        waiting -= REST
    terminal.drain(3 * REST if key == b"H" else REST)
    return (terminal.written - before) / 1024


if __name__ == "__main__":
    main()
