"""A dump: arrays under the names that somebody gave them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.headings import Heading
from tui_transformer.diagnosis.dumps.npz_reader import MOST_IDS, too_many
from tui_transformer.diagnosis.dumps.precision import BFLOAT16, Precision, stored_precision
from tui_transformer.diagnosis.naming.name import phrases, spelled
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

ROLES: Mapping[str, frozenset[str]] = {
    "ids": phrases(
        """
        input ids, tokens, token ids, ids, inp tokens, token id, input tokens, input token ids, encoded tokens,
        encoded input, token indices, input indices, encoded ids, source ids, source tokens, src ids, src
        tokens, tokens ids, encoder input ids, encoder tokens, tokenized, tokenized input, token sequence, input
        sequence, indices
        """
    ),
    "decoder ids": phrases(
        """
        decoder input ids, decoder tokens, target ids, target tokens, tgt ids, tgt tokens, decoder ids, decoder
        token ids, target token ids
        """
    ),
    "mask": phrases(
        """
        attention mask, padding, padding mask, pad mask, mask, src mask, source mask, input mask, token mask
        """
    ),
    "labels": frozenset({"labels"}),
    "targets": frozenset({"targets"}),
    "segments": frozenset({"token type ids", "segments", "segment ids", "token types"}),
    "positions": frozenset({"position ids"}),
    "decoder mask": frozenset({"decoder attention mask"}),
}
"""What goes into a model: names and headings of it."""


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
        count = math.prod(self.shape)
        if count > most:
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

    def whole_numbers(self, *roles: str) -> Host | None:
        """The first array in one of these roles that holds whole numbers, as rows (batch × tokens)."""
        for role in roles:
            for tensor in self.tensors.values():
                if role_of(tensor) != role:
                    continue
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
