"""What a machine has, as people and settings write it: memory, threads, and signals that end a program.

Only the standard library is imported: the command line reads this first.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Settings of the environment that say how many threads products may take, whichever library makes them."""

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Signals that end the program in order, besides ctrl+c: what is half-written is removed."""

UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
LARGEST = 1 << 50


def parse_size(text: str) -> int | None:
    """Bytes from a number and a unit: `512MiB`, `2 GiB`, `0`; None for anything else."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or float(match[1]) * unit > LARGEST:
        return None
    return int(float(match[1]) * unit)


def readable(size: int) -> str:
    """Bytes as people read them: `512 MiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def available_memory() -> int:
    """Bytes that can be taken without swapping, as the system estimates them; physical memory where it does not say."""
    from pathlib import Path  # takes longer than all else that is imported here

    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def cores() -> int:
    """Processors that work may be shared out to: no more than the environment lets products take."""
    chosen = (os.environ.get(name, "") for name in THREADS)
    return min([processors(), *(int(number) for number in chosen if number.isdecimal() and int(number))])


def on_cores(count: int, work: Callable[[], None]) -> None:
    """Call this on so many cores at once, each until there is nothing left to do; what one raises is raised here."""
    from contextvars import copy_context

    helpers: list[Future[None]] = []
    try:
        while len(helpers) < count - 1:
            helpers.append(_threads(os.getpid()).submit(copy_context().run, work))
    except RuntimeError:  # the system gives no thread, or the program ends: fewer do it
        pass
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():  # it has begun; one that has not would find nothing left to do
                helper.result()


@cache
def _threads(_process: int) -> Executor:
    """Those of a process: a copy of it has none of them."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max(1, cores() - 1), "core")
