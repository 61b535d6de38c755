"""A dump: arrays under the names that somebody gave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.npz_reader import MASKS
from tui_transformer.diagnosis.dumps.precision import BFLOAT16, Precision, stored_precision
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host

IDS = ("input_ids", "tokens", "token_ids", "ids", "inp_tokens")
DECODER_IDS = ("decoder_input_ids", "decoder.tokens", "decoder_tokens")
LABELS = ("labels", "targets")
SEGMENTS = ("token_type_ids", "segments")
NOT_STEPS = frozenset({*IDS, *DECODER_IDS, *MASKS, *LABELS, *SEGMENTS, "decoder_attention_mask", "position_ids"})
"""Names of what goes into a model: used, not compared."""


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


@dataclass(frozen=True, eq=False)
class Tensor:
    """One array of a dump; it is read when it is asked for.

    Attributes:
        name: As it is in the dump.
        shape: As the dump has it.
        read: Gives the values.
        fastest_first: The shape names the axis that runs fastest first, as ggml does.
    """

    name: str
    shape: Shape
    read: Callable[[], Values] = field(repr=False)
    fastest_first: bool = False

    @cached_property
    def values(self) -> Values:
        """The values, read once."""
        return self.read()


@dataclass(frozen=True, eq=False)
class Dump:
    """Arrays by name, in the order in which they were written.

    Attributes:
        path: Where it was read.
        notes: What had to be assumed when it was read, a sentence each.
    """

    path: Path
    tensors: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()

    def whole_numbers(self, *names: str) -> Host | None:
        """The first of these arrays that is there and holds whole numbers, as rows (batch × tokens)."""
        for name in names:
            tensor = self.tensors.get(name)
            if tensor is None or not tensor.shape:
                continue
            array = tensor.values.array
            if array.ndim <= 2 and array.size and bool((np.floor(array) == array).all()):
                return np.atleast_2d(array).astype(np.int64)
        return None

    @property
    def ids(self) -> Host | None:
        """Token IDs, batch × tokens."""
        return self.whole_numbers(*IDS)

    @property
    def decoder_ids(self) -> Host | None:
        """Token IDs of a decoder beside an encoder."""
        return self.whole_numbers(*DECODER_IDS)


def held(name: str, array: Host, precision: Precision, known: Host | None = None) -> Tensor:
    """A tensor whose values are there already."""
    return Tensor(name, array.shape, lambda: Values(array, precision, known))


def of_numbers(array: Host) -> Values:
    """The values of an array that was stored as it was in memory; of bf16, what NumPy has of it."""
    if array.dtype.itemsize == 2 and array.dtype.kind == "V":
        return Values(bfloat16(array.view(np.uint16)), BFLOAT16)
    return Values(array, stored_precision(array.dtype))


def bfloat16(halves: Host) -> Host:
    """Upper halves of float32 numbers, as float32."""
    wide = halves.astype(np.uint32) << 16
    floats: Host = wide.view(np.float32)
    return floats
