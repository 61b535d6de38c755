"""Safetensors files mapped into memory: opening costs their headers, and a tensor is read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.model.header import read_header

LARGEST_INDEX = 1 << 26


class Kind(NamedTuple):
    """A stored type: what NumPy sees in the file, and the floats of that."""

    dtype: np.dtype[Any]
    floats: Callable[[Host], Host] = np.asarray


def _bfloat16(numbers: Host) -> Host:
    """The upper halves of float32 numbers, as float32."""
    wide = numbers.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


STORED: Mapping[str, Kind] = {
    "F64": Kind(np.dtype("<f8")),
    "F32": Kind(np.dtype("<f4")),
    "F16": Kind(np.dtype("<f2")),
    "BF16": Kind(np.dtype("<u2"), _bfloat16),
}
"""Stored types that can be read."""

BLOCK = 1 << 22
"""Numbers that are looked at together."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """Where a tensor is: its file, the bytes of that, and what they are."""

    path: Path
    data: Host = field(repr=False)
    kind: str
    shape: Shape
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Tensors:
    """The tensors of a checkpoint.

    Attributes:
        path: The file, or the index of several.
        found: Every tensor by name.
        promised: The file of each tensor, as the index has it.
    """

    path: Path
    found: Mapping[str, Tensor]
    promised: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors."""
        return frozenset(self.found)

    def find(self, name: str) -> Tensor:
        """A tensor; InputError where it is missing or of a type that cannot be read."""
        if name not in self.found:
            raise InputError(self._missing(name))
        tensor = self.found[name]
        if tensor.kind not in STORED:
            kinds = ", ".join(STORED)
            raise InputError(f"{tensor.path}: tensor {name} is stored as {tensor.kind}: only {kinds} can be read")
        return tensor

    def _missing(self, name: str) -> str:
        if name not in self.promised:
            return f"{self.path}: tensor {name} is missing: the file does not fit its config.json"
        place = self.path.with_name(self.promised[name])
        return f"{place}: tensor {name} is missing, and {self.path.name} says that it is there: copy the file again"

    def read(self, name: str, take: Callable[[Host], Host]) -> Host:
        """What is taken of a tensor, by slicing and turning alone, as floats.

        Raises:
            InputError: It is missing, has a type that is not supported, or holds NaN or infinity.
        """
        tensor = self.find(name)
        kind = STORED[tensor.kind]
        taken = take(tensor.data[tensor.start : tensor.stop].view(kind.dtype).reshape(tensor.shape))
        # A writer need not align its data, and arithmetic on unaligned numbers is slow: those are copied.
        numbers = kind.floats(np.require(taken, requirements="A"))
        if not _finite(numbers):
            raise InputError(
                f"{tensor.path}: tensor {name} holds NaN or infinity: the file is damaged or was saved badly"
            )
        return numbers


def _finite(numbers: Host) -> bool:
    """Whether all are; many are looked at a block at a time, in the order in which they lie in memory."""
    if numbers.size <= BLOCK:
        return bool(np.isfinite(numbers).all())
    outer = numbers.swapaxes(0, int(np.argmax(numbers.strides)))
    rows = max(1, BLOCK * len(outer) // numbers.size)
    return all(np.isfinite(outer[start : start + rows]).all() for start in range(0, len(outer), rows))


def open_file(path: Path) -> Tensors:
    """Map a safetensors file; its header is checked, its tensors are not read.

    Raises:
        InputError: The file is missing, cut, or not what it says.
    """
    entries = read_header(path)
    data = np.memmap(path, dtype=np.uint8, mode="r")
    return Tensors(
        path, {name: Tensor(path, data, at.kind, at.shape, at.start, at.stop) for name, at in entries.items()}
    )


def open_index(path: Path) -> Tensors:
    """Map the files that a `model.safetensors.index.json` names; where several have a tensor, its own one counts.

    Raises:
        InputError: The index is broken, names a file outside its folder, or a file is missing or damaged.
    """
    weight_map = _weight_map(path)
    shards = {name: open_file(path.with_name(name)) for name in sorted(set(weight_map.values()))}
    found = {
        name: tensor
        for file, shard in shards.items()
        for name, tensor in shard.found.items()
        if weight_map.get(name, file) == file
    }
    return Tensors(path, found, weight_map)


def _weight_map(path: Path) -> dict[str, str]:
    found = read_json(path, LARGEST_INDEX).get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(file, str) for file in found.values()):
        raise InputError(f"{path}: no weight_map, which names the file of every tensor: copy it again")
    for name, file in found.items():
        if not _is_beside(file):
            raise InputError(f"{path}: tensor {name} is in {file[:80]!r}, which is not a file beside it: not opened")
    return found


def _is_beside(file: str) -> bool:
    """Whether a name is that of a file in the same folder, on every system."""
    return not set("/\\:\0") & set(file) and file not in ("", ".", "..")
