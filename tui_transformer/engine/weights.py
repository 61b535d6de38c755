"""Weights by name: made or read at first use, held on the device in the backend's precision."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Backend, Host

Reader = Callable[[str, Shape], Host]
"""Gives a weight of this name and shape as a host array."""


@dataclass(frozen=True, eq=False)
class Weights:
    """A weight is asked for by name and shape; the first time it is read and put on the device, then held."""

    backend: Backend
    read: Reader
    held: dict[str, Array] = field(default_factory=dict)

    def get(self, name: str, shape: Shape) -> Array:
        """The weight on the device."""
        if name not in self.held:
            self.held[name] = self.backend.floats(self.read(name, shape))
        return self.held[name]


def random_weights(seed: int, deviation: float = 0.2) -> Reader:
    """Weights normal(0, deviation); γ of a norm is 1 and β is 0.

    Every weight has its own stream, from the seed and its name: changing one size leaves the other weights as they
    are. Values are drawn in float32, so that a float64 model has the same ones.
    """

    def read(name: str, shape: Shape) -> Host:
        if name.endswith(".norm.weight"):
            return np.ones(shape, dtype=np.float32)
        if name.endswith(".norm.bias"):
            return np.zeros(shape, dtype=np.float32)
        stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return stream.standard_normal(math.prod(shape), dtype=np.float32).reshape(shape) * np.float32(deviation)

    return read


def fixed_weights(values: Mapping[str, Host]) -> Reader:
    """Weights that are already there."""
    return lambda name, _: values[name]
