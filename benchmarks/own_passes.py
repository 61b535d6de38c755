"""Passes of this program, one for every line that comes in: `own_passes.py WHAT NUMBERS…`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.sides import serve
from tui_transformer.analysis.effects import effects
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.engine.backend import Backend, choose_backend, numpy_backend
from tui_transformer.engine.targets import every
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights, random_weights
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import State, Writer
from tui_transformer.model import Model
from tui_transformer.model.families.gpt2 import Gpt2Config

EVERYTHING = 1 << 40
"""Bytes that may be kept."""

WIDTH, INNER, HEADS, LAYERS, WORDS = 768, 3072, 12, 12, 50257
"""GPT-2's sizes."""


def gpt2(backend: Backend, places: int = 1024) -> Model:
    """GPT-2's sizes, weights drawn as it was initialised, and so many positions."""
    config = Gpt2Config.from_json({"n_positions": places})
    return Model("gpt2", config, Weights(backend, random_weights(0, 0.02)), None)


def decoder(tokens: int) -> Callable[[], Trace]:
    """Every step of GPT-2 recorded."""
    model = gpt2(numpy_backend())
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
    model = gpt2(numpy_backend())

    def run() -> object:
        trace = model.trace(ids=range(100, 100 + tokens), budget=EVERYTHING)
        return list(effects(trace, every(trace.program, "head")))

    return run


def patch(tokens: int) -> Callable[[], object]:
    """A difference of two logits with every head patched from another sentence."""
    model = gpt2(numpy_backend())

    def run() -> object:
        trace = model.trace(ids=range(100, 100 + tokens), budget=EVERYTHING)
        other = model.trace(ids=range(500, 500 + tokens), budget=EVERYTHING)
        table = table_of(trace.program, "head")
        return list(sweep(trace, other, table, Metric("difference", (7, 8)), range(tokens - 1, tokens)))

    return run


def on_gpu(places: int) -> Callable[[int], Trace]:
    """Every step of GPT-2 recorded on a GPU, for so many tokens."""
    model = gpt2(choose_backend("gpu"), places)
    wait = model.backend.xp.cuda.Device().synchronize

    def run(tokens: int) -> Trace:
        trace = recorded(model, range(100, 100 + tokens))
        wait()
        return trace

    return run


def products_on_gpu(places: int) -> Callable[[int], object]:
    """The matrix products of GPT-2 on a GPU and nothing else: no bias, norm, softmax, sum or function."""
    backend, random = choose_backend("gpu"), np.random.default_rng(0)
    wait = backend.xp.cuda.Device().synchronize

    def matrix(*shape: int) -> Any:
        return backend.floats(random.standard_normal(shape, dtype=np.float32))

    square, wide, narrow = matrix(WIDTH, WIDTH), matrix(WIDTH, INNER), matrix(INNER, WIDTH)
    rows, inners, words = matrix(places, WIDTH), matrix(places, INNER), matrix(WIDTH, WORDS)

    def run(tokens: int) -> object:
        x, hidden = rows[:tokens], inners[:tokens]
        split = x.reshape(tokens, HEADS, -1).swapaxes(0, 1)
        for _ in range(LAYERS):
            for _ in range(4):
                x @ square
            scores = split @ split.swapaxes(1, 2)
            scores @ split
            x @ wide
            hidden @ narrow
        logits = x @ words
        wait()
        return logits

    return run


def token_on_gpu(places: int) -> Callable[[int], object]:
    """One more token behind so many others, whose keys and values are kept on a GPU."""
    writer = Writer(gpt2(choose_backend("gpu"), places), Settings(greedy=True, max_new_tokens=places), Rules())
    state: State | None = None

    def run(tokens: int) -> object:
        nonlocal state
        state = (
            writer.begin(range(100, 100 + tokens)) if state is None or state.prompt != tokens else writer.next(state)
        )
        return state

    return run


PASSES: Mapping[str, Callable[..., Callable[..., object]]] = {
    "on_gpu": on_gpu,
    "products_on_gpu": products_on_gpu,
    "token_on_gpu": token_on_gpu,
    "decoder": decoder,
    "encoder": encoder,
    "ablate": ablate,
    "patch": patch,
}

if __name__ == "__main__":
    serve(PASSES[sys.argv[1]](*map(int, sys.argv[2:])))
