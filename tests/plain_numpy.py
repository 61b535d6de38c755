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


def frequencies(width: int, theta: float = 10000.0) -> Array:
    return 1.0 / theta ** (np.arange(0, width, 2) / width)


def turned(x: Array, frequencies: Array, factor: float = 1.0) -> Array:
    """(x cos + concat(−x₂, x₁) sin) times a factor over the first columns, as the published code has it."""
    angles = np.concatenate([np.outer(np.arange(x.shape[1]), frequencies)] * 2, axis=-1)
    width = angles.shape[1]
    turn, rest = x[..., :width], x[..., width:]
    swapped = np.concatenate([-turn[..., width // 2 :], turn[..., : width // 2]], axis=-1)
    return np.concatenate([factor * (turn * np.cos(angles) + swapped * np.sin(angles)), rest], axis=-1)
