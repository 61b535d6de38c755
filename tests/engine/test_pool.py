"""Host memory is used again, and never by two arrays at once."""

from __future__ import annotations

import ctypes
import gc
import math
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tui_transformer.engine.pool import LARGE, SMALLEST, UNASKED, Pool, trim
from tui_transformer.model import Model

SHAPE, DTYPE = (SMALLEST // 4, 2), np.dtype(np.float32)


SIZE = math.prod(SHAPE) * DTYPE.itemsize


def idle_bytes(pool: Pool) -> int:
    """Bytes of all blocks that lie idle."""
    return sum(size * count for size, count in pool.idle.items())


def use(pool: Pool, count: int = 1, shape: tuple[int, ...] = SHAPE) -> None:
    """Make arrays that are there together, and let them go."""
    _ = [pool.empty(shape, DTYPE) for _ in range(count)]


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(("before", "after"), [(SHAPE, SHAPE), ((12, 1, 769), (12, 1, 770))])
def test_memory_is_used_again_when_its_array_is_gone_and_for_one_that_is_a_little_longer(before, after):
    pool = Pool()
    first = pool.empty(before, DTYPE)
    place = address(first)
    del first
    second = pool.empty(after, DTYPE)
    second[...] = 3
    assert address(second) == place


def test_arrays_have_the_shape_and_type_asked_for_and_can_be_written_to_their_last_cell():
    for shape in (SHAPE, (2, 3), (), (0, 4)):
        array = Pool().empty(shape, DTYPE)
        array[...] = 1
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, DTYPE, True)
    for shape in ((1023, 1025), (LARGE // 4 + 1,)):
        array = Pool().empty(shape, DTYPE)
        array[...] = 1
        assert array.sum() == math.prod(shape)


def test_memory_in_use_does_not_count_as_idle_a_view_keeps_it_and_past_the_limit_it_is_let_go():
    pool = Pool()
    use(pool)
    assert idle_bytes(pool) > 0
    array = pool.empty(SHAPE, DTYPE)
    assert idle_bytes(pool) == 0
    del array
    first = pool.empty(SHAPE, DTYPE)
    first[...] = 5
    view = first[3:7].T
    del first
    second = pool.empty(SHAPE, DTYPE)
    second[...] = 9
    assert (view == 5).all()
    assert not np.shares_memory(view, second)
    for limit, most in ((2 * SIZE, 2), (SIZE - 1, 0)):
        pool = Pool(limit=limit)
        use(pool, 5)
        assert (most > 0) <= sum(pool.idle.values()) <= most


@pytest.mark.parametrize(("at_first", "lately"), [(1, 1), (20, 2)])
def test_memory_that_nobody_asks_for_is_let_go_after_a_while(at_first, lately):
    pool = Pool()
    use(pool, shape=(SMALLEST, 2))
    use(pool, at_first)
    for _ in range(2 * UNASKED // 100):
        use(pool, lately)
        for _ in range(100):
            pool.empty((1,), DTYPE)
    assert pool.idle == {SIZE: lately}
    assert idle_bytes(pool) == lately * SIZE


@pytest.mark.parametrize("let_go", [Pool.clear, lambda pool: pool.expect(SIZE)], ids=["clear", "a smaller trace"])
def test_as_much_may_lie_idle_as_a_trace_keeps_until_the_next_smaller_one(let_go):
    pool = Pool(limit=SIZE)
    pool.expect(3 * SIZE)
    use(pool, 3)
    assert idle_bytes(pool) == 3 * SIZE
    let_go(pool)
    assert idle_bytes(pool) == 0


def test_the_memory_of_a_trace_serves_the_next_at_once():
    pool = Pool()
    model = Model.load("encoder", device="cpu", d_model=64, d_ff=256)
    backend = replace(model.backend, pool=pool)
    model = replace(model, weights=replace(model.weights, backend=backend))
    ids = [1 + i % 7 for i in range(64)]
    gc.disable()  # nothing waits for a collection of garbage
    try:
        trace = model.trace(ids=ids)
        trace.compute()
        del trace
        idle = dict(pool.idle)
        model.trace(ids=ids).compute()
    finally:
        gc.enable()
    assert idle
    assert pool.idle == idle


def resident() -> int:
    """Bytes of memory that the system has given."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library keeps nothing, or always")
def test_memory_that_lies_idle_in_the_library_goes_back_to_the_system():
    pieces = [bytearray(SMALLEST - 64) for _ in range(2000)]
    last = bytearray(SMALLEST - 64)  # above them, so that they do not go back by themselves
    pieces.clear()
    before = resident()
    trim()
    assert before - resident() > 1000 * SMALLEST
    assert last


HEAPS = """
import ctypes, tempfile, threading
from tui_transformer.engine.pool import share_one_heap

{before}
c = ctypes.CDLL(None)
c.malloc.restype = c.fopen.restype = ctypes.c_void_p
c.malloc_info.argtypes, c.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
all_there = threading.Barrier(4)

def take():
    c.malloc(1000)
    all_there.wait()

threads = [threading.Thread(target=take) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with tempfile.NamedTemporaryFile() as file:
    opened = c.fopen(file.name.encode(), b"w")
    c.malloc_info(0, opened)
    c.fclose(opened)
    print(file.read().count(b"<heap nr"))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the GNU library alone has it")
def test_all_threads_take_memory_from_one_heap():
    heaps = {}
    for before in ("", "share_one_heap()"):
        code = [sys.executable, "-c", HEAPS.format(before=before)]
        heaps[before] = int(subprocess.run(code, capture_output=True, check=True, text=True).stdout)
    assert heaps["share_one_heap()"] == 1 < heaps[""]
