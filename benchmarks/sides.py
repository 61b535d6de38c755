"""This program beside another one, in two processes that stay: each makes a pass when it is asked, in turn.

What others do on the machine then reaches both, and the least time of many passes is what a pass takes undisturbed.
`TORCH_PYTHON`, or `--reference PYTHON`, names an interpreter that has the other program, where this one has not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.measure import option, timed

ROOT = Path(__file__).parent.parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Taken(NamedTuple):
    """Seconds of a pass by the clock, and of processor time."""

    clock: float
    processor: float


def serve(run: Callable[..., object]) -> None:
    """Make a pass with the numbers of every line that comes in, and write what it took."""
    spent = 0.0

    def counted(*numbers: int) -> object:
        nonlocal spent
        began = time.process_time()
        result = run(*numbers)
        spent = time.process_time() - began
        return result

    for line in sys.stdin:
        print(timed(partial(counted, *map(int, line.split()))), spent, flush=True)


class Side:
    """A process that serves passes: a module of this folder and its arguments."""

    def __init__(self, python: str, module: str, *arguments: str, threads: int) -> None:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
        self._process = subprocess.Popen(
            (python, "-m", f"benchmarks.{module}", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def __call__(self, *numbers: int) -> Taken:
        """Ask for one pass."""
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        print(*numbers, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"  {' '.join(map(str, self._process.args))} ended")  # type: ignore[arg-type]
        return Taken(*map(float, line.split()))


def least(sides: Mapping[str, tuple[str, ...]], times: int) -> dict[str, Taken]:
    """The least that each took, in turn, after one pass that does not count; a side is a command of `Side`."""
    threads = int(option("--threads") or os.cpu_count() or 1)
    with ExitStack() as stack:
        running = {name: stack.enter_context(Side(*command, threads=threads)) for name, command in sides.items()}
        taken: dict[str, list[Taken]] = {name: [side()][:0] for name, side in running.items()}
        for _ in range(times):
            for name, side in running.items():
                taken[name].append(side())
    return {name: Taken(*map(min, zip(*figures, strict=True))) for name, figures in taken.items()}


@cache
def python_with(*modules: str) -> str | None:
    """An interpreter that can import these."""
    asked: Iterable[str | None] = (option("--reference"), os.environ.get("TORCH_PYTHON"), sys.executable)
    statement = f"import {', '.join(modules)}"
    for python in filter(None, asked):
        if subprocess.run((python, "-c", statement), capture_output=True, check=False).returncode == 0:
            return python
    print(f"  not measured: {' and '.join(modules)} cannot be imported (--reference names a Python that can)")
    return None
