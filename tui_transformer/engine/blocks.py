"""Work on rows a block at a time: a block stays in the processor's cache, and every core takes some of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from tui_transformer.engine.backend import Array, Backend

BLOCK = 1 << 16
"""Cells of the widest array that are worked on at a time (256 KiB in float32)."""

Work = Callable[..., None]
"""Takes the same rows of every array and writes its result into one of them; rows do not depend on each other."""


def by_rows(backend: Backend, work: Work, *arrays: Array) -> None:
    """Do work on all rows of these arrays: at once on a GPU and where they are few, else block by block.

    Args:
        backend: Where the arrays are.
        work: What to do with some of the rows.
        arrays: Each … × columns, with as many rows; those that are written to are contiguous.
    """
    flat = [array.reshape(-1, array.shape[-1]) for array in arrays]
    height = max(1, BLOCK // max(1, *(array.shape[1] for array in flat)))
    starts = range(0, flat[0].shape[0], height)
    if len(starts) <= 1 or backend.device != "cpu":
        work(*flat)
    else:
        _share(lambda start: work(*(array[start : start + height] for array in flat)), starts)


def by_cells(backend: Backend, work: Work, *arrays: Array) -> None:
    """As `by_rows`, for arrays of one shape in which no cell depends on another."""
    by_rows(backend, work, *(array.reshape(-1, 1) for array in arrays))


def _share(work: Callable[[int], None], starts: range) -> None:
    """Work on every block; this thread takes what the others have not begun."""
    left = list(starts)

    @np.errstate(all="ignore")
    def take() -> None:
        while left:
            try:
                start = left.pop()
            except IndexError:
                return
            work(start)

    others = [_helpers().submit(take) for _ in range(min(cores(), len(starts)) - 1)]
    take()
    for other in others:
        if not other.cancel():
            other.result()


@cache
def cores() -> int:
    """How many threads compute: as many as the matrix products are allowed, or as there are cores for this process."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        given = os.environ.get(name, "")
        if given.isdecimal() and int(given) > 0:
            return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, cores() - 1), "engine-rows")
