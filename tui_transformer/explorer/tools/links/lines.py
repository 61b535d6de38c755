"""How a link is written: weight, bar, layer and head, and the two tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.style import Style
from rich.text import Text

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.rollout import Link
from tui_transformer.session.answer_summary import percent
from tui_transformer.text.display import cells, fit
from tui_transformer.views.step_view import Labels, placed

BAR, LONGEST_BAR = 10, 80
"""Columns of a bar at least, and at most."""

WORD, SHORT_WORD, ROOMY = 32, 10, 80
"""Columns of a token at most, and those on a screen that is narrower than the last."""

NUMBER = 7
NO_WORDS = 14
"""Columns of the weight, and of what else is no word: border, spaces, arrow."""


@dataclass(frozen=True, eq=False)
class LinkLines:
    """Writes links in columns that fit the names of the heads.

    Attributes:
        attentions: All that links are of.
        labels: The tokens.
    """

    attentions: Sequence[Attention]
    labels: Labels

    def header(self, width: int) -> str:
        """The names of the columns, on a screen of so many columns."""
        bar, room = self._bar(width), self._word_width(width)
        return f" {'weight':>{NUMBER}} {'':<{bar}}  {'head':<{self._name_width}} {'query':>{room}} → key"

    def line(self, link: Link, width: int, bar: Style) -> Text:
        """A link, on a screen of so many columns; `bar` is the style of its bar."""
        query, key = self.words(link)
        line, columns = Text(f" {percent(link.weight):>{NUMBER}} ", no_wrap=True), self._bar(width)
        line.append(f"{'━' * max(round(link.weight * columns), 1):<{columns}}", bar)
        name, room = self._head(self._attention(link), link.head), self._word_width(width)
        return line.append(f"  {name:<{self._name_width}} {fit(query, room, 'right')} → {fit(key, room)}")

    def words(self, link: Link) -> tuple[str, str]:
        """Query and key, each with its place."""
        attention = self._attention(link)
        ends = ((attention.queries, link.query), (attention.keys, link.key))
        query, key = (placed(self.labels.of(axis)(index), index) for axis, index in ends)
        return query, key

    def _bar(self, width: int) -> int:
        """Columns of a bar: what the words leave."""
        return max(min(width - NO_WORDS - NUMBER - self._name_width - 2 * self._word_width(width), LONGEST_BAR), BAR)

    def _word_width(self, width: int) -> int:
        """Columns of a token: those of the longest, as far as there is room for two."""
        return min(self._longest, WORD) if width >= ROOMY else SHORT_WORD

    @cached_property
    def _longest(self) -> int:
        axes = {axis.sequence: axis for each in self.attentions for axis in (each.queries, each.keys)}
        labels = ((axis, self.labels.of(axis)) for axis in axes.values())
        return max(cells(placed(label(place), place)) for axis, label in labels for place in range(axis.size))

    @cached_property
    def _by_name(self) -> dict[str, Attention]:
        return {each.name: each for each in self.attentions}

    def _attention(self, link: Link) -> Attention:
        return self._by_name[link.step]

    @cached_property
    def _several(self) -> bool:
        return len({each.group for each in self.attentions}) > 1

    @cached_property
    def _name_width(self) -> int:
        return max(len(self._head(each, each.heads - 1)) for each in self.attentions)

    def _head(self, attention: Attention, head: int) -> str:
        """`L3 H7`; where there are several stacks or kinds of attention, with a word for it."""
        kind = f"{attention.stack if attention.own else 'cross'} " if self._several else ""
        return f"{kind}L{attention.layer} H{head}"
