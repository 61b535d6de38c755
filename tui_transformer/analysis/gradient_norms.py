"""Gradient norms: how strongly the loss depends on every weight, on every layer, and on the stream between them.

The norm of a gradient G is ‖G‖ = √(Σ G²) over all of its cells; that of a layer is √(Σ ‖G_W‖²) over its weights. Norms
that shrink from the last layer to the first are vanishing gradients, norms that grow are exploding ones (Bengio et al.
1994, "Learning long-term dependencies with gradient descent is difficult"; Pascanu et al. 2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from tui_transformer.analysis.residual_norm import streams
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program

Norms = Mapping[str, float]
Arrays = Mapping[str, Host]


def norm(gradient: Host) -> float:
    """√(Σ G²) over all cells, in float64."""
    with np.errstate(over="ignore"):
        return math.sqrt(float(np.square(gradient, dtype=np.float64).sum()))


def weight_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of every weight's gradient, in the order in which the forward pass reads them."""
    return {name: norm(gradients[name]) for name in _in_order(program) if name in gradients}


def layer_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of every layer's gradient, all its weights together, from the embedding to the output."""
    squares: dict[str, float] = {}
    for name, size in weight_norms(program, gradients).items():
        squares[group_of(name)] = squares.get(group_of(name), 0.0) + size**2
    return {group: math.sqrt(total) for group, total in squares.items()}


def stream_norms(program: Program, gradients: Arrays) -> Norms:
    """The norm of ∂loss/∂x at every step of the residual stream, in order."""
    steps = (step for stream in streams(program) for step in stream)
    return {name: norm(gradients[name]) for name in steps if name in gradients}


def group_of(weight: str) -> str:
    """The layer of a weight (`encoder.0`); outside the layers what its name begins with (`embedding`, `output`)."""
    parts = weight.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and (parts[1].isdigit() or parts[1] == "embedding") else parts[0]


def _in_order(program: Program) -> Iterable[str]:
    return dict.fromkeys(source for step in program.steps for source in step.inputs if source in program.weights)
