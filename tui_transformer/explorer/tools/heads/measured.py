"""The measures of the heads of one stack and kind of attention, as far as they are known."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tui_transformer.analysis.attentions import Attention, Reader, Report
from tui_transformer.analysis.head_measures import LayerMeasures, layer_measures
from tui_transformer.analysis.measures import HEAD_MEASURES, Measure
from tui_transformer.analysis.tokens import NOTHING, Hidden
from tui_transformer.engine.number_format import minus
from tui_transformer.engine.trace import Trace
from tui_transformer.text.vocabulary import Vocabulary

COST = 12
"""Operations that it takes to measure and draw a weight."""

_RESULTS: WeakKeyDictionary[Trace, dict[tuple[str, Hidden], LayerMeasures]] = WeakKeyDictionary()
"""Measures of each trace, which stay as long as it does."""


@dataclass(frozen=True, eq=False)
class MeasuredHeads:
    """Heads, counted through all layers, and what was measured of them.

    Attributes:
        trace: Whose weights.
        steps: The attention of every layer.
        hidden: Tokens that take no part.
    """

    trace: Trace
    steps: Sequence[Attention]
    hidden: Hidden = NOTHING

    @property
    def heads(self) -> int:
        """Heads of a layer."""
        return self.steps[0].heads

    @property
    def count(self) -> int:
        """Heads of all layers."""
        return self.heads * len(self.steps)

    def place(self, head: int) -> tuple[Attention, int]:
        """The attention that a head is of, and its number there."""
        layer, number = divmod(head, self.heads)
        return self.steps[layer], number

    def of(self, step: Attention) -> LayerMeasures | None:
        """The measures of a layer, None where they are not known."""
        return _RESULTS.get(self.trace, {}).get((step.name, self.hidden))

    def value(self, head: int, measure: Measure) -> float:
        """A measure of a head; NaN where it is not known."""
        step, number = self.place(head)
        known = self.of(step)
        return math.nan if known is None else known.values[measure.name][number]

    @property
    def known(self) -> list[LayerMeasures]:
        """The measures of every head."""
        return [result for step in self.steps if (result := self.of(step)) is not None]

    @property
    def largest(self) -> float:
        """The largest cell of all pictures that there are."""
        return max((each.largest for each in self.known), default=1.0)

    @property
    def measures(self) -> list[Measure]:
        """The measures that any head has."""
        return [each for each in HEAD_MEASURES if any(_has(result, each) for result in self.known)]

    def missing(self, first: Collection[int] = ()) -> list[Attention]:
        """The layers that are not measured, those with one of these numbers first."""
        waiting = [step for step in self.steps if self.of(step) is None]
        return sorted(waiting, key=lambda step: step.layer not in first)

    def cost(self, step: Attention) -> int:
        """Floating-point operations that it takes to measure a layer."""
        return self.trace.pending([step.name]) + COST * step.heads * step.queries.size * step.keys.size

    def measure(self, step: Attention, vocabulary: Vocabulary | None, report: Report) -> LayerMeasures:
        """The measures of a layer; what `report` raises ends the work."""
        return layer_measures(self.trace, step, Reader(vocabulary, self.hidden), report)

    def keep(self, result: LayerMeasures) -> None:
        """Remember the measures of a layer."""
        _RESULTS.setdefault(self.trace, {})[result.attention.name, self.hidden] = result


def written(value: float, measure: Measure, *, unit: bool = False) -> str:
    """A measure of a head: two decimals, `–` where it has none."""
    if math.isnan(value):
        return "–"
    return minus(f"{value:.2f}") + (f" {measure.unit}" if unit and measure.unit else "")


def _has(result: LayerMeasures, measure: Measure) -> bool:
    return not all(map(math.isnan, result.values[measure.name]))
