"""Safetensors files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Values, bfloat16
from tui_transformer.diagnosis.dumps.dump import Tensor as Dumped
from tui_transformer.diagnosis.dumps.precision import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, WHOLE, Precision
from tui_transformer.errors import InputError
from tui_transformer.model.tensors import Tensor, open_file
from tui_transformer.text.display import visible


class Kind(NamedTuple):
    """The type under which NumPy reads an array, and how exact it is."""

    dtype: str
    precision: Precision


KINDS: Mapping[str, Kind] = {
    "F64": Kind("<f8", FLOAT64),
    "F32": Kind("<f4", FLOAT32),
    "F16": Kind("<f2", FLOAT16),
    "BF16": Kind("<u2", BFLOAT16),
    "I64": Kind("<i8", WHOLE),
    "I32": Kind("<i4", WHOLE),
    "I16": Kind("<i2", WHOLE),
    "I8": Kind("i1", WHOLE),
    "U8": Kind("u1", WHOLE),
    "BOOL": Kind("?", WHOLE),
}
"""Stored types that can be read."""


def read_safetensors(path: Path) -> Dump:
    """The tensors of a file, in the order in which they lie there.

    Raises:
        InputError: It is cut, or not what it says.
    """
    tensors = sorted(open_file(path).by_name.items(), key=lambda each: each[1].start)
    return Dump(path, {name: Dumped(name, tensor.shape, partial(_read, name, tensor)) for name, tensor in tensors})


def _read(name: str, tensor: Tensor) -> Values:
    kind = KINDS.get(tensor.kind)
    if kind is None:
        raise InputError(f"{tensor.path}: {visible(name)} is stored as {tensor.kind}: only {', '.join(KINDS)} are read")
    numbers = np.frombuffer(_bytes(tensor), kind.dtype).reshape(tensor.shape)
    return Values(bfloat16(numbers) if tensor.kind == "BF16" else numbers, kind.precision)


def _bytes(tensor: Tensor) -> bytes:
    try:
        with tensor.path.open("rb") as file:
            file.seek(tensor.start)
            data = file.read(tensor.stop - tensor.start)
    except OSError as error:
        raise InputError(f"{tensor.path}: cannot be read: {error.strerror}") from error
    if len(data) != tensor.stop - tensor.start:
        raise InputError(f"{tensor.path}: has become shorter while it was read: write it again")
    return data
