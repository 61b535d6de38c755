"""Shared by the tests of BART, Marian and T5: references, random checkpoints, and attention in plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from plain_numpy import Array, softmax
from reference import REFERENCES

from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

LAYERS = 2

EMBEDDING = ("tokens", "embedding.tokens", "embedding.output")
ATTENTION = (
    *("query", "key", "value", "scores", "scaled", "masked", "weights", "context", "concat", "output"),
    *("residual", "norm"),
)
FEED_FORWARD = ("hidden", "activation", "output", "residual", "norm")


def expected(family: str) -> dict[str, Array]:
    with np.load(REFERENCES / family / "expected.npz") as file:
        return dict(file)


def reference_trace(family: str, dtype: str = "float64", **options: Any) -> Trace:
    arrays = expected(family)
    model = Model.load(REFERENCES / family, device="cpu", dtype=dtype)
    ids, decoder_ids = (arrays[key].tolist() for key in ("input_ids", "decoder_input_ids"))
    return model.trace(ids=ids, decoder_ids=decoder_ids, **options)


def names_of_layers(more: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The steps of every layer as the family has them; `more` adds to a sublayer."""
    sublayers = {"self_attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": FEED_FORWARD}
    for stack in ("encoder", "decoder"):
        for layer in range(LAYERS):
            yield f"{stack}.{layer}.output"
            for sublayer, steps in sublayers.items():
                if (stack, sublayer) != ("encoder", "cross_attention"):
                    yield from (f"{stack}.{layer}.{sublayer}.{step}" for step in (*steps, *more.get(sublayer, ())))


def worst_explanations(trace: Trace, cells: int = 3) -> dict[str, float]:
    """The largest difference between what an explanation gives and what is held, in a few cells of every step."""
    rng = np.random.default_rng(5)
    return {
        name: max(
            abs(trace.explain_cell(name, tuple(int(rng.integers(size)) for size in shape)).difference)
            for _ in range(cells)
        )
        for name, shape in ((name, trace.program.shape(name)) for name in trace.program.by_name)
    }


def attention(query: Array, key: Array, value: Array, heads: int, bias: Array | float, *, causal: bool) -> Array:
    """Heads of softmax(Q Kᵀ + bias) V, side by side; Q is already divided where the family divides."""
    parts = []
    for head in range(heads):
        width = query.shape[1] // heads
        columns = slice(head * width, (head + 1) * width)
        scores = query[:, columns] @ key[:, columns].T + (bias[head] if isinstance(bias, np.ndarray) else bias)
        if causal:
            scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -math.inf)
        parts.append(softmax(scores) @ value[:, columns])
    return np.concatenate(parts, axis=1)
