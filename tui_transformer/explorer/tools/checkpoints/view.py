"""One head at one checkpoint large, and at some of them small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.head_measures import smaller
from tui_transformer.explorer.tools.checkpoints.computed import Computed
from tui_transformer.explorer.tools.checkpoints.saved import Checkpoint
from tui_transformer.explorer.tools.runs.sample import Heads
from tui_transformer.explorer.tools.runs.selection import HeadSelection, Turned
from tui_transformer.explorer.widgets.tile_grid import Tiles
from tui_transformer.views.numbers import short_number
from tui_transformer.views.view import Scale, Values

WEIGHT = Scale("sequential", 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class CheckpointView:
    """The head that is chosen at the checkpoint that is looked at."""

    computed: Computed
    place: int
    selection: HeadSelection

    @property
    def checkpoint(self) -> Checkpoint:
        """The one that is looked at."""
        return self.computed.run.all[self.place]

    @property
    def heads(self) -> Heads | None:
        """Its heads, None before they are computed, or where the model has none."""
        heads = self.computed.heads.get(self.place)
        return heads if heads is not None and heads.attentions else None

    @property
    def head(self) -> tuple[Attention, int] | None:
        """The attention and the number of the head, once anything is known."""
        known = self.computed.attentions
        return self.selection.of(known) if known else None

    def moved(self, by: int) -> CheckpointView:
        """At another checkpoint."""
        return replace(self, place=max(min(self.place + by, len(self.computed.run.all) - 1), 0))

    def turned(self, what: Turned, by: int) -> CheckpointView:
        """At another head."""
        known = self.computed.attentions
        return replace(self, selection=self.selection.turned(known, what, by)) if known else self

    def tiles(self, places: Sequence[int]) -> Tiles:
        """The head at some checkpoints."""

        def picture(index: int, side: int) -> Values | None:
            heads, head = self.computed.heads.get(places[index]), self.head
            return None if heads is None or head is None else smaller(heads.weights[head[0].name][head[1]], side, side)

        def labels(index: int) -> tuple[str, ...]:
            step = f"{self.computed.run.all[places[index]].step:,}"
            return f"step {step}", step

        return Tiles(len(places), None, picture, labels, str, lambda _: WEIGHT)

    @property
    def heading(self) -> str:
        """The head, and the step."""
        head = self.head
        said = "reading" if head is None else f"{head[0].group} · layer {head[0].layer} · head {head[1]}"
        return f"{said} · step {self.checkpoint.step:,}"

    @property
    def losses(self) -> str:
        """The step, and what was measured after it."""
        at = self.checkpoint
        return f"step {at.step:,}" + _loss("loss", at.loss) + _loss("validation loss", at.validation)

    @property
    def sharpness(self) -> str:
        """How sharply the head looks: the mean over queries of the largest weight."""
        heads, head = self.heads, self.head
        if self.place not in self.computed.heads:
            return "being computed"
        if heads is None or head is None:
            return "this model has no attention"
        attention, number = head
        largest = float(heads.weights[attention.name][number].max(axis=1).mean())
        even = 1 / attention.keys.size
        return f"largest weight of a query, mean {largest:.2f} · all keys alike would be {even:.2f}"


def _loss(name: str, loss: float | None) -> str:
    return "" if loss is None or math.isnan(loss) else f" · {name} {short_number(loss)}"
