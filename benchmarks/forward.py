"""The recorded forward pass against the bare matrix products that it cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from benchmarks.products import products
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
        recorded, bare = _recorded(width, heads, inner, activation), products(width, heads, inner, TOKENS)
        spent = interleaved({"recorded": recorded, "products": partial(timed, bare)}, repetitions(45))
        name = f"recorded layer ÷ its products, d_model {width}, n {TOKENS}, {activation}"
        report(Promise(name, spent["recorded"] / spent["products"], bound=bound, note=milliseconds(**spent)))
    spent = interleaved({"trace": _default()}, repetitions(60))
    report(Promise("whole trace of the default model", spent["trace"] * 1000, "ms", 2))


def _recorded(width: int, heads: int, inner: int, activation: str) -> Callable[[], float]:
    """One layer, every step kept, from a new trace each time."""
    model = Model.load("encoder", device="cpu", d_model=width, heads=heads, d_ff=inner, activation=activation)
    ids = [1 + i % 7 for i in range(TOKENS)]
    return lambda: timed(model.trace(ids=ids).compute)


def _default() -> Callable[[], float]:
    model = Model.load("encoder", device="cpu")
    return lambda: timed(lambda: model.trace("The waves crashed forcefully against the shore!").compute())


if __name__ == "__main__":
    main()
