"""The head that is looked at: kind of attention, layer and head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_transformer.analysis.attentions import Attention

CROSS = "cross_attention"


@dataclass(frozen=True)
class Chosen:
    """What was chosen; "" is the cross-attention where there is one, else the first kind."""

    group: str = ""
    layer: int = 0
    head: int = 0

    def of(self, known: Sequence[Attention]) -> tuple[Attention, int]:
        """The attention and the head of it, as far as there are as many."""
        layers = self._layers(known)
        attention = layers[self.layer % len(layers)]
        return attention, self.head % attention.heads

    def _layers(self, known: Sequence[Attention]) -> list[Attention]:
        group = self._group(known)
        return [each for each in known if each.group == group]

    def _group(self, known: Sequence[Attention]) -> str:
        groups = [each.group for each in known]
        if self.group in groups:
            return self.group
        return next((each.group for each in known if each.kind == CROSS), groups[0])

    def with_head(self, known: Sequence[Attention], step: int) -> Chosen:
        """So many heads further."""
        attention, head = self.of(known)
        return replace(self, head=(head + step) % attention.heads)

    def with_layer(self, known: Sequence[Attention], step: int) -> Chosen:
        """So many layers further."""
        return replace(self, layer=(self.layer + step) % len(self._layers(known)))

    def with_next_kind(self, known: Sequence[Attention]) -> Chosen:
        """The next kind of attention, at its first layer."""
        groups = list(dict.fromkeys(each.group for each in known))
        return Chosen(groups[(groups.index(self._group(known)) + 1) % len(groups)], 0, self.head)
