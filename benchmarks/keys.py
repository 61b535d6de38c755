"""From a key to the end of the repaint, in the running program, seen from its terminal."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from benchmarks.measure import Promise, percentile, repetitions, report
from benchmarks.terminal import Terminal

COLUMNS, LINES = 160, 45
STEP, CELL, LAST = 1.6, 1.3, 4.0
"""What is promised, beside a bare repaint: of a step or a head, of a cell, and of the last repaint of a held key."""

BARE = "a bare Textual program repaints its whole screen"

QUIET = 0.04
"""Seconds without output that end a repaint: what follows sooner, heads and chart, is counted."""

REST = 0.15
"""Seconds without output between two keys."""

SETTLED = 1.0
"""Seconds without output once a step was gone to, which may take a whole forward pass."""

COMPILED = 10.0
"""The same on a GPU, where kernels are compiled when they are first called."""

HELD, EVERY = 72, 1 / 30
"""A key that is held: how often it comes, and the seconds between two."""

DEFAULT: dict[str, int] = {}
LARGE = {"d_model": 384, "heads": 12, "layers": 6, "d_ff": 1536}

SPACE, BACK, DOWN, RIGHT, TAB = b" ", b"\x7f", b"\x1b[B", b"\x1b[C", b"\t"
FIRST_CELL = b"\x1b[1;5H", b"\x1b[H"
"""A model opens where its numbers are large, or at its last token: a held key would come to the edge from there."""

PRESSES = {"next step": SPACE, "step back": BACK, "next head": b"]", "cell down": DOWN, "cell right": RIGHT}
HOLDS = {
    "cell down": [DOWN] * HELD,
    "cell right": [RIGHT] * HELD,
    "next head": [b"]"] * HELD,
    "next step, then back,": [*[SPACE] * 12, *[BACK] * 12] * (HELD // 24),
}
PAGES = {"page down": b"\x1b[6~", "page up": b"\x1b[5~", "cell down": DOWN}


@dataclass(frozen=True)
class Case:
    """A model on a number of tokens, and the step that is looked at."""

    name: str
    tokens: int
    sizes: dict[str, int]
    stop: str = "encoder.0.self_attention.weights"
    device: str = "cpu"

    @property
    def ids(self) -> tuple[int, ...]:
        """Words of the default vocabulary."""
        return tuple(1 + i % 7 for i in range(self.tokens))

    def command(self) -> list[str]:
        """The program on this case."""
        sizes = [part for key, value in self.sizes.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        ids = ",".join(map(str, self.ids))
        return [sys.executable, "-m", "tui_transformer", "--device", self.device, "--ids", ids, *sizes]


def main() -> None:
    cases = (
        Case("n 512, default", 512, DEFAULT),
        Case("n 512, d 384, 6 layers", 512, LARGE),
    )
    for case in cases:
        taken = measured(case, PRESSES, beside=True)
        plain = taken.pop(BARE)
        report(Promise(f"{BARE}, beside {case.name}", statistics.median(plain), "ms"))
        for name, spent in taken.items():
            reported(f"{name}, {case.name}", spent, plain)
        _hold(case, statistics.median(plain))
    _scrolling()


def _hold(case: Case, plain: float) -> None:
    """From the last of a key that is held to the end of its repaint; the longest of several."""
    with _opened(case) as terminal:
        for name, keys in HOLDS.items():
            longest = max(_after_holding(terminal, keys) for _ in range(repetitions(3)))
            title = f"{name} held at 30 a second: the last repaint, {case.name}"
            report(Promise(title, longest / plain, bound=LAST, note=f"{longest:.1f} ms"))


def _after_holding(terminal: Terminal, keys: Sequence[bytes]) -> float:
    spent = 1000 * terminal.hold(keys, EVERY, SETTLED)
    terminal.drain(REST)
    return spent


def _scrolling() -> None:
    """A matrix of 4,096 × 4,096 against one of 8 × 8."""
    small = measured(Case("8 × 8", 8, DEFAULT), PAGES)
    large = measured(Case("4,096 × 4,096", 4096, DEFAULT), PAGES)
    for name, spent in large.items():
        reported(f"{name}, 4,096 × 4,096 ÷ 8 × 8", spent, small[name], bounded=False)


def reported(name: str, spent: Sequence[float], other: Sequence[float], *, bounded: bool = True) -> None:
    """How long a key takes, beside something else."""
    bound = CELL if name.startswith("cell") else STEP
    median, beside = statistics.median(spent), statistics.median(other)
    note = f"{median:.1f} ms, 95 of 100 in {percentile(spent, 95):.1f}; beside {beside:.1f} ms"
    report(Promise(name, median / beside, bound=bound if bounded else None, note=note))


def measured(case: Case, presses: Mapping[str, bytes], *, beside: bool = False) -> dict[str, list[float]]:
    """Milliseconds of each key, in turn, and between them of a bare repaint, where that is wanted."""
    with _opened(case) as terminal, _bare() if beside else nullcontext() as bare:
        keys = {name: (terminal, key) for name, key in presses.items()}
        return _milliseconds(keys if bare is None else {BARE: (bare, b"x"), **keys})


@contextmanager
def _bare() -> Iterator[Terminal]:
    with Terminal([sys.executable, "-m", "benchmarks.bare"], COLUMNS, LINES) as terminal:
        terminal.drain(1.0)
        yield terminal


@contextmanager
def _opened(case: Case) -> Iterator[Terminal]:
    """The program at the step of a case, its matrix below the whole in focus, once everything is drawn."""
    with Terminal(case.command(), COLUMNS, LINES) as terminal:
        terminal.until(b"quit")
        terminal.drain(COMPILED if case.device == "gpu" else 0.0)
        for keys in (f":{case.stop}\r".encode(), TAB, *FIRST_CELL):
            terminal.drain(SETTLED)
            terminal.press(keys)
        terminal.drain(SETTLED)
        yield terminal


def _milliseconds(presses: Mapping[str, tuple[Terminal, bytes]]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in presses}
    for turn in range(repetitions(30) + 1):
        for name, (terminal, key) in presses.items():
            spent = terminal.repaint(key, QUIET)
            terminal.drain(REST)
            if turn:
                taken[name].append(spent * 1000)
    return taken


if __name__ == "__main__":
    main()
