"""A dump: arrays under the names that somebody gave them, and how exact their numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.headings import Heading
from tui_transformer.diagnosis.dumps.npz_reader import MOST_IDS, too_many
from tui_transformer.diagnosis.naming.words import ROLES, spelled
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

FLOAT32_UNIT = 2.0**-24
"""Largest relative error of rounding to float32: half a unit in the last of 24 bits."""


@dataclass(frozen=True)
class Precision:
    """A number x of a dump is within `absolute` + `relative` · |x| of what was computed.

    Attributes:
        name: As it is said: "float32", "bf16", "6 digits".
        unit: Largest relative error of one operation in the precision that the values were computed in.
    """

    name: str
    relative: float
    absolute: float = 0.0
    unit: float = FLOAT32_UNIT

    def of(self, values: Host) -> Host:
        """How far each of these may be off."""
        size: Host = np.where(np.isfinite(values), np.abs(values), 0.0)
        return self.absolute + self.relative * size


FLOAT64 = Precision("float64", 2.0**-53)
FLOAT32 = Precision("float32", FLOAT32_UNIT)
FLOAT16 = Precision("float16", 2.0**-11, 2.0**-25, 2.0**-11)
BFLOAT16 = Precision("bf16", 2.0**-8, 0.0, 2.0**-8)
WHOLE = Precision("whole numbers", 0.0)


@dataclass(slots=True)
class Digits:
    """The digits of printed numbers.

    Attributes:
        decimals: How many there are behind the point, of every number.
        powers: Some number has an exponent.
        count: How many numbers were looked at.
        most: The most digits that a number has.
        fractions: How many numbers have a point.
        most_of_fractions: The most digits that one of those has.
        scale: What the numbers were multiplied by after they were read.
    """

    decimals: set[int] = field(default_factory=set)
    powers: bool = False
    count: int = 0
    most: int = 0
    fractions: int = 0
    most_of_fractions: int = 0
    scale: float = 1.0

    def add(self, words: Iterable[str]) -> Digits:
        """Look at more numbers; what is infinite or none has no digits."""
        for word in words:
            if not (word[-1:].isdigit() or word.endswith(".")):
                continue
            mantissa, power, _ = word.lower().lstrip("+-").partition("e")
            whole, point, decimals = mantissa.partition(".")
            self.count += 1
            self.powers |= bool(power)
            self.decimals.add(len(decimals))
            digits = len((whole + decimals).lstrip("0"))
            self.most = max(self.most, digits)
            if point:
                self.fractions += 1
                self.most_of_fractions = max(self.most_of_fractions, digits)
        return self


USUAL = 6
"""Digits that `cout` and `%g` print."""

FEW = 20
"""So few numbers may all be short by chance."""


def precision_of(digits: Digits, most: int = 0) -> Precision:
    """The precision of printed numbers, from the digits that they have.

    As many decimals in all (`%.4f`): half a unit of the last. Else (`cout`, `%g`) as many digits as the longest has,
    since these leave out zeros at the end; `most` where other numbers of the same program have more.
    """
    if digits.decimals <= {0} and not digits.powers and digits.scale == 1:
        return WHOLE
    if len(digits.decimals) == 1 and not digits.powers and digits.count > 1:
        (places,) = digits.decimals
        return Precision(f"{places} decimals", FLOAT32_UNIT, 0.5 * 10.0**-places * digits.scale)
    most = max(most, digits.most, 1 if digits.count > FEW else USUAL)
    return Precision(f"{most} digits", max(FLOAT32_UNIT, 0.5 * 10.0 ** (1 - most)))


class Values(NamedTuple):
    """The numbers of an array.

    Attributes:
        array: As floats (or whole numbers), in the array's shape.
        precision: How exact they are.
        known: True where a number is there: a log may show the corners of a matrix alone. None where all are.
    """

    array: Host
    precision: Precision
    known: Host | None = None

    def mapped(self, change: Callable[[Host], Host]) -> Values:
        """The numbers moved or picked, and with them which are there."""
        return self._replace(array=change(self.array), known=None if self.known is None else change(self.known))


@dataclass(frozen=True, eq=False)
class Tensor:
    """One array of a dump; it is read when it is asked for.

    Attributes:
        name: As it is in the dump.
        shape: As the dump has it.
        read: Gives the values.
        fastest_first: The shape names the axis that runs fastest first, as ggml does.
        heading: Of what was printed, the heading above it.
        shapeless: The file says no shape: it is the number of its cells.
        numbers: It holds numbers, and no text.
    """

    name: str
    shape: Shape
    read: Callable[[], Values] = field(repr=False)
    fastest_first: bool = False
    heading: Heading | None = None
    shapeless: bool = False
    numbers: bool = True

    @property
    def readings(self) -> list[str]:
        """The names that it may go by, those first that say the most."""
        return [self.name] if self.heading is None else self.heading.readings()

    @cached_property
    def values(self) -> Values:
        """The values, read once."""
        return self.read()

    def check_size(self, most: int, path: Path) -> None:
        """Raise InputError, before anything is read, where there are more numbers than can be meant."""
        if (count := math.prod(self.shape)) > most:
            raise InputError(f"{shown_path(path)}: {visible(self.name)}: {too_many(count, most)}")


@dataclass(frozen=True, eq=False)
class Dump:
    """Arrays by name, in the order in which they were written.

    Attributes:
        path: Where it was read.
        notes: What had to be assumed when it was read, a sentence each.
        refused: What has numbers that cannot be read, and why.
        further: The same of other sentences, where a log has several.
    """

    path: Path
    tensors: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    further: tuple[Dump, ...] = ()

    def whole_numbers(self, role: str) -> Host | None:
        """The first array in a role that holds whole numbers, as rows (batch × tokens)."""
        for tensor in self.tensors.values():
            if role_of(tensor) == role:
                tensor.check_size(MOST_IDS, self.path)
                if (rows := _rows(tensor)) is not None:
                    return rows
        return None

    @property
    def ids(self) -> Host | None:
        """Token IDs, batch × tokens."""
        return self.whole_numbers("ids")

    @property
    def decoder_ids(self) -> Host | None:
        """Token IDs of a decoder beside an encoder."""
        return self.whole_numbers("decoder ids")


def role_of(tensor: Tensor) -> str:
    """What an array is of what goes into a model; "" where it is a step."""
    words = spelled(tensor.name if tensor.heading is None else tensor.heading.text).replace(".", " ")
    return next((role for role, spoken in ROLES.items() if words in spoken), "")


def _rows(tensor: Tensor) -> Host | None:
    """Whole numbers as rows; None where it holds others."""
    array = tensor.values.array if tensor.shape and tensor.numbers else np.empty(0)
    array = array.reshape(array.shape[-2:]) if array.size == math.prod(array.shape[-2:]) else array
    if (
        array.ndim > 2
        or tensor.values.known is not None
        or not array.size
        or not bool((np.floor(array) == array).all())
    ):
        return None
    rows: Host = np.atleast_2d(array).astype(np.int64)
    return rows.T if tensor.heading is not None and rows.shape[1] == 1 else rows


def held(name: str, array: Host, precision: Precision) -> Tensor:
    """A tensor whose values are there already."""
    return Tensor(name, array.shape, lambda: Values(array, precision))


def stored_values(array: Host) -> Values:
    """The values of an array that was stored as it was in memory; of bf16, the two bytes that NumPy has of it."""
    if array.dtype.itemsize == 2 and array.dtype.kind == "V":
        floats: Host = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return Values(floats, BFLOAT16)
    return Values(array, {"f8": FLOAT64, "f4": FLOAT32, "f2": FLOAT16}.get(array.dtype.str[1:], WHOLE))


def part_of(tensor: Tensor, i: int, name: str) -> Tensor:
    """A part of an array along its first axis, under a name of its own."""

    def read() -> Values:
        return tensor.values.mapped(lambda array: array[i])

    return replace(tensor, name=name, shape=tensor.shape[1:], read=read, fastest_first=False)
