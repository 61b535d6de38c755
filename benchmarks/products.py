"""The matrix products of an encoder and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def products(width: int, heads: int, inner: int, tokens: int, layers: int = 1) -> Callable[[], object]:
    """Eight products a layer, on arrays of its shapes and weights of its own, and those of an output of eight words."""
    random = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        return random.standard_normal(shape, dtype=np.float32)

    each, n = width // heads, tokens
    pairs = [(matrix(n, width), matrix(width, 8))]
    for _ in range(layers):
        pairs += [(matrix(n, width), matrix(width, width)) for _ in range(4)]
        pairs += [(matrix(heads, n, each), matrix(heads, n, each).transpose(0, 2, 1))]
        pairs += [(matrix(heads, n, n), matrix(heads, n, each))]
        pairs += [(matrix(n, width), matrix(width, inner)), (matrix(n, inner), matrix(inner, width))]
    return lambda: [left @ right for left, right in pairs]
