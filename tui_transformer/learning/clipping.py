"""The norm of all gradients together, and clipping by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tui_transformer.engine.backend import Array

SMALLEST = 1e-6


def squares(gradients: Mapping[str, Array]) -> dict[str, float]:
    """The sum of squares of every gradient."""
    return {name: float((flat := gradient.reshape(-1)) @ flat) for name, gradient in gradients.items()}


def norm(sums: Mapping[str, float]) -> float:
    """√ of the sum of all squares: the global norm."""
    return math.sqrt(sum(sums.values()))


def layer_norms(sums: Mapping[str, float]) -> dict[str, float]:
    """The norm of the gradients of each layer: of `decoder.0`, of `embedding`."""
    layers: dict[str, float] = {}
    for name, total in sums.items():
        layer = layer_of(name)
        layers[layer] = layers.get(layer, 0.0) + total
    return {layer: math.sqrt(total) for layer, total in layers.items()}


def layer_of(name: str) -> str:
    """The layer of a weight or step: `decoder.0.self_attention.query.weight` is of `decoder.0`."""
    parts = name.split(".")
    if len(parts) == 1:
        return name
    return ".".join(parts[:2]) if parts[1].isdigit() or parts[1] in ("norm", "embedding") else parts[0]


def clip(gradients: Mapping[str, Any], length: float, longest: float) -> None:
    """Scale all gradients in place so that their norm, `length`, is at most `longest` (Pascanu et al. 2013)."""
    share = longest / (length + SMALLEST)
    if share < 1.0:
        for gradient in gradients.values():
            gradient *= share
