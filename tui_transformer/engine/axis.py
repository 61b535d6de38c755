"""Named axes of a step's array, without the batch axis."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import SupportsIndex

import numpy as np

from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class Axis:
    """One axis: what it counts, how many, and the token sequence whose words label it ("" for plain numbers).

    Attributes:
        words: What its places are called, where they have names of their own, as labels have.
    """

    name: str
    size: int
    sequence: str = ""
    words: tuple[str, ...] = ()

    def named(self, name: str) -> Axis:
        """The same axis in another role: tokens become queries or keys."""
        return replace(self, name=name)


Axes = tuple[Axis, ...]
Shape = tuple[int, ...]
Region = tuple[range, ...]
"""One range of indices an axis: the part of an array that is asked for."""

Places = SupportsIndex | range | Sequence[int] | None
"""Indices of one axis as a user names them: one, a range, a list, or None for all."""


def shape_of(axes: Axes) -> Shape:
    """The sizes of the axes."""
    return tuple(axis.size for axis in axes)


def whole(shape: Shape) -> Region:
    """The region that covers an array of this shape."""
    return tuple(range(size) for size in shape)


def cells(region: Region) -> int:
    """How many cells a region has."""
    return math.prod(len(part) for part in region)


def overlap(first: Region, second: Region) -> Region:
    """The cells that two regions share; none where a range of it is empty."""
    pairs = zip(first, second, strict=True)
    return tuple(range(max(a.start, b.start), min(a.stop, b.stop)) for a, b in pairs)


def slices(region: Region) -> tuple[slice, ...]:
    """The region as an index into an array with a batch axis in front, every item of the batch taken."""
    return (slice(None), *(slice(part.start, part.stop) for part in region))


def within(region: Region, outer: Region) -> tuple[slice, ...]:
    """Where `region` lies in an array (with batch axis) that holds only `outer`."""
    return slices(
        tuple(range(part.start - wide.start, part.stop - wide.start) for part, wide in zip(region, outer, strict=True))
    )


def shape_text(shape: Shape) -> str:
    """A shape as it is shown: `8 × 8 × 8`."""
    return " × ".join(map(str, shape))


def as_range(kind: str, part: Places) -> range | None:
    """A part of an axis as a range: of a number the one of it, of a list without gaps all of it.

    Raises:
        UsageError: It is none of these.
    """
    if part is None:
        return None
    runs = as_ranges(kind, part)
    if len(runs) != 1:
        raise UsageError(f"{kind} are a number or a range here, and no list with gaps")
    return runs[0]


def as_ranges(kind: str, part: SupportsIndex | range | Sequence[int]) -> list[range]:
    """A part of an axis as ranges: of a list its runs, in its order.

    Raises:
        UsageError: It is neither a number nor a range nor a list of numbers that differ.
    """
    if isinstance(part, range):
        return [part]
    listed = list(part) if isinstance(part, Sequence | np.ndarray) and not isinstance(part, str) else [part]
    try:
        numbers = [operator.index(each) for each in listed]
    except TypeError:
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers) or any(isinstance(each, bool) for each in listed):
        raise UsageError(f"{kind} are a number, a range or a list, as {kind}=2, {kind}=range(2, 4) or {kind}=[0, 3]")
    ends = [0, *(at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1), len(numbers)]
    return [range(numbers[start], numbers[stop - 1] + 1) for start, stop in pairwise(ends)]
