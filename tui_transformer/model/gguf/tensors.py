"""Tensors of GGUF files: in blocks of few bits, made numbers by the library `gguf` when they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import Entry, GgufFile
from tui_transformer.model.gguf.blocks import FORMATS
from tui_transformer.model.tensors import STORED, Rounded, Tensor, Tensors, part_of
from tui_transformer.model.weight_table import as_it_is
from tui_transformer.model.weights_file import WeightsFile
from tui_transformer.records import dataclass

INSTALL = "install tui-transformer[gguf]"
AGAIN = "copy the file again"

ROWS = 1024
"""Rows of blocks that are made numbers together, at most."""


class Blocks(NamedTuple):
    """A type of numbers in blocks: what it is called, numbers a block, bytes a block."""

    name: str
    numbers: int
    bytes: int


KINDS: Mapping[int, Blocks] = {
    0: Blocks("F32", 1, 4),
    1: Blocks("F16", 1, 2),
    2: Blocks("Q4_0", 32, 18),
    3: Blocks("Q4_1", 32, 20),
    6: Blocks("Q5_0", 32, 22),
    7: Blocks("Q5_1", 32, 24),
    8: Blocks("Q8_0", 32, 34),
    10: Blocks("Q2_K", 256, 84),
    11: Blocks("Q3_K", 256, 110),
    12: Blocks("Q4_K", 256, 144),
    13: Blocks("Q5_K", 256, 176),
    14: Blocks("Q6_K", 256, 210),
    16: Blocks("IQ2_XXS", 256, 66),
    17: Blocks("IQ2_XS", 256, 74),
    18: Blocks("IQ3_XXS", 256, 98),
    19: Blocks("IQ1_S", 256, 50),
    20: Blocks("IQ4_NL", 32, 18),
    21: Blocks("IQ3_S", 256, 110),
    22: Blocks("IQ2_S", 256, 82),
    23: Blocks("IQ4_XS", 256, 136),
    28: Blocks("F64", 1, 8),
    29: Blocks("IQ1_M", 256, 56),
    30: Blocks("BF16", 1, 2),
    34: Blocks("TQ1_0", 256, 54),
    35: Blocks("TQ2_0", 256, 66),
    39: Blocks("MXFP4", 32, 17),
    40: Blocks("NVFP4", 64, 36),
}
"""The types that can be read, by the number that the format gives them."""

UNREAD = {9: "Q8_1", 15: "Q8_K", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 41: "Q1_0", 42: "Q2_0"}
"""Names of types that are not weights, or that the library makes no numbers of."""

Make = Callable[[Host], Host]
"""A tensor of a published checkpoint, from that of the GGUF file, which orders or scales it otherwise."""


@dataclass(frozen=True)
class Reorder:
    """Makes a tensor by putting its rows into another order, whatever they hold."""

    make: Make

    def __call__(self, rows: Host) -> Host:
        """The rows in the order of the published checkpoint."""
        return self.make(rows)


Place = Callable[[str, Shape], tuple[str, Make | None]]
"""What a tensor of this name and shape is in the published checkpoint, or which weight of the program, and what makes
it from what is stored; None where they are the same."""


@dataclass(frozen=True, eq=False)
class GgufTensor(Tensor):
    """A tensor as the published checkpoint has it.

    Attributes:
        stored: The shape in the file.
        blocks: How its numbers are stored.
        make: Makes it from what is stored; None where they are the same.
    """

    stored: Shape
    blocks: Blocks
    make: Make | None = None

    def read(self, what: str, take: Make, rows: Host | None = None) -> Host:
        """The part that is taken of it; of the blocks, only those that hold it become numbers."""
        if self.make is None and self.kind in STORED:
            return super().read(what, take, rows)
        if rows is None and (turned := self._turned_rows(take)) is not None:
            return self._in_numbers(self._bytes(what, turned))
        if self.make is None and rows is not None and take is as_it_is:
            if len(rows) and rows[-1] >= self.stored[0]:
                raise IndexError(f"row {rows[-1]} of {self.stored[0]}")
            return self._numbers(self.file.rows(self._rows(), rows, np.asarray, what))
        axes = len(self.stored) - 1
        if self.make is None or self._ordered:
            taken = part_of(self.stored, axes, take, lambda *ends: self._numbers(self._bytes(what, range(*ends))))
        else:
            everything = self._numbers(self._bytes(what, range(math.prod(self.stored[:axes]))))
            taken = take(self.make(everything.reshape(self.stored)))
        return taken if rows is None else taken[rows]

    def rounded(self, what: str, take: Make) -> Rounded | None:
        """The block of the one cell that is taken; None where it is stored as a float, or looked up in a table."""
        if self.kind not in FORMATS:
            return None
        number, place = divmod(self._place(take), self.blocks.numbers)
        blocks = self._rows().reshape(-1, self.blocks.bytes)
        data = self.file.numbers(blocks[number : number + 1], np.asarray, what)
        kind = FORMATS[self.kind]
        block = data[:, :, None]
        codes, scales = kind.codes(block), kind.scales(block)
        group, inside = divmod(place, codes.shape[2])
        return Rounded(
            f"{self.kind}: block {number:,} of {self.blocks.numbers} numbers in {self.blocks.bytes} bytes",
            tuple(codes[0, group, :, 0].tolist()),
            inside,
            float(scales[0, group, 0]),
            None if kind.minima is None else float(kind.minima(block)[0, group, 0]),
            (kind.first, kind.last),
            kind.steps,
        )

    def packed(self, take: Make) -> bool:
        """Whether what is taken are whole rows of blocks, turned: some of them can be had without the others."""
        return self._turned_rows(take) is not None

    def _turned_rows(self, take: Make) -> range | None:
        """The rows that are taken, counted over all axes but the last; None where it is not they, turned."""
        if self.kind not in FORMATS:
            return None
        room: Host = np.empty(self.stored, np.float32)
        taken = take(room if self.make is None or self._ordered else self.make(room))
        width = self.stored[-1] * room.itemsize
        if taken.ndim != 2 or taken.strides != (room.itemsize, width) or len(taken) != self.stored[-1]:
            return None
        first, rest = divmod(int(taken.ctypes.data) - int(room.ctypes.data), width)
        return range(first, first + taken.shape[1]) if not rest and np.may_share_memory(taken, room) else None

    @property
    def _ordered(self) -> bool:
        """Whether it is a matrix whose rows are stored in another order, and no more."""
        return isinstance(self.make, Reorder) and len(self.stored) == 2

    def _order(self) -> Host:
        """Of every row its place in the file."""
        rows = np.arange(math.prod(self.stored[:-1]))
        return rows if self.make is None or not self._ordered else np.asarray(self.make(rows))

    def _bytes(self, what: str, rows: range) -> Host:
        """The bytes of rows, which are counted over all axes but the last."""
        if not self._ordered:
            return self.file.numbers(self._rows()[rows.start : rows.stop], np.asarray, what)
        order = self._order()[rows.start : rows.stop]
        first, stop = int(order.min(initial=len(self._rows()))), int(order.max(initial=-1)) + 1
        between = self.file.numbers(self._rows()[first:stop], np.asarray, what)
        return np.asarray(between[order - first])

    def _place(self, take: Make) -> int:
        """Where in the file the one cell is that is taken, counted in numbers."""
        room: Host = np.empty(self.stored, np.float32)
        cell = take(room) if self.make is None or self._ordered else room[:0]
        if cell.size and np.may_share_memory(cell, room):
            row, column = divmod((int(cell.ctypes.data) - int(room.ctypes.data)) // room.itemsize, self.stored[-1])
            return int(self._order()[row]) * self.stored[-1] + column
        numbered = np.arange(room.size).reshape(room.shape)
        return int(take(numbered if self.make is None else self.make(numbered)).reshape(()))

    def _rows(self) -> Host:
        row = self.stored[-1] // self.blocks.numbers * self.blocks.bytes
        shape = (math.prod(self.stored[:-1]), row)
        return self.file.layout(self.start, self.stop, np.dtype(np.uint8), shape)

    def _in_numbers(self, rows: Host) -> Host:
        """The numbers of rows of blocks, as numbers of a row × rows."""
        form, blocks = FORMATS[self.kind], rows.reshape(len(rows), -1, self.blocks.bytes)
        if len(blocks) <= ROWS:
            return form.numbers(blocks, self.blocks.numbers)
        numbers: Host = np.empty((blocks.shape[1] * self.blocks.numbers, len(blocks)), np.float32)
        for start in range(0, len(blocks), ROWS):
            numbers[:, start : start + ROWS] = form.numbers(blocks[start : start + ROWS], self.blocks.numbers)
        return numbers

    def _numbers(self, data: Host) -> Host:
        """The numbers of rows of blocks."""
        kind = STORED.get(self.kind)
        if kind is not None:
            return np.asarray(kind.floats(np.ascontiguousarray(data).view(kind.dtype)), np.float32)
        if self.kind in FORMATS:
            numbers = self._in_numbers(data.reshape(math.prod(data.shape[:-1]), data.shape[-1]))
            return np.ascontiguousarray(numbers.T).reshape(*data.shape[:-1], -1)
        try:
            from gguf import GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError as error:
            raise InputError(f"{self.path} is stored as {self.kind}, for which there is an extra: {INSTALL}") from error
        with np.errstate(all="ignore"):
            made: Any = dequantize(np.ascontiguousarray(data), GGMLQuantizationType[self.kind])
        return np.asarray(made, np.float32)


def open_gguf(file: GgufFile, place: Place) -> Tensors:
    """The tensors of a GGUF file, each where its metadata say.

    Raises:
        InputError: A tensor is of a type that is not known, lies outside the file, or does not fit the metadata.
    """
    weights = WeightsFile(file.path)
    tensors: dict[str, Tensor] = {}
    for name, entry in file.tensors.items():
        try:
            own, make = place(name, entry.shape)
            tensors[own] = _tensor(weights, name, entry, make)
        except (ValueError, IndexError) as error:  # it cannot be ordered or cut as it should be
            what = f"{file.path}: tensor {name[:80]}"
            raise InputError(f"{what} is {shape_text(entry.shape)}, which its metadata do not fit") from error
    return Tensors(file.path, tensors, settings="metadata")


def check_places(file: GgufFile) -> None:
    """Check that every tensor fills the bytes up to the next, but for those that align it; the last, up to the end.

    Raises:
        InputError: Two overlap, or one has fewer numbers than there is room for.
    """
    ordered = sorted(file.tensors.items(), key=lambda item: item[1].start)
    starts = [entry.start for _, entry in ordered]
    between = min([*starts, file.size]) - file.begin
    if between >= file.alignment:
        raise InputError(f"{file.path}: {between:,} bytes between its header and its first tensor are of none: {AGAIN}")
    for (name, entry), end, after in zip(ordered, [*starts[1:], file.size], [*ordered[1:], None], strict=True):
        blocks, room = KINDS.get(entry.kind), end - entry.start
        size = room if blocks is None else -(-math.prod(entry.shape) // blocks.numbers) * blocks.bytes
        if size > room and after is not None:
            raise InputError(f"{file.path}: tensor {name[:80]} overlaps tensor {after[0][:80]}: {AGAIN}")
        if room - size >= file.alignment:
            what = f"{file.path}: tensor {name[:80]}, {shape_text(entry.shape)},"
            raise InputError(f"{what} fills {size:,} of the {room:,} bytes of its place: {AGAIN}")


def _tensor(file: WeightsFile, name: str, entry: Entry, make: Make | None) -> GgufTensor:
    blocks, columns = KINDS.get(entry.kind), entry.shape[-1] if entry.shape else 1
    what = f"{file.path}: tensor {name}"
    if blocks is None:
        known = ", ".join(each.name for each in KINDS.values())
        raise InputError(
            f"{what} is stored as type {UNREAD.get(entry.kind, entry.kind)} of ggml: only {known} are read"
        )
    if columns % blocks.numbers:
        raise InputError(f"{what} has rows of {columns:,}, which are no blocks of {blocks.numbers}: copy it again")
    stop = entry.start + math.prod(entry.shape) // blocks.numbers * blocks.bytes
    if stop > file.size:
        raise InputError(f"{what} ends at byte {stop:,}, and the file has {file.size:,}: copy it again")
    shape = entry.shape
    if isinstance(make, Reorder):  # it says whether the rows can be put in order
        make(np.empty(shape[0]))
    elif make is not None:
        shape = make(np.empty(shape, np.float32)).shape
    return GgufTensor(file, blocks.name, shape, entry.start, stop, entry.shape, blocks, make)
