"""The matrix products of an encoder and nothing else: `products.py D HEADS D_FF LAYERS N`.

Prints the median seconds that NumPy takes for them.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import timed

PASSES = 15


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


def main(width: int, heads: int, inner: int, layers: int, tokens: int) -> None:
    run = products(width, heads, inner, tokens, layers)
    print(statistics.median([timed(run) for _ in range(PASSES)][3:]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
