"""Two traces step by step: how far every step is apart, and the first that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.report.differences import Difference, compare

TOLERANCE = 1e-5
"""Cells differ by |a − b| > tolerance · max(1, |a|, |b|), unless another tolerance is given."""


@dataclass(frozen=True)
class Comparison:
    """The difference of every step that both traces have, in order."""

    differences: Mapping[str, Difference]

    @property
    def first(self) -> str | None:
        """The first step that differs."""
        return next((name for name, difference in self.differences.items() if difference.beyond), None)


def compare_traces(a: Trace, b: Trace, report: Callable[[str], None] = lambda _: None) -> Comparison:
    """Compare every step that both traces have; `report` is told which, and may raise to end it."""
    differences = {}
    for step in a.program.steps:
        if step.name in b.program.by_name:
            report(step.name)
            differences[step.name] = compare_common(step.name, a[step.name], b[step.name])
    return Comparison(differences)


def compare_common(name: str, first: Host, second: Host) -> Difference:
    """Compare the cells that both arrays have, from the first on; different shapes are a difference by themselves."""
    whole = compare(name, first, second, TOLERANCE)
    if whole.comparable or first.ndim != second.ndim:
        return whole
    part = tuple(slice(min(sizes)) for sizes in zip(first.shape, second.shape, strict=True))
    return replace(compare(name, first[part], second[part], TOLERANCE), shapes=whole.shapes, beyond=True)
