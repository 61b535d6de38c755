"""The head that is looked at: kind of attention, layer and head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui_transformer.analysis.attentions import Attention

CROSS = "cross_attention"

Turned = Literal["head", "layer", "kind"]


@dataclass(frozen=True)
class HeadSelection:
    """The chosen attention; "" is the cross-attention where there is one, else the first kind."""

    group: str = ""
    layer: int = 0
    head: int = 0

    def of(self, known: Sequence[Attention]) -> tuple[Attention, int]:
        """The attention and the head of it, as far as there are as many."""
        layers = self._layers(known)
        attention = layers[self.layer % len(layers)]
        return attention, self.head % attention.heads

    def turned(self, known: Sequence[Attention], what: Turned, by: int) -> HeadSelection:
        """So many heads, layers or kinds of attention further; a kind begins at its first layer."""
        if what == "head":
            attention, head = self.of(known)
            return replace(self, head=(head + by) % attention.heads)
        if what == "layer":
            return replace(self, layer=(self.layer + by) % len(self._layers(known)))
        groups = list(dict.fromkeys(each.group for each in known))
        return HeadSelection(groups[(groups.index(self._group(known)) + by) % len(groups)], 0, self.head)

    def _layers(self, known: Sequence[Attention]) -> list[Attention]:
        group = self._group(known)
        return [each for each in known if each.group == group]

    def _group(self, known: Sequence[Attention]) -> str:
        groups = [each.group for each in known]
        if self.group in groups:
            return self.group
        return next((each.group for each in known if each.kind == CROSS), groups[0])
