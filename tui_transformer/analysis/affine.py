"""An affine map of the residual stream, x + (x − μ) A + b: what a tuned lens puts in front of the last steps."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.errors import InputError


@dataclass(frozen=True, eq=False)
class Affine:
    """The map of one depth.

    Attributes:
        mean: μ, d.
        matrix: A, d × d.
        shift: b, d.
        tokens: How many tokens it was fitted on.
    """

    mean: Host
    matrix: Host
    shift: Host
    tokens: int

    def __repr__(self) -> str:
        return f"<Affine of {len(self.mean)} columns, fitted on {self.tokens:,} tokens>"

    def of(self, backend: Backend, x: Array) -> Array:
        """The map of rows, … × d, on the device.

        Raises:
            InputError: It was fitted for vectors of another size.
        """
        self.check(x.shape[-1])
        mean, matrix, shift = (backend.floats(part) for part in (self.mean, self.matrix, self.shift))
        return x + (x - mean) @ matrix + shift

    def turned(self, vectors: Host) -> Host:
        """Parts of a vector of the stream behind the map, whose constants are left out: v + v A."""
        self.check(vectors.shape[-1])
        turned: Host = vectors + vectors @ self.matrix
        return turned

    def check(self, columns: int) -> None:
        """Raise InputError where it was fitted for vectors of another size."""
        if columns != len(self.mean):
            raise InputError(f"the lens was fitted for vectors of {len(self.mean)} columns, and these have {columns}")
