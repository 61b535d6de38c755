"""Heads in an order, as tiles: the picture, the labels and the scale of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_transformer.analysis.head_measures import largest, smaller
from tui_transformer.analysis.measures import Measure
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.overview import part_shown
from tui_transformer.explorer.tools.heads.measured import MeasuredHeads, written
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.views.view import Scale, Values


@dataclass(frozen=True, eq=False)
class OrderedHeads:
    """Heads in order of their layers, or of a measure as far as it was known then.

    Attributes:
        measured: The heads.
        measure: What they are ordered by, None for the layers.
        reverse: The lowest first, or the last layer.
        common: One scale for all, instead of one for each.
        order: The heads, counted through all layers.
        high: The upper end of the common scale.
    """

    measured: MeasuredHeads
    measure: Measure | None
    reverse: bool
    common: bool
    order: Sequence[int]
    high: float

    @property
    def in_rows(self) -> bool:
        """Whether a row of tiles is a layer."""
        return self.measure is None and len(self.measured.steps) > 1

    @property
    def title(self) -> str:
        """The order, in words."""
        if self.measure is None:
            return "by layer"
        return f"by {self.measure.title}, {'lowest' if self.reverse else 'highest'} first"

    def tiles(self) -> Tiles:
        """The tiles of the grid."""
        columns = self.measured.heads if self.in_rows else None
        return Tiles(len(self.order), columns, self._picture, self._labels, self._row_label, self.scale)

    def scale(self, index: int) -> Scale:
        """The scale of a tile."""
        step, head = self.measured.place(self.order[index])
        known = self.measured.of(step)
        return Scale("sequential", 0.0, self.high if self.common or known is None else largest(known.pictures[head]))

    def part_shown(self, grid: TileGrid) -> str:
        """The part of the heads that is on screen, in words."""
        if self.in_rows:
            layers = part_shown("layer", grid.shown, len(self.measured.steps))
            return f"{layers} · {part_shown('head', grid.shown_columns, self.measured.heads)}"
        first, last = grid.shown.start * grid.columns, min(grid.shown.stop * grid.columns, len(self.order))
        return part_shown("head", range(first, last), len(self.order))

    def _picture(self, index: int, side: int) -> Values | None:
        step, head = self.measured.place(self.order[index])
        known = self.measured.of(step)
        return None if known is None else smaller(known.pictures[head], side, side)

    def _labels(self, index: int) -> Sequence[str]:
        step, head = self.measured.place(self.order[index])
        if self.measure is None:
            return *self._telling(self.order[index], f"head {head}", f"H{head}"), f"head {head}", f"H{head}", str(head)
        number = self.measured.value(self.order[index], self.measure)
        value = written(number, self.measure)
        short = value.removeprefix("0")
        rough = short if math.isnan(number) or number < 1 else minus(f"{number:.1f}")
        name, joint = f"L{step.layer} H{head}", f"L{step.layer}H{head}"
        with_value = (f"{name}  {value}", f"{name} {value}", f"{name} {short}", f"{joint} {short}", f"{joint} {rough}")
        return *with_value, name, joint

    def _telling(self, head: int, name: str, short: str) -> Iterator[str]:
        """The head with the largest of its measures that are shares; nothing where none is known."""
        shares = [(self.measured.value(head, each), each.name) for each in self.measured.measures if not each.unit]
        value, measure = max((each for each in shares if not math.isnan(each[0])), default=(math.nan, ""))
        if measure:
            number = f"{value:.2f}".removeprefix("0")
            yield f"{name}  {measure} {number}"
            yield f"{short} {measure} {number}"
            yield f"{short} {measure[:4]} {number}"

    def _row_label(self, row: int) -> str:
        first = self.order[min(row * self.measured.heads, len(self.order) - 1)]
        return f"L{self.measured.place(first)[0].layer}"


def in_order(measured: MeasuredHeads, measure: Measure | None, *, reverse: bool, common: bool) -> OrderedHeads:
    """Heads by layer, or the highest value of a measure first, those without it last."""

    def rank(head: int) -> tuple[bool, float, int]:
        assert measure is not None  # noqa: S101 - without one they stay as they are
        value = measured.value(head, measure)
        return math.isnan(value), 0.0 if math.isnan(value) else value if reverse else -value, head

    heads: Sequence[int] = range(measured.count)
    order = sorted(heads, key=rank) if measure is not None else heads[::-1] if reverse else heads
    return OrderedHeads(measured, measure, reverse, common, order, measured.largest)
