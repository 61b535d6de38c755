"""Shared by the tests of BART, Marian and T5: references, random checkpoints, and attention in plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

REFERENCES = Path(__file__).parents[1] / "references"
TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
INPUTS = ("text", "input_ids", "decoder_input_ids")
LAYERS = 2
Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array]

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


def differences(family: str, trace: Trace, *, final_norm: bool) -> dict[str, float]:
    """The largest difference of every array of the reference."""
    arrays = {key: array for key, array in expected(family).items() if key not in INPUTS}
    return {key: float(np.abs(trace[step_of(key, final_norm)] - array).max()) for key, array in arrays.items()}


def step_of(key: str, final_norm: bool) -> str:
    """The step that a reference calls `hidden_1`, `decoder_attention_0`, `cross_attention_0`, `logits` …"""
    if key == "logits":
        return "output.logits"
    kind, _, layer = key.rpartition("_")
    if kind == "cross_attention":
        return f"decoder.{layer}.cross_attention.weights"
    stack = "decoder" if kind.startswith("decoder_") else "encoder"
    if kind.endswith("attention"):
        return f"{stack}.{layer}.self_attention.weights"
    if layer == "0":
        return "decoder.embedding.output" if stack == "decoder" else "embedding.output"
    return f"{stack}.norm" if final_norm and int(layer) == LAYERS else f"{stack}.{int(layer) - 1}.output"


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


def random_tensors(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    rng = np.random.default_rng(11)
    return {name: rng.standard_normal(shape) * 0.4 for name, shape in shapes.items()}


def softmax(scores: Array) -> Array:
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


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
