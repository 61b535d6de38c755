"""Work on rows a block at a time: a block stays in the processor's cache while several passes go over it."""

from __future__ import annotations

from collections.abc import Callable

from tui_transformer.engine.backend import Array, Backend

Work = Callable[..., None]
"""Takes the same rows of every array and writes its result into one of them; rows do not depend on each other."""


def by_rows(backend: Backend, work: Work, *arrays: Array) -> None:
    """Do work on all rows of these arrays: at once on a GPU and where they are one block, else block by block.

    Args:
        backend: Where the arrays are.
        work: What to do with some of the rows: … × columns.
        arrays: All of one shape, … × columns; those that are written to are contiguous.
    """
    if backend.device != "cpu" or arrays[0].size <= backend.block:
        work(*arrays)
        return
    flat = [array.reshape(-1, array.shape[-1]) for array in arrays]
    height = max(1, backend.block // flat[0].shape[1])
    for start in range(0, len(flat[0]), height):
        work(*(array[start : start + height] for array in flat))


def by_cells(backend: Backend, work: Work, *arrays: Array) -> None:
    """As `by_rows`, where no cell depends on another."""
    if backend.device != "cpu" or arrays[0].size <= backend.block:
        work(*arrays)
        return
    by_rows(backend, work, *(array.reshape(-1, 1) for array in arrays))
