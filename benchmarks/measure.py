"""Interleaved measurements, and a line for each promise."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

QUICK = "--quick"


def quick() -> bool:
    """Whether a rough answer is enough."""
    return QUICK in sys.argv[1:]


def option(name: str) -> str | None:
    """The value behind an option of the command line."""
    words = sys.argv[1:]
    return words[words.index(name) + 1] if name in words[:-1] else None


def repetitions(usual: int) -> int:
    """How often to measure: a third of the usual number where a rough answer is enough."""
    return max(3, usual // 3) if quick() else usual


@dataclass(frozen=True)
class Promise:
    """A measurement and its promised bound; without a bound it is for information.

    Attributes:
        name: What was measured.
        value: The ratio, or the number in the unit.
        unit: `×` for a ratio, else `ms`.
        bound: The value is not to be larger.
        note: The numbers behind a ratio.
    """

    name: str
    value: float
    unit: str = "×"
    bound: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the promise is kept."""
        if self.bound is None:
            return ""
        return "ok" if self.value <= self.bound else "OVER"

    def line(self) -> str:
        """The promise in one line."""
        bound = "" if self.bound is None else f"<= {self.bound:g} {self.unit}"
        measured = f"{self.value:.2f} {self.unit}"
        return f"  {self.name:<60} {measured:>11}  {bound:<10} {self.verdict:<4}  {self.note}".rstrip()


def report(*promises: Promise) -> None:
    """Print promises as soon as they are measured."""
    for promise in promises:
        print(promise.line(), flush=True)


def timed(function: Callable[[], object]) -> float:
    """Seconds that a function takes, without a collection of garbage inside, and without letting go of its result."""
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    result = function()
    spent = time.perf_counter() - started
    gc.enable()
    del result
    return spent


def interleaved(functions: Mapping[str, Callable[[], float]], times: int) -> dict[str, float]:
    """The median seconds of each, taken in turn so that a slow moment of the machine reaches all of them."""
    for function in functions.values():
        function()
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(times):
        for name, function in functions.items():
            taken[name].append(function())
    return {name: statistics.median(values) for name, values in taken.items()}


def percentile(values: Sequence[float], share: int) -> float:
    """The value that this many in a hundred do not exceed."""
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def milliseconds(**seconds: float) -> str:
    """Named times in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {value * 1000:.1f} ms" for name, value in seconds.items())
