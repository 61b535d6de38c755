"""The recorded forward pass against the bare matrix products that it cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from tui_transformer.model import Model

TOKENS = 128
CASES = (
    ("relu", 768, 12, 3072, 1.4),
    ("gelu", 768, 12, 3072, 1.4),
    ("relu", 384, 12, 1536, 2.0),
    ("gelu", 384, 12, 1536, 2.0),
)
"""Activation, d_model, heads, d_ff, and the promised ratio."""


def main() -> None:
    for activation, width, heads, inner, bound in CASES:
        recorded = _recorded(width, heads, inner, activation)
        spent = interleaved({"recorded": recorded, "products": _products(width, heads, inner)}, repetitions(45))
        name = f"recorded layer ÷ its products, d_model {width}, n {TOKENS}, {activation}"
        report(Promise(name, spent["recorded"] / spent["products"], bound=bound, note=milliseconds(**spent)))
    spent = interleaved({"trace": _default()}, repetitions(60))
    report(Promise("whole trace of the default model", spent["trace"] * 1000, "ms", 2))


def _recorded(width: int, heads: int, inner: int, activation: str) -> Callable[[], float]:
    """One layer, every step kept, from a new trace each time."""
    model = Model.load("encoder", device="cpu", d_model=width, heads=heads, d_ff=inner, activation=activation)
    ids = [1 + i % 7 for i in range(TOKENS)]
    return lambda: timed(model.trace(ids=ids).compute)


def _products(width: int, heads: int, inner: int) -> Callable[[], float]:
    """The layer's eight matrix products on arrays of the same shapes, and the embedding and output head's one."""
    random = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        return random.standard_normal(shape, dtype=np.float32)

    each, n = width // heads, TOKENS
    pairs = [
        *[(matrix(n, width), matrix(width, width)) for _ in range(4)],
        (matrix(heads, n, each), matrix(heads, n, each).transpose(0, 2, 1)),
        (matrix(heads, n, n), matrix(heads, n, each)),
        (matrix(n, width), matrix(width, inner)),
        (matrix(n, inner), matrix(inner, width)),
        (matrix(n, width), matrix(width, 8)),
    ]
    return lambda: timed(lambda: [left @ right for left, right in pairs])


def _default() -> Callable[[], float]:
    model = Model.load("encoder", device="cpu")
    return lambda: timed(lambda: model.trace("The waves crashed forcefully against the shore!").compute())


if __name__ == "__main__":
    main()
