"""The features of a layer: activations as a sum of few out of many directions, each of which is read and written.

With x a vector of activations, f the features and W the weights of a dictionary:

- f = σ((x − c) W_enc + b_enc): what each feature reads, its pre-activation, and the activation σ that leaves most at 0;
  c is b_dec where the dictionary was trained so, else 0.
- x̂ = f W_dec + b_dec (+ x W_skip): what the features write; an autoencoder gives x again, a transcoder what a layer
  makes of x.

After Bricken et al. 2023, "Towards Monosemanticity"; gates after Rajamanoharan et al. 2024 (arXiv 2404.16014), JumpReLU
after arXiv 2407.14435, the k largest after Gao et al. 2024 (arXiv 2406.04093), transcoders after Dunefsky et al. 2024
(arXiv 2406.11944).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine import ops
from tui_transformer.engine.backend import Host, numpy_backend
from tui_transformer.errors import UsageError
from tui_transformer.model.tensors import Tensors
from tui_transformer.records import dataclass

BLOCK = 1 << 22
"""Numbers of a weight that are read together: a dictionary of a million features is never whole in memory."""

EPSILON = 1e-5
"""What SAELens adds to the standard deviation of activations that it normalises."""


Cells = Callable[[Any], Host]
"""The cells of a weight at an index of slices, or the rows by ascending numbers."""


@dataclass(frozen=True)
class Part:
    """Where a weight of a dictionary is, and how it lies.

    Attributes:
        tensors: Of its file.
        name: Of the tensor.
        turned: Whether its last axis, not its first, counts features.
        place: Its place along the second axis of a decoder that writes into several layers.
    """

    tensors: Tensors
    name: str
    turned: bool = False
    place: int | None = None

    def cells(self, index: Any, *, across: bool = False) -> Host:
        """The cells at an index of its rows (slices, or ascending numbers), or across, of its columns: these alone."""
        chosen = index if isinstance(index, np.ndarray) else None

        def take(stored: Host) -> Host:
            rows = stored.T if self.turned else stored
            rows = rows if self.place is None else rows[:, self.place]
            part: Host = (rows.T if across else rows)[... if chosen is not None else index]
            return part

        return self.tensors.read(self.name, take, chosen)

    @property
    def shape(self) -> tuple[int, ...]:
        """As rows of features."""
        shape = self.tensors.find(self.name).shape
        shape = shape[::-1] if self.turned else shape
        return shape if self.place is None else (shape[0], *shape[2:])


@dataclass(frozen=True, eq=False)
class Layer:
    """The features of one layer.

    Attributes:
        parts: Weights by their names: encoder, encoder_bias, decoder, decoder_bias, and as the activation needs
            threshold, gate_bias, scale (its logarithm) and magnitude_bias; skip.
        activation: A key of `ACTIVATIONS`.
        k: How many features may be active, of those that keep the largest.
        centred: Whether b_dec is taken from what is read.
        normalise: A key of `NORMALISATIONS`.
        by_norm: Whether features are compared by what they write: pre-activations times the norm of their decoder rows.
        writes: Where features write beside their own layer: decoders of the layers behind, in their order.
    """

    parts: Mapping[str, Part]
    activation: str
    k: int = 0
    centred: bool = False
    normalise: str = "none"
    by_norm: bool = False
    writes: tuple[Part, ...] = ()

    @property
    def count(self) -> int:
        """How many features there are."""
        return self.parts["encoder"].shape[0]

    @property
    def width(self) -> int:
        """Numbers of a vector that is read."""
        return self.parts["encoder"].shape[1]

    def weight(self, name: str, index: Any = ..., *, across: bool = False) -> Host:
        """The cells of a weight (see `Part.cells`), with the lengths of decoder rows worked in where `by_norm`."""
        part = self.parts[name]
        cells = part.cells(index, across=across)
        if not self.by_norm or name not in ("encoder", "encoder_bias", "decoder"):
            return cells
        shape = part.shape[::-1] if across else part.shape
        lengths = np.broadcast_to(self.norms if across or len(shape) == 1 else self.norms[:, None], shape)[index]
        cells = cells.astype(np.float64)
        if name == "decoder":  # a row of zeros stays one
            np.divide(cells, lengths, out=cells, where=lengths > 0)
        else:
            cells *= lengths
        return cells

    def blocks(self, width: int) -> Iterator[tuple[int, int]]:
        """Ranges of features whose rows of so many numbers are read together."""
        step = max(BLOCK // max(width, 1), 1)
        for start in range(0, self.count, step):
            yield start, min(start + step, self.count)

    def encode(self, x: Host) -> Host:
        """The features of vectors, n × features."""
        dtype, backend = x.dtype.type, numpy_backend(x.dtype.name)
        if self.normalise != "none":
            x = ops.ToSize(*NORMALISATIONS[self.normalise]).forward(backend, x)
        if self.centred:
            x = x - self.weight("decoder_bias").astype(dtype)
        z = np.empty((len(x), self.count), dtype)
        for start, stop in self.blocks(self.width):
            np.matmul(x, np.asarray(self.weight("encoder", slice(start, stop)), dtype).T, out=z[:, start:stop])
        if "encoder_bias" in self.parts:
            z += self.weight("encoder_bias").astype(dtype)
        op, own = ACTIVATIONS[self.activation]
        features: Host = op(self).forward(backend, z, *(self.weight(name).astype(dtype) for name in own))
        return features

    @cached_property
    def norms(self) -> Host:
        """Lengths of the decoder's rows, float64."""
        part = self.parts["decoder"]
        rows = (part.cells(slice(start, stop)).astype(np.float64) for start, stop in self.blocks(part.shape[1]))
        return np.concatenate([np.linalg.norm(each, axis=1) for each in rows])

    def written(self, features: Host, decoder: Cells, width: int) -> Host:
        """What features write, n × d; only rows of features that are not 0 somewhere are read."""
        out = np.zeros((len(features), width), features.dtype)
        active = np.flatnonzero(features.any(axis=0))
        for start, stop in self.blocks(width):
            if np.searchsorted(active, start) < np.searchsorted(active, stop):
                out += features[:, start:stop] @ np.asarray(decoder(slice(start, stop)), features.dtype)
        return out

    def decode(self, features: Host, x: Host | None) -> Host:
        """What the features write, and what goes past them: n × d."""
        out = self.written(features, partial(self.weight, "decoder"), self.parts["decoder"].shape[1])
        out += self.weight("decoder_bias").astype(out.dtype)
        if self.normalise != "none":
            seen, sized = _needed(x, "its activations are normalised"), ops.FromSize(*NORMALISATIONS[self.normalise])
            out = sized.forward(numpy_backend(out.dtype.name), out, seen)
        if "skip" in self.parts:
            out += _needed(x, "it has a skip connection") @ self.weight("skip").astype(out.dtype).T
        return out


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The layers of a dictionary, and where it was trained.

    Attributes:
        path: Its file or folder.
        layers: One; of a cross-layer transcoder all.
        hook: Where it was trained to read, as its file says; "" where it does not.
        hook_out: Where it was trained to write, where its file says that this is elsewhere.
        transcodes: Whether it writes what a layer makes of what it reads; False: that again, or its file does not say.
        is_cross: Whether features of a layer write into the layers behind it too.
    """

    path: Path
    layers: tuple[Layer, ...]
    hook: str = ""
    hook_out: str = ""
    transcodes: bool = False
    is_cross: bool = False

    @property
    def count(self) -> int:
        """How many features a layer has."""
        return self.layers[0].count

    @property
    def width(self) -> int:
        """Numbers of a vector that is read."""
        return self.layers[0].width


def _needed(x: Host | None, why: str) -> Host:
    if x is None:
        raise UsageError(f"{why}: give what was read, decode(features, x)")
    return x


ACTIVATIONS: Mapping[str, tuple[Callable[[Layer], ops.Op], tuple[str, ...]]] = {
    "relu": (lambda _: ops.Relu(), ()),
    "jump_relu": (lambda _: ops.JumpRelu(), ("threshold",)),
    "jump": (lambda _: ops.Jump(), ("threshold",)),
    "top_k": (lambda layer: ops.Largest(layer.k), ()),
    "group_max": (lambda layer: ops.Largest(1, layer.k), ()),
    "gated": (lambda _: ops.GatedRelu(), ("gate_bias", "scale", "magnitude_bias")),
}
"""The operation of every activation, and the weights that it has beside the pre-activations."""


NORMALISATIONS: Mapping[str, tuple[bool, float]] = {
    "none": (False, 0.0),
    "layer_norm": (True, EPSILON),
    "constant_norm_rescale": (False, 0.0),
}
"""How what is read is brought to one size, and what is written back (`ops.ToSize`): centred or not, and ε."""
