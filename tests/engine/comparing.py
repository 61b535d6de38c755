"""Parts of arrays, and traces beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.explanation import Operand, Sum, Value


def random_region(rng: np.random.Generator, shape: Shape) -> Region:
    """A range of every axis, which may be empty."""
    return tuple(range(*sorted(map(int, rng.choice(size + 1, 2, replace=False)))) for size in shape)


def operands(item: Sum | Value) -> Iterator[Operand]:
    """The cells that an item of an explanation names."""
    if isinstance(item, Sum):
        yield from (factor.operand(term) for factor in item.factors for term in range(len(item)))
    elif item.source is not None:
        yield item.source


def cut(array: np.ndarray, region: Region) -> np.ndarray:
    """The cells of a region."""
    return array[tuple(slice(part.start, part.stop) for part in region)]


def assert_same(
    found: Mapping[str, np.ndarray],
    wanted: Mapping[str, np.ndarray],
    names: Iterable[str] | None = None,
    *,
    rtol: float = 1e-12,
    atol: float = 1e-14,
) -> None:
    """Two traces have the same values."""
    for name in wanted if names is None else names:
        np.testing.assert_allclose(found[name], wanted[name], rtol=rtol, atol=atol, err_msg=name)
