"""Reuse of host memory: fresh memory from the system costs more than many of the operations that fill it.

Large blocks are taken as the system gives them. NumPy asks for huge pages for them, whose first use was measured to
take up to six times as long where memory is virtual: longer than the forward pass that fills them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape

SMALLEST = 1 << 15
"""Below this many bytes NumPy's own allocation is as good."""

LARGE = 1 << 22
"""From so many bytes NumPy asks for huge pages."""

PAGE = 1 << 12
"""Sizes of blocks are multiples of it, so that a sentence that grows by a token finds those of the last one."""

FREE_LIMIT = 1 << 25
"""Bytes that may lie idle whatever is computed."""

UNASKED = 1 << 13
"""Arrays that are made until blocks that lay idle meanwhile are let go: far more than a training step makes."""


M_ARENA_MAX = -8
"""Number of that setting in the GNU library's `malloc.h`."""


def trim() -> None:
    """Give the system the memory that lies idle in the C library, which keeps what it was given in small pieces."""
    with suppress(OSError, AttributeError, TypeError):  # the GNU library alone has it
        ctypes.CDLL(None).malloc_trim(0)


def share_one_heap() -> None:
    """Let all threads take small pieces of memory from one heap: what lies idle in the others would stay there."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


class Lease:
    """The owner of an array's memory; when the last array on it is gone, the memory goes back to its pool."""

    def __init__(self, pool: Pool, memory: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
        self._pool, self._memory = pool, memory
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (memory.ctypes.data, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._pool.give_back(self._memory)


class Pool:
    """Idle blocks of memory by size; `limit` bytes may lie idle, or as many as a trace keeps, and none for long."""

    def __init__(self, limit: int = FREE_LIMIT) -> None:
        self._usual = self._limit = limit
        self._free: dict[int, list[Any]] = {}
        self._idle = self._made = 0
        self._least: dict[int, int] = {}

    def expect(self, size: int) -> None:
        """Let as much lie idle as a trace keeps, and no more: the next one will ask for it."""
        self._limit = max(self._usual, size)
        if self._idle > self._limit:
            self.clear()

    def empty(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        """An array with undefined contents, on memory that was used before where there is some of that size."""
        self._made += 1
        if self._made > UNASKED:
            self._let_go()
        size = math.prod(shape) * dtype.itemsize
        if size < SMALLEST:
            return np.empty(shape, dtype)
        return np.asarray(Lease(self, self._take(-(-size // PAGE) * PAGE), shape, dtype))

    @property
    def idle(self) -> Mapping[int, int]:
        """How many blocks of each size, in bytes, lie idle."""
        return {size: len(blocks) for size, blocks in self._free.items() if blocks}

    def clear(self) -> None:
        """Give the system all blocks that lie idle."""
        self._free, self._idle, self._least = {}, 0, {}

    def _take(self, size: int) -> Any:
        try:
            memory = self._free[size].pop()
        except (KeyError, IndexError):
            self._least.pop(size, None)
            if size < LARGE:
                return np.empty(size, np.uint8)
            return np.frombuffer(memoryview((ctypes.c_char * size)()), np.uint8)
        self._idle -= size
        if len(self._free[size]) < self._least.get(size, 0):
            self._least[size] = len(self._free[size])
        return memory

    def give_back(self, memory: Any) -> None:
        """Take a block that nobody uses any more; past the limit all idle blocks are let go."""
        if memory.nbytes > self._limit:
            return
        if self._idle + memory.nbytes > self._limit:
            self.clear()
        self._free.setdefault(memory.nbytes, []).append(memory)
        self._idle += memory.nbytes

    def _let_go(self) -> None:
        """Give the system the blocks that lay idle all the time, as after a long sentence or a training."""
        for size, blocks in list(self._free.items()):  # a list, as an array that goes meanwhile gives its block back
            self._idle -= size * len(blocks[: self._least.get(size, 0)])
            del blocks[: self._least.get(size, 0)]
            if not blocks:
                self._free.pop(size, None)
        self._least, self._made = {size: len(blocks) for size, blocks in list(self._free.items())}, 0
