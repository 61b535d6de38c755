"""Small BERT, DistilBERT and RoBERTa checkpoints with random weights, and what they compute, in a page of NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from plain_numpy import gelu, layer_norm, linear

Tensors = dict[str, np.ndarray]
WORDS, ROWS, SEGMENTS, WIDTH, HEADS, INNER, LAYERS = 50, 20, 3, 24, 3, 40, 3

_BERT = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": ROWS,
    "type_vocab_size": SEGMENTS,
    "layer_norm_eps": 1e-3,
    "hidden_act": "gelu",
}
CONFIGS: Mapping[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", "pad_token_id": 0, **_BERT},
    "roberta": {"model_type": "roberta", "pad_token_id": 1, **_BERT},
    "distilbert": {
        "model_type": "distilbert",
        "vocab_size": WORDS,
        "dim": WIDTH,
        "n_heads": HEADS,
        "hidden_dim": INNER,
        "n_layers": LAYERS,
        "max_position_embeddings": ROWS,
        "activation": "gelu",
    },
}
EPSILON = {"bert": 1e-3, "roberta": 1e-3, "distilbert": 1e-12}
FAMILIES = tuple(CONFIGS)

_RENAMED: Mapping[str, Mapping[str, str]] = {
    "bert": {},
    "roberta": {
        "cls.predictions.transform.dense": "lm_head.dense",
        "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
        "cls.predictions": "lm_head",
    },
    "distilbert": {
        "cls.predictions.transform.dense": "vocab_transform",
        "cls.predictions.transform.LayerNorm": "vocab_layer_norm",
        "cls.predictions.decoder": "vocab_projector",
        "cls.predictions": "vocab_projector",
        "encoder.layer": "transformer.layer",
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
        "output.LayerNorm": "output_layer_norm",
    },
}


def random_tensors() -> Tensors:
    """Every tensor of a BERT with its head, under its name without a prefix."""
    random = np.random.default_rng(7)

    def normal(*shape: int, mean: float = 0.0) -> np.ndarray:
        return random.normal(mean, 0.4, shape)

    def linear(name: str, out: int, inner: int) -> Tensors:
        return {f"{name}.weight": normal(out, inner), f"{name}.bias": normal(out)}

    def layer_norm(name: str) -> Tensors:
        return {f"{name}.weight": normal(WIDTH, mean=1.0), f"{name}.bias": normal(WIDTH)}

    rows = {"word": WORDS, "position": ROWS, "token_type": SEGMENTS}
    tensors = {f"embeddings.{kind}_embeddings.weight": normal(count, WIDTH) for kind, count in rows.items()}
    tensors |= layer_norm("embeddings.LayerNorm")
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            tensors |= linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
        tensors |= layer_norm(f"{layer}.attention.output.LayerNorm") | layer_norm(f"{layer}.output.LayerNorm")
        tensors |= linear(f"{layer}.intermediate.dense", INNER, WIDTH) | linear(f"{layer}.output.dense", WIDTH, INNER)
    head = "cls.predictions"
    tensors |= linear(f"{head}.transform.dense", WIDTH, WIDTH) | layer_norm(f"{head}.transform.LayerNorm")
    return tensors | {f"{head}.bias": normal(WORDS)}


def named(tensors: Tensors, family: str, prefix: str | None = None) -> Tensors:
    """The tensors as a family's files name them."""
    prefix = f"{family}." if prefix is None else prefix

    def rename(name: str) -> str:
        full = name if name.startswith("cls.") else prefix + name
        for old, new in _RENAMED[family].items():
            full = full.replace(old, new)
        return full

    left_out = "token_type" if family == "distilbert" else "none"
    return {rename(name): tensor for name, tensor in tensors.items() if left_out not in name}


def states(
    tensors: Tensors,
    ids: np.ndarray,
    positions: np.ndarray,
    *,
    epsilon: float,
    activation: Callable[[np.ndarray], np.ndarray] = gelu,
    segments: bool = True,
    keys: np.ndarray | None = None,
) -> np.ndarray:
    """The output of the last layer for one sentence; `positions` are rows to add, `keys` are those that may be seen."""
    keys = np.ones(len(ids), dtype=bool) if keys is None else keys
    x = tensors["embeddings.word_embeddings.weight"][ids] + positions
    x = x + tensors["embeddings.token_type_embeddings.weight"][0] * segments
    x = layer_norm(tensors, "embeddings.LayerNorm", x, epsilon)
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        x = layer_norm(tensors, f"{layer}.attention.output.LayerNorm", x + attention(tensors, layer, x, keys), epsilon)
        inner = activation(linear(tensors, f"{layer}.intermediate.dense", x))
        x = layer_norm(
            tensors, f"{layer}.output.LayerNorm", x + linear(tensors, f"{layer}.output.dense", inner), epsilon
        )
    return x


def attention(tensors: Tensors, layer: str, x: np.ndarray, keys: np.ndarray) -> np.ndarray:
    query, key, value = (
        np.split(linear(tensors, f"{layer}.attention.self.{name}", x), HEADS, axis=1)
        for name in ("query", "key", "value")
    )
    heads = []
    for q, k, v in zip(query, key, value, strict=True):
        shares = np.exp(q @ k.T / math.sqrt(WIDTH // HEADS)) * keys
        heads.append(shares / shares.sum(axis=1, keepdims=True) @ v)
    return linear(tensors, f"{layer}.attention.output.dense", np.concatenate(heads, axis=1))


def logits(
    tensors: Tensors,
    x: np.ndarray,
    *,
    epsilon: float,
    activation: Callable[[np.ndarray], np.ndarray] = gelu,
    table: str = "embeddings.word_embeddings.weight",
) -> np.ndarray:
    """The output of the head, from the states."""
    x = activation(linear(tensors, "cls.predictions.transform.dense", x))
    x = layer_norm(tensors, "cls.predictions.transform.LayerNorm", x, epsilon)
    return x @ tensors[table].T + tensors["cls.predictions.bias"]
