"""The weights that training begins with."""

from __future__ import annotations

import math
import zlib

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.weights import Reader


def initial_weights(seed: int) -> Reader:
    """Matrices normal with variance 2 ÷ (in + out) (Glorot & Bengio 2010), embeddings with 1 ÷ d, biases 0, γ 1, β 0.

    Every weight has its own stream, from the seed and its name.
    """

    def read(name: str, shape: Shape) -> Host:
        if len(shape) < 2:
            return np.full(shape, 1.0 if name.endswith("norm.weight") else 0.0, dtype=np.float32)
        stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return stream.standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(_variance(name, shape)))

    return read


def _variance(name: str, shape: Shape) -> float:
    return 1.0 / shape[-1] if "embedding." in name else 2.0 / sum(shape)
