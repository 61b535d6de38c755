"""Distance bias (ALiBi): scores less the distance from query to key, times a slope of the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class DistanceBias(Op):
    """score − slope of the head · |query − key| (Press et al. 2022, "Train Short, Test Long", §3).

    Inputs: scores (h × n × m), places of the queries (n), places of the keys (m).
    """

    undone_from: ClassVar[tuple[int, ...]] = ()
    chain: ClassVar[tuple[str, ...]] = ("∂y",)
    overwrites: ClassVar[bool] = True
    slopes: tuple[float, ...]

    @property
    def formula(self) -> str:
        """The difference."""
        return "score − slope · |query − key|"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the scores."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The distances once, their product with every slope."""
        xp, (scores, queries, keys) = backend.xp, inputs
        distance = xp.abs(queries[:, None, :, None] - keys[:, None, None, :]).astype(scores.dtype)
        slopes = xp.asarray(self.slopes, dtype=scores.dtype)[:, None, None]
        return xp.subtract(scores, slopes * distance, out=backend.like(scores) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = s − slope · distance; the places have no gradient."""
        return gradient, None, None

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Every head: a part would not know which slopes are its own."""
        return (range(shape[0]), *region[1:])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same scores, and the places of their queries and keys."""
        _, rows, columns = region
        return region, (rows,), (columns,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The score, both places, and the head's slope."""
        head, row, column = index
        cell, query, key = sources[0].operand(*index), sources[1].operand(row), sources[2].operand(column)
        distance = abs(query.value - key.value)
        items = (
            Value("score", cell.value, cell),
            Value("query", query.value, query, "place of the query"),
            Value("key", key.value, key, "place of the key"),
            Value("− slope · |query − key|", self.slopes[head] * distance, note=f"slope {self.slopes[head]:.6g}"),
        )
        left = f"{spoken(cell.value)} − {spoken(self.slopes[head])} · {spoken(distance)}"
        return Working(items, cell.value - self.slopes[head] * distance, left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working | None:
        """The gradient itself."""
        return passed_on(gradient.operand(*index)) if toward == 0 else None

    def flops(self, *inputs: Axes) -> int:
        """A product and a difference a cell."""
        return 2 * super().flops(*inputs)
