"""The tensors of safetensors files: opening costs their headers, and a tensor is read when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Item, Value, Working
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.model.weight_table import Part
from tui_transformer.model.weights_file import WeightsFile, read_header
from tui_transformer.records import dataclass, field, replace


@dataclass(frozen=True)
class Rounded:
    """A cell of a quantized tensor, and the numbers that share its scale.

    Attributes:
        kind: What the type is called, and how its blocks are.
        codes: Of the group, in the order of the file.
        place: Of the cell among them.
        scale: What codes are multiplied by.
        minimum: What is added; None where nothing is.
        ends: The smallest and the largest code.
        steps: All codes there are, in order, where they are not the whole numbers between these.
    """

    kind: str
    codes: tuple[float, ...]
    place: int
    scale: float
    minimum: float | None
    ends: tuple[float, float]
    steps: tuple[float, ...] = ()

    def number(self, code: float) -> float:
        """The number that a code stands for, in float64."""
        return code * self.scale + (self.minimum or 0.0)

    def explained(self) -> tuple[str, Working]:
        """The formula; code, scale and minimum, what was rounded to them, and the codes that share the scale."""
        code = self.codes[self.place]
        among = ", ".join(f"{each:g}" for each in self.steps) or f"{self.ends[0]:g} to {self.ends[1]:g}"
        items: list[Item] = [Value("code", code, note=f"{self.kind}, codes {among}")]
        items.append(Value("scale", self.scale, note=f"of the {len(self.codes)} numbers of its group"))
        if self.minimum is not None:
            items.append(Value("minimum", self.minimum, note="of the group"))
        # what is nearest to a code lies half a step to either side, and all beyond an end
        below = max((each for each in self.steps if each < code), default=code - 1.0)
        above = min((each for each in self.steps if each > code), default=code + 1.0)
        low, high = sorted(self.number((code + each) / 2) for each in (below, above))
        lowest, highest = self.ends if self.scale >= 0 else self.ends[::-1]
        low, high = -math.inf if code == lowest else low, math.inf if code == highest else high
        items.append(Value("rounded from", low, note="the least number of this code"))
        items.append(Value("up to", high, note="the largest, if the nearest code was taken"))
        for place, each in enumerate(self.codes):
            this = "  (this cell)" if place == self.place else ""
            items.append(Value(f"code of {place}", each, note=f"= {self.number(each):.6g}{this}"))
        added = "" if self.minimum is None else f" + {bracketed(self.minimum)}"
        working = Working(tuple(items), self.number(code), f"{spoken(self.scale)} · {bracketed(code)}{added}")
        return "scale · code" if self.minimum is None else "scale · code + minimum", working


LARGEST_INDEX = 1 << 25
LONGEST_NAME = 255
"""Characters of a file's name, as file systems have it."""


class Kind(NamedTuple):
    """A stored type: what NumPy sees in the file, and the floats of that."""

    dtype: np.dtype[Any]
    floats: Callable[[Host], Host] = np.asarray


def _bfloat16(numbers: Host) -> Host:
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

WRAPPERS = frozenset({"module", "_orig_mod"})
"""Parts that `DataParallel` and `torch.compile` put into the names of what they wrap: all of a model, or a part."""

BLOCK = 1 << 22
"""Numbers that are looked at together."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """Where a tensor is: its file, its bytes there, and what they are; `turned`: its first axis runs fastest."""

    file: WeightsFile = field(repr=False)
    kind: str
    shape: Shape
    start: int
    stop: int
    turned: bool = field(default=False, kw_only=True)

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.file.path

    def read(self, what: str, take: Callable[[Host], Host], rows: Host | None = None) -> Host:
        """The part that is taken of it, as floats; see `Tensors.read`. `what` it is, for a message."""
        kind, file = STORED[self.kind], self.file
        shape = self.shape[::-1] if self.turned else self.shape
        whole = file.layout(self.start, self.stop, kind.dtype, shape)
        taken = take(whole.T if self.turned else whole)
        if rows is None:
            return file.numbers(taken, kind.floats, what)
        return file.rows(taken, rows, kind.floats, what)

    def rounded(self, what: str, take: Callable[[Host], Host]) -> Rounded | None:
        """Rounding of the one cell that is taken; None where it is stored as a float."""
        del what, take
        return None

    def packed(self, take: Callable[[Host], Host]) -> bool:
        """Whether what is taken of it is a matrix of which products read some columns at a time, and hold none."""
        del take
        return False


@dataclass(frozen=True, eq=False)
class Tensors:
    """The tensors of a checkpoint.

    Attributes:
        path: The file, or the index of several.
        promised: The file of each tensor, as the index has it.
        settings: What the tensors fit: the name of the file's settings, "metadata" of GGUF; "" where it has none.
        parts: Weights that are elsewhere than the table of the family says.
    """

    path: Path
    by_name: Mapping[str, Tensor]
    promised: Mapping[str, str] = field(default_factory=dict)
    settings: str = "config.json"
    parts: Mapping[str, str | Part] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors."""
        return frozenset(self.by_name)

    def find(self, name: str) -> Tensor:
        """A tensor; InputError where it is missing or of a type that cannot be read."""
        if name not in self.by_name and name in self.promised:
            place, index = self.path.with_name(self.promised[name]), self.path.name
            raise InputError(
                f"{place}: tensor {name} is missing, and {index} says that it is there: copy the file again"
            )
        if name not in self.by_name:
            why = f"the file does not fit its {self.settings}" if self.settings else "copy the file again"
            raise InputError(f"{self.path}: tensor {name} is missing: {why}")
        tensor = self.by_name[name]
        if tensor.kind not in STORED and type(tensor) is Tensor:  # others make numbers of their own
            kinds = ", ".join(STORED)
            raise InputError(f"{tensor.path}: tensor {name} is stored as {tensor.kind}: only {kinds} can be read")
        return tensor

    def read(self, name: str, take: Callable[[Host], Host], rows: Host | None = None) -> Host:
        """The part that is taken of a tensor, as floats; nothing else is read.

        Args:
            name: Of the tensor.
            take: Slices and turns alone: it is given an array that says where the numbers lie.
            rows: Of what is taken, only these; ascending.

        Raises:
            InputError: It is missing, has a type that is not supported, or holds NaN or infinity; or the file was cut
                or written to since it was opened.
        """
        tensor = self.find(name)
        numbers = tensor.read(f"tensor {name}", take, rows)
        if not is_finite(numbers):
            wrong = f"tensor {name} holds NaN or infinity"
            raise InputError(f"{tensor.path}: {wrong}: the file is damaged or was saved badly")
        return numbers


def part_of(shape: Shape, axes: int, take: Callable[[Host], Host], read: Callable[[int, int], Host]) -> Host:
    """A part of an array, from those of its rows that hold it.

    Args:
        shape: Of the whole.
        axes: How many axes count the rows; the others are what is in one.
        take: Slices and turns alone: it is given an array that is never touched.
        read: Gives rows as floats of 32 bits, from one to another.
    """
    room: Host = np.empty(shape, np.float32)
    view = take(room)
    if not view.size:
        return np.empty(view.shape, np.float32)
    (low, high), begin, width = byte_bounds(view), room.ctypes.data, room.itemsize * math.prod(shape[axes:])
    first, stop = (low - begin) // width, -(-(high - begin) // width)
    start = view.__array_interface__["data"][0] - begin - first * width
    return np.ndarray(view.shape, np.float32, read(first, stop), start, view.strides)


def is_finite(numbers: Host) -> bool:
    """Whether all are; many are looked at a block at a time, in the order in which they lie in memory."""
    if numbers.dtype.itemsize >= 4 and numbers.flags.forc:  # others would be copied
        flat = numbers.ravel(order="K")
        with np.errstate(all="ignore"):
            if np.isfinite(np.dot(flat, flat)):  # one number that is not would make it so
                return True
    if numbers.size <= BLOCK:
        return bool(np.isfinite(numbers).all())
    outer = numbers.swapaxes(0, int(np.argmax(numbers.strides)))
    rows = max(1, BLOCK * len(outer) // numbers.size)
    return all(np.isfinite(outer[start : start + rows]).all() for start in range(0, len(outer), rows))


def open_file(path: Path) -> Tensors:
    """Open a safetensors file; its header is checked, its tensors are not read.

    Raises:
        InputError: The file is missing, cut, or not what it says.
    """
    file = WeightsFile(path)
    return Tensors(path, {name: Tensor(file, *entry) for name, entry in read_header(file).items()})


def open_index(path: Path) -> Tensors:
    """Open the files that a `model.safetensors.index.json` names; where several have a tensor, its own one counts.

    Raises:
        InputError: The index is broken, names a file outside its folder, or a file is missing or damaged.
    """
    weight_map = read_json(path, LARGEST_INDEX).get("weight_map")
    if (
        not isinstance(weight_map, dict)
        or not weight_map
        or not all(isinstance(each, str) for each in weight_map.values())
    ):
        raise InputError(f"{path}: no weight_map, which names the file of every tensor: copy it again")
    for name, place in weight_map.items():
        alone = place.isprintable() and not set("/\\:") & set(place) and place not in ("", ".", "..")
        if not alone or len(place) > LONGEST_NAME:
            raise InputError(f"{path}: tensor {name} is in {place[:80]!r}, which is not a file beside it: not opened")
    shards = {name: open_file(path.with_name(name)) for name in sorted(set(weight_map.values()))}
    by_name = {
        name: tensor
        for file, shard in shards.items()
        for name, tensor in shard.by_name.items()
        if weight_map.get(name, file) == file
    }
    return Tensors(path, by_name, weight_map)


def without_wrapper(tensors: Tensors) -> Tensors:
    """The tensors without what wrappers put into their names; as they are where two would have one name."""
    names = {
        name: ".".join(part for part in name.split(".") if part not in WRAPPERS)
        for name in (*tensors.by_name, *tensors.promised)
    }
    if len(set(names.values())) < len(names):
        return tensors
    by_name = {names[name]: tensor for name, tensor in tensors.by_name.items()}
    return replace(tensors, by_name=by_name, promised={names[name]: file for name, file in tensors.promised.items()})
