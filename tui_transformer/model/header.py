"""The header of a safetensors file: which tensors it has and where, refused where that cannot be.

Eight bytes say how long the header is; it is a JSON object of `{"dtype", "shape", "data_offsets"}` by name; the data
follow, each tensor's bytes beside those of the next. Nothing that the header says is believed before it is checked.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.errors import InputError
from tui_transformer.model.checks import shown
from tui_transformer.model.weights_file import WeightsFile

LARGEST = 1 << 25
"""Bytes of a header; that of 300,000 tensors is no larger, and to read one of these takes no more than 1 GiB."""

MOST_AXES = 64
BITS: Mapping[str, int] = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""Of a number of each stored type; the bytes of other types are not checked, and those are never read."""

_POINTER = b"version https://git-lfs"


class _DamageError(ValueError):
    """A header that is wrong."""


@dataclass(frozen=True)
class Entry:
    """A tensor: its stored type, its shape, and its bytes in the file."""

    kind: str
    shape: Shape
    start: int
    stop: int


def read_header(file: WeightsFile) -> dict[str, Entry]:
    """The tensors of a safetensors file by name.

    Raises:
        InputError: The file is cut, or not what it says; the message names the tensor.
    """
    path, end = file.path, file.size
    try:
        text, begin = _text(file)
        entries = {name: _entry(name, value, begin) for name, value in _object(text).items() if name != "__metadata__"}
        _check_places(entries, begin, end)
    except (OSError, _DamageError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: not a whole safetensors file ({reason}): copy it again") from error
    return entries


def _text(file: WeightsFile) -> tuple[bytes, int]:
    """The header of a file, and where its data begin."""
    first = file.bytes(0, len(_POINTER))
    if first == _POINTER:
        raise InputError(f"{file.path}: a pointer of Git LFS, not the weights: run git lfs pull in its folder")
    begin = 8 + int.from_bytes(first[:8], "little")
    if len(first) < 8 or begin > file.size:
        raise _DamageError(f"its header would end at byte {begin:,}, and the file has {file.size:,}")
    if begin - 8 > LARGEST:
        raise _DamageError(f"its header would have {begin - 8:,} bytes, more than {LARGEST:,}")
    return file.bytes(8, begin - 8), begin


def _object(text: bytes) -> dict[str, Any]:
    try:
        # bytes inside a file of weights, where besides no name may come twice
        content = json.loads(text.decode(), object_pairs_hook=_distinct)
    except _DamageError:
        raise
    except (ValueError, RecursionError) as error:
        raise _DamageError("its header is not JSON") from error
    if not isinstance(content, dict):
        raise _DamageError("its header is not a JSON object")
    return content


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, where no name comes twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _DamageError(f"its header has {_short(twice)} twice")
    return content


def _entry(name: str, value: object, begin: int) -> Entry:
    """A tensor as the header has it, its bytes counted from the beginning of the file."""
    kind, shape, place = (value.get(key) if isinstance(value, dict) else None for key in _KEYS)
    if not isinstance(kind, str):
        raise _DamageError(f"tensor {_short(name)} has no dtype")
    if not _are_sizes(shape) or len(shape) > MOST_AXES:
        raise _DamageError(f"the shape of tensor {_short(name)} cannot be {shown(shape)}")
    if not _are_sizes(place) or len(place) != 2 or place[0] > place[1]:
        raise _DamageError(f"the data_offsets of tensor {_short(name)} cannot be {shown(place)}")
    _check_bytes(name, kind, tuple(shape), place[1] - place[0])
    return Entry(kind, tuple(shape), begin + place[0], begin + place[1])


_KEYS = ("dtype", "shape", "data_offsets")


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(size) is int and 0 <= size < 1 << 63 for size in value)


def _check_bytes(name: str, kind: str, shape: Shape, given: int) -> None:
    if kind in BITS and math.prod(shape) * BITS[kind] != given * 8:
        needed = math.prod(shape) * BITS[kind] // 8
        of = f"tensor {_short(name)} is {shape_text(shape[:8]) or 'one number'} of {kind}"
        raise _DamageError(f"{of}, which is {needed:,} bytes, but has {given:,}")


def _check_places(entries: Mapping[str, Entry], begin: int, end: int) -> None:
    """Raise unless the tensors lie side by side from the first byte of the data to the last."""
    first, last = Entry("", (), begin, begin), Entry("", (), end, end)
    placed = sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop))
    for (one, before), (other, after) in pairwise([("", first), *placed, ("", last)]):
        if before.stop > end:
            raise _DamageError(f"tensor {_short(one)} ends at byte {before.stop:,}, and the file has {end:,}")
        if before.stop > after.start:
            raise _DamageError(f"tensors {_short(one)} and {_short(other)} overlap")
        if before.stop < after.start:
            gap = f"bytes {before.stop:,} to {after.start:,} are of no tensor"
            raise _DamageError(f"{gap}, before tensor {_short(other)}" if other else f"{gap}, at the end")


def _short(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else shown(name)
