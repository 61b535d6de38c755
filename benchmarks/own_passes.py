"""Passes of this program, one for every line that comes in: `own_passes.py WHAT NUMBERS…`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.sides import serve
from tui_transformer.analysis.effects import effects
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.targets import every
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights, random_weights
from tui_transformer.model import Model
from tui_transformer.model.families.gpt2 import Gpt2Config

EVERYTHING = 1 << 40
"""Bytes that may be kept."""


def gpt2() -> Model:
    """GPT-2's sizes, weights drawn as it was initialised."""
    return Model("gpt2", Gpt2Config.from_json({}), Weights(numpy_backend(), random_weights(0, 0.02)), None)


def decoder(tokens: int) -> Callable[[], Trace]:
    """Every step of GPT-2 recorded."""
    model = gpt2()
    return lambda: recorded(model, range(100, 100 + tokens))


def encoder(width: int, heads: int, inner: int, layers: int, tokens: int) -> Callable[[], Trace]:
    """Every step of an encoder recorded."""
    sizes: dict[str, Any] = {"d_model": width, "heads": heads, "d_ff": inner, "layers": layers}
    model = Model.load("encoder", device="cpu", activation="gelu", bias=True, **sizes)
    return lambda: recorded(model, [1 + i % 7 for i in range(tokens)])


def recorded(model: Model, ids: range | list[int]) -> Trace:
    """A new trace that keeps everything."""
    trace = model.trace(ids=ids, budget=EVERYTHING)
    trace.compute()
    return trace


def ablate(tokens: int) -> Callable[[], object]:
    """The effect of every head, set to 0, on the token after the last."""
    model = gpt2()

    def run() -> object:
        trace = model.trace(ids=range(100, 100 + tokens), budget=EVERYTHING)
        return list(effects(trace, every(trace.program, "head")))

    return run


def patch(tokens: int) -> Callable[[], object]:
    """A difference of two logits with every head patched from another sentence."""
    model = gpt2()

    def run() -> object:
        trace = model.trace(ids=range(100, 100 + tokens), budget=EVERYTHING)
        other = model.trace(ids=range(500, 500 + tokens), budget=EVERYTHING)
        table = table_of(trace.program, "head")
        return list(sweep(trace, other, table, Metric("difference", (7, 8)), range(tokens - 1, tokens)))

    return run


PASSES: Mapping[str, Callable[..., Callable[[], object]]] = {
    "decoder": decoder,
    "encoder": encoder,
    "ablate": ablate,
    "patch": patch,
}

if __name__ == "__main__":
    serve(PASSES[sys.argv[1]](*map(int, sys.argv[2:])))
