"""From a key to the end of the repaint, in the running program, seen from its terminal."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Promise, percentile, repetitions, report
from benchmarks.terminal import Terminal
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions

COLUMNS, LINES = 160, 45
MEDIAN, NINETY_FIFTH = 20.0, 35.0
"""Milliseconds that are promised."""

QUIET = 0.008
"""Seconds without output that end a repaint. Heads and chart follow a moment after it, which is not counted."""

REST = 0.15
"""Seconds without output after which heads and chart are there too."""

DEFAULT: dict[str, int] = {}
LARGE = {"d_model": 384, "heads": 12, "layers": 6, "d_ff": 1536}
ANYTHING, TITLE, HEAD, WORKING = b"", b"step ", b" head ", b"query"
"""What is written again when a repaint has reached the pane that the key is about."""

Presses = dict[str, tuple[bytes, bytes]]
PRESSES: Presses = {
    "next step": (b" ", TITLE),
    "step back": (b"\x7f", TITLE),
    "next head": (b"]", HEAD),
    "cell down": (b"\x1b[B", ANYTHING),
    "cell right": (b"\x1b[C", ANYTHING),
    "cell down, until its working shows": (b"\x1b[B", WORKING),
}
PAGES: Presses = {
    "page down": (b"\x1b[6~", ANYTHING),
    "page up": (b"\x1b[5~", ANYTHING),
    "cell down": (b"\x1b[B", ANYTHING),
}


@dataclass(frozen=True)
class Case:
    """A model on a number of tokens, and the step that is looked at."""

    name: str
    tokens: int
    sizes: dict[str, int]
    stop: str = "encoder.0.self_attention.weights"

    @property
    def ids(self) -> tuple[int, ...]:
        """Words of the default vocabulary."""
        return tuple(1 + i % 7 for i in range(self.tokens))

    def command(self) -> list[str]:
        """The program on this case."""
        sizes = [part for key, value in self.sizes.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        ids = ",".join(map(str, self.ids))
        return [sys.executable, "-m", "tui_transformer", "--device", "cpu", "--ids", ids, *sizes]

    def steps(self) -> int:
        """How often to press space until the step is there."""
        return open_session(ModelOptions(device="cpu", sizes=self.sizes), None, self.ids).stops.index(self.stop)


def main() -> None:
    bare = _bare()
    report(_median("a bare Textual program repaints its whole screen", bare))
    cases = (
        Case("n 512, default", 512, DEFAULT),
        Case("n 512, d 384, 6 layers", 512, LARGE),
    )
    for case in cases:
        for name, spent in _measured(case, PRESSES).items():
            _report(f"{name}, {case.name}", spent, bare)
    _scrolling()


def _scrolling() -> None:
    """A matrix of 4,096 × 4,096 against one of 8 × 8."""
    small = _measured(Case("8 × 8", 8, DEFAULT), PAGES)
    large = _measured(Case("4,096 × 4,096", 4096, DEFAULT), PAGES)
    for name, spent in large.items():
        _report(f"{name}, 4,096 × 4,096", spent, small[name])


def _report(name: str, spent: Sequence[float], other: Sequence[float]) -> None:
    ratio = statistics.median(spent) / statistics.median(other)
    report(
        _median(name, spent, MEDIAN, f"{ratio:.1f} × {statistics.median(other):.1f} ms"),
        Promise("   95 of 100", percentile(spent, 95), "ms", NINETY_FIFTH),
    )


def _median(name: str, spent: Sequence[float], bound: float | None = None, note: str = "") -> Promise:
    return Promise(name, statistics.median(spent), "ms", bound, note)


def _bare() -> list[float]:
    with Terminal([sys.executable, "-m", "benchmarks.bare"], COLUMNS, LINES) as terminal:
        terminal.drain(1.0)
        return _milliseconds(terminal, {"key": (b"x", ANYTHING)})["key"]


def _measured(case: Case, presses: Presses) -> dict[str, list[float]]:
    """Milliseconds of each key, in turn, once everything that they show was computed."""
    steps = case.steps()
    with Terminal(case.command(), COLUMNS, LINES) as terminal:
        terminal.until(b"quit")
        for key in (*[b" "] * (steps + 1), b"\x7f"):
            terminal.drain(REST)
            terminal.press(key)
        terminal.drain(1.0)
        return _milliseconds(terminal, presses)


def _milliseconds(terminal: Terminal, presses: Presses) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in presses}
    for turn in range(repetitions(30) + 1):
        for name, (key, mark) in presses.items():
            spent = terminal.repaint(key, mark, QUIET)
            terminal.drain(REST)
            if turn:
                taken[name].append(spent * 1000)
    return taken


if __name__ == "__main__":
    main()
