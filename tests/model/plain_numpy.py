"""The functions of a transformer in plain NumPy, as textbooks have them: what models compute is compared with these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array]


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def silu(x: Array) -> Array:
    return x / (1.0 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def softmax(scores: Array) -> Array:
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def linear(tensors: Tensors, name: str, x: Array) -> Array:
    """A matrix that is stored out × in, and its bias where there is one."""
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", 0.0)


def layer_norm(tensors: Tensors, name: str, x: Array, epsilon: float = 1e-5) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
    return normal * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def rms_norm(x: Array, weight: Array, epsilon: float) -> Array:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * weight


def random_tensors(shapes: Mapping[str, tuple[int, ...]], deviation: float = 0.4) -> dict[str, Array]:
    rng = np.random.default_rng(11)
    return {name: rng.normal(0.0, deviation, shape) for name, shape in shapes.items()}


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
