"""Rows in blocks and on threads give what all rows at once give."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from tui_transformer.engine import blocks
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.ops.gelu import Gelu
from tui_transformer.engine.ops.layer_norm import LayerNorm
from tui_transformer.engine.ops.softmax import Softmax

BACKEND = numpy_backend()


@pytest.fixture
def three_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "cores", lambda: 3)
    blocks._helpers.cache_clear()
    yield
    blocks._helpers().shutdown()
    blocks._helpers.cache_clear()


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (Softmax(), (some(2, 3, 50, 41),)),
        (Gelu(), (some(2, 70, 33),)),
        (LayerNorm(), (some(2, 70, 33), some(33), some(33))),
    ],
)
def test_blocks_give_the_same_bits_as_the_whole(op, inputs, three_cores, monkeypatch: pytest.MonkeyPatch):
    whole = op.forward(BACKEND, *inputs)
    monkeypatch.setattr(blocks, "BLOCK", 123)
    np.testing.assert_array_equal(op.forward(BACKEND, *inputs), whole)


def test_every_core_takes_rows(three_cores, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    met, seen = threading.Barrier(3), set()

    def work(rows: np.ndarray) -> None:
        met.wait(20)
        seen.add(threading.get_ident())

    blocks.by_rows(BACKEND, work, some(3, 4))
    assert len(seen) == 3


def test_what_fails_in_another_thread_is_raised(three_cores, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    met = threading.Barrier(3)

    def work(rows: np.ndarray) -> None:
        if met.wait(20) == 0:
            raise MemoryError("too large")

    with pytest.raises(MemoryError, match="too large"):
        blocks.by_rows(BACKEND, work, some(3, 4))


def test_numbers_that_overflow_warn_nobody(three_cores, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocks.by_rows(BACKEND, lambda rows: np.exp(rows, out=rows), np.full((30, 4), 1000, np.float32))


def test_no_rows_are_no_work():
    blocks.by_rows(BACKEND, lambda rows: None, np.empty((0, 4), np.float32))
    assert Gelu().forward(BACKEND, np.empty((1, 0, 4), np.float32)).shape == (1, 0, 4)


@pytest.mark.parametrize(("given", "found"), [("1", 1), ("3", 3)])
def test_the_threads_of_the_products_are_all_that_there_are(given, found, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    assert blocks.cores.__wrapped__() == found
