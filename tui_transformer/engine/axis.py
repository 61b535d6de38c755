"""Named axes of a step's array, without the batch axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


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
