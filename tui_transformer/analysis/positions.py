"""The positional encoding of the 2017 paper by itself: a table for any number of positions, and what it promises.

PE[p][2i] = sin(p ω_i), PE[p][2i+1] = cos(p ω_i), ω_i = 10000^(−2i/d) (Vaswani et al. 2017, §3.5). From these:

- PE(p) · PE(q) = Σ_i cos((p − q) ω_i): the likeness of two positions depends on their distance alone.
- In every pair of columns PE(p) + PE(q) = 2 cos((p − q) ω_i ÷ 2) · (sin, cos)((p + q) ω_i ÷ 2): the direction of a sum
  tells the middle of two positions, and its length how far apart they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from tui_transformer.engine.backend import Host, numpy_backend
from tui_transformer.engine.ops import Sinusoid
from tui_transformer.engine.parts import check_memory
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass

MOST = 1 << 20
SUMMED = 40
"""Positions whose sums of two are compared with each other."""

COMPARED = 2_000
"""Positions that are compared with each other."""


@dataclass(frozen=True)
class Facts:
    """Properties of a table, measured: its smallest and largest value, and distances.

    `nearest`: the smallest distance of two rows, and their positions; `sums`: the smallest distance of two sums of two
    positions, and the four positions; `longer`: the largest difference of a row here and in a table of twice as many
    positions.
    """

    lowest: float
    highest: float
    nearest: tuple[float, int, int]
    sums: tuple[float, tuple[int, int], tuple[int, int]]
    longer: float


def encoding(width: int, count: int) -> Host:
    """The table, count × width, in float64; UsageError for sizes that cannot be, InputError where memory is short."""
    for name, value in (("d_model", width), ("positions", count)):
        if not 1 <= value <= MOST:
            raise UsageError(f"{name} {value} is not a whole number from 1 to {MOST:,}")
    check_memory(3 * 8 * width * count, f"{count:,} positions × {width:,} need", "use fewer")
    backend = numpy_backend("float64")
    return np.asarray(Sinusoid(width).forward(backend, np.arange(count, dtype=np.int64)[None])[0])


def columns_of(width: int, part: str, chosen: Sequence[int] | None = None) -> tuple[int, ...]:
    """The columns that are sines ("sin"), cosines ("cos") or either ("all"), of all or of those that were chosen.

    UsageError where there is no such column, or none of this kind among them.
    """
    wanted = range(width) if chosen is None else chosen
    for column in wanted:
        if not 0 <= column < width:
            raise UsageError(f"there is no dimension {column}: they are 0 to {width - 1}")
    kept = tuple(column for column in wanted if part == "all" or column % 2 == (part == "cos"))
    if not kept:
        raise UsageError(f"none of the dimensions is a {part}: sines are the even ones, cosines the odd ones")
    return kept


def by_distance(width: int, count: int) -> list[tuple[int, float, float]]:
    """Distance k, PE(p) · PE(p + k), and the cosine of the two rows, for k from 0.

    UsageError for an odd width: its last sine has no cosine, and then the place counts too.
    """
    if width % 2:
        raise UsageError(f"d_model {width} is odd: likeness is that of a distance where every sine has its cosine")
    table = encoding(width, count)
    dots, first = table @ table[0], float(table[0] @ table[0])
    lengths = np.sqrt(np.einsum("ij,ij->i", table, table)) * np.sqrt(first)
    return [(k, float(dots[k]), float(dots[k] / lengths[k])) for k in range(count)]


def facts(width: int, count: int) -> Facts:
    """Patterns that can be seen in a table of so many positions; of many, the first are compared with each other."""
    table = encoding(width, count)
    longer = encoding(width, 2 * count)
    few = table[:SUMMED]
    pairs = list(combinations_with_replacement(range(len(few)), 2))
    distance, first, second = _nearest(np.array([few[a] + few[b] for a, b in pairs]))
    sums = distance, pairs[first], pairs[second]
    change = float(np.abs(longer[:count] - table).max())
    return Facts(float(table.min()), float(table.max()), _nearest(table[:COMPARED]), sums, change)


def _nearest(rows: Host) -> tuple[float, int, int]:
    """The smallest distance of two rows, and which they are; ∞ of one row."""
    best = (float("inf"), 0, 0)
    for first in range(len(rows) - 1):
        distances = np.sqrt(np.square(rows[first + 1 :] - rows[first]).sum(axis=1))
        place = int(distances.argmin())
        best = min(best, (float(distances[place]), first, first + 1 + place))
    return best
