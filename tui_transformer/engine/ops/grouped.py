"""Grouped heads: several query heads read one key and value head (Ainslie et al. 2023)."""

from __future__ import annotations

from tui_transformer.engine.axis import Region
from tui_transformer.engine.backend import Array, Backend


def grouped(heads: Array, groups: int) -> Array:
    """B × h × n × m → B × g × h/g × n × m: the heads that share a key head, side by side."""
    batch, count, *rest = heads.shape
    return heads.reshape(batch, groups, count // groups, *rest)


def ungrouped(heads: Array) -> Array:
    """B × g × h/g × n × m → B × h × n × m."""
    batch, groups, share, *rest = heads.shape
    return heads.reshape(batch, groups * share, *rest)


def side_by_side(backend: Backend, heads: Array) -> Array:
    """An array for as many heads (B × h × n × d_k), with those of a token side by side in memory."""
    batch, count, rows, width = heads.shape
    return backend.empty((batch, rows, count, width), heads.dtype).swapaxes(1, 2)


def whole_groups(region: Region, share: int) -> Region:
    """The region with all query heads of every group that it touches, unless it is of a single head."""
    heads = region[0]
    if share == 1 or len(heads) == 1:
        return region
    return range(heads.start // share * share, -(-heads.stop // share) * share), *region[1:]


def key_heads(heads: range, share: int) -> range:
    """The key heads that query heads read."""
    return range(heads.start // share, (heads.stop - 1) // share + 1)
