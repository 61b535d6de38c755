"""Rows in blocks give what all rows at once give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.ops import base
from tui_transformer.engine.ops.activations import Gelu
from tui_transformer.engine.ops.attention import Softmax
from tui_transformer.engine.ops.norms import LayerNorm

BACKEND = numpy_backend()


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
def test_blocks_give_the_same_bits_as_the_whole(op, inputs):
    whole = op.forward(BACKEND, *inputs)
    np.testing.assert_array_equal(op.forward(replace(BACKEND, block=123), *inputs), whole)


def test_no_rows_are_no_work():
    base.by_rows(BACKEND, lambda rows: None, np.empty((0, 4), np.float32))
    assert Gelu().forward(BACKEND, np.empty((1, 0, 4), np.float32)).shape == (1, 0, 4)
