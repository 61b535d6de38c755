"""How far two arrays are apart, cell by cell, and two traces step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tui_transformer.engine.axis import Region, Shape, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, replace

TOLERANCE = 1e-5
"""Cells differ by |a − b| > tolerance · max(1, |a|, |b|), unless another tolerance is given."""


@dataclass(frozen=True)
class Difference:
    """Two arrays of one name; `beyond` if some cell has |a − b| > tolerance · max(1, |a|, |b|), or the shapes differ.

    `largest` is the largest |a − b| (0 where the same infinities or NaN stand in both, ∞ where only one has them), at
    the cell of this index, with its values in both; `relative` is the largest |a − b| ÷ max(|a|, |b|).
    """

    name: str
    shapes: tuple[Shape, Shape]
    beyond: bool
    largest: float = 0.0
    relative: float = 0.0
    index: Index = ()
    values: tuple[float, float] = (0.0, 0.0)

    @property
    def comparable(self) -> bool:
        """The shapes are the same."""
        return self.shapes[0] == self.shapes[1]

    @property
    def shape_text(self) -> str:
        """The shape, or both where they differ."""
        first, second = (shape_text(shape) or "1" for shape in self.shapes)
        return first if first == second else f"{first} ≠ {second}"


@dataclass(frozen=True)
class Comparison:
    """The difference of every step that both traces have, in order."""

    differences: Mapping[str, Difference]

    @property
    def first(self) -> str | None:
        """The first step that differs."""
        return next((name for name, difference in self.differences.items() if difference.beyond), None)


def compare_traces(a: Trace, b: Trace, report: Callable[[str], None] = lambda _: None) -> Comparison:
    """Compare every step that both traces have; `report` is told which, and may raise to end it.

    Of different shapes, which are a difference by themselves, the cells that both have are compared.
    """
    differences = {}
    for name in (step.name for step in a.program.steps if step.name in b.program.by_name):
        report(name)
        first, second = a[name], b[name]
        whole = compare(name, first, second, TOLERANCE)
        if not whole.comparable and first.ndim == second.ndim:
            part = tuple(slice(min(sizes)) for sizes in zip(first.shape, second.shape, strict=True))
            whole = replace(compare(name, first[part], second[part], TOLERANCE), shapes=whole.shapes, beyond=True)
        differences[name] = whole
    return Comparison(differences)


def compare(name: str, first: Host, second: Host, tolerance: float) -> Difference:
    """Compare two arrays; a batch axis of 1 that only one has is left out."""
    first, second = _without_batch(first, second.ndim), _without_batch(second, first.ndim)
    shapes = first.shape, second.shape
    if first.shape != second.shape or not first.size:
        return Difference(name, shapes, beyond=first.shape != second.shape)
    a, b = first.astype(np.float64), second.astype(np.float64)
    size = np.maximum(np.abs(a), np.abs(b))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # 0 for equal infinities and for NaN in both, ∞ for NaN in one
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        gap = np.where(np.isnan(gap), np.inf, gap)
        relative = np.where(gap == 0, 0.0, np.where(np.isfinite(gap), gap / size, np.inf))
        beyond = bool(((gap > tolerance * np.maximum(1.0, size)) | np.isinf(gap)).any())
    index = np.unravel_index(int(gap.argmax()), gap.shape)
    values = float(a[index]), float(b[index])
    return Difference(name, shapes, beyond, float(gap[index]), float(relative.max()), tuple(map(int, index)), values)


def compare_blocks(
    name: str, shape: Shape, blocks: Iterable[tuple[Region, Host, Host]], tolerance: float
) -> Difference:
    """Compare two arrays of a shape of which only a region is there at a time."""
    whole = Difference(name, (shape, shape), beyond=False)
    for region, first, second in blocks:
        part = compare(name, first, second, tolerance)
        place = tuple(axis.start + i for axis, i in zip(region, part.index, strict=True))
        larger = replace(part, index=place) if part.largest > whole.largest or not whole.index else whole
        beyond, relative = whole.beyond or part.beyond, max(whole.relative, part.relative)
        whole = replace(larger, shapes=whole.shapes, beyond=beyond, relative=relative)
    return whole


def _without_batch(array: Host, axes: int) -> Host:
    return array[0] if array.ndim == axes + 1 and array.shape[0] == 1 else array
