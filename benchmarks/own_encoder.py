"""The same encoder as this program runs it, every step recorded: `own_encoder.py D HEADS D_FF LAYERS N`.

Prints the median seconds of a pass.
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.measure import timed
from tui_transformer.model import Model

PASSES = 15


def main(width: int, heads: int, inner: int, layers: int, tokens: int) -> None:
    model = Model.load(
        "encoder", device="cpu", d_model=width, heads=heads, d_ff=inner, layers=layers, activation="gelu", bias=True
    )
    ids = [1 + i % 7 for i in range(tokens)]
    taken = [timed(model.trace(ids=ids, budget=1 << 32).compute) for _ in range(PASSES)]
    print(statistics.median(taken[3:]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
