"""Curves that grow for as long as a run lasts, in a number of points that does not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_transformer.explorer.tools.runs.log import logged
from tui_transformer.learning.loop import Measured, Record
from tui_transformer.views.charts import LineChart, Series

MOST = 300
"""Points of a curve; with more of them, two neighbours become their mean."""

STEEP = 8.0
"""How many times the smallest value the largest is, from which on a curve is drawn on a logarithmic axis."""

LEARNED = ("loss", "accuracy", "learning_rate", "gradient_norm")
COLUMNS = (*LEARNED, "validation_loss", "validation_accuracy")

Points = tuple[tuple[float, ...], tuple[float, ...]]


class Curve:
    """Values by step. Each point is the mean of equally many values, so that noise shrinks as the run grows.

    One thread adds, others read.
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []
        self._each = 1
        self._waiting: list[tuple[float, float]] = []

    def add(self, step: int, value: float) -> None:
        """A value of a step; one that is no finite number is left out."""
        if not math.isfinite(value):
            return
        self._waiting.append((step, value))
        if len(self._waiting) == self._each:
            self._points.append(_mean(self._waiting))
            self._waiting = []
        if len(self._points) >= MOST:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            self._points, self._each = [_mean(pair) for pair in pairs], 2 * self._each

    @property
    def points(self) -> Points:
        """Steps and values."""
        means = [*self._points, *([_mean(waiting)] if (waiting := list(self._waiting)) else [])]
        return tuple(step for step, _ in means), tuple(value for _, value in means)


def _mean(points: Any) -> tuple[float, float]:
    points = list(points)
    return sum(step / len(points) for step, _ in points), sum(value / len(points) for _, value in points)


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of a run, by the columns of its log."""

    of: Mapping[str, Curve] = field(default_factory=lambda: {name: Curve() for name in COLUMNS})

    def add(self, record: Record, measured: Measured | None) -> None:
        """Take the loss of a step, and the measures after it."""
        self._add(record.step, {name: getattr(record, name) for name in LEARNED})
        if measured is not None:
            self._add(record.step, {f"validation_{name}": getattr(measured, name) for name in ("loss", "accuracy")})

    def _add(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.of[name].add(step, value)

    def read(self, folder: Path, step: int) -> None:
        """Take the log of a run up to a step; nothing where there is no log, or one that cannot be read."""
        for row in logged(folder):
            if row["step"] <= step:
                self._add(int(row["step"]), {name: row[name] for name in COLUMNS if name in row})

    def chart(self, kind: str) -> LineChart:
        """The chart of a kind in `CHARTS`."""
        title, names = CHARTS[kind]
        series = tuple(Series(label, *self.of[name].points) for name, label in names.items())
        steep = kind != "accuracy" and _is_steep([value for each in series for value in each.y])
        return LineChart(title, "", "", tuple(each for each in series if each.x), steep, counted=True)


CHARTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "loss": ("Loss by step", {"loss": "training", "validation_loss": "validation"}),
    "accuracy": ("Accuracy by step", {"accuracy": "training", "validation_accuracy": "validation"}),
    "learning rate": ("Learning rate by step", {"learning_rate": "by the schedule"}),
    "gradient": ("Gradient norm by step, before clipping", {"gradient_norm": "all weights"}),
}
"""Title of a chart, and which curves it has under which names."""


def _is_steep(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) > STEEP * min(values)
