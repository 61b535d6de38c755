"""The strongest links: which token looks at which, in which head, as a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.style import Style
from rich.text import Text

from tui_transformer.analysis.attentions import Attention, Reader, attentions
from tui_transformer.analysis.rollout import Link, Wanted, links_of, strongest
from tui_transformer.analysis.tokens import NOTHING
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.arcs import arcs_of
from tui_transformer.explorer.widgets.palette import Surface, bar_style
from tui_transformer.session.answer_summary import percent
from tui_transformer.text.display import cells, fit
from tui_transformer.views.step_view import Labels, placed

TOP = 200
"""Links that are listed."""

COST = 4
"""Operations that it takes to look at a weight."""

BAR, LONGEST_BAR = 10, 80
"""Columns of a bar at least, and at most."""

WORD, SHORT_WORD, ROOMY = 32, 10, 80
"""Columns of a token at most, and those on a screen that is narrower than the last."""

NUMBER, NO_WORDS = 7, 14
"""Columns of the weight, and of what else is no word: border, spaces, arrow."""


def open_from(port: Port) -> None:
    """The links of all heads, or of the head that is shown."""
    port.open(LinksScreen(port))


class LinksScreen(Overview, tool="links"):
    """The largest weights of all heads, of a layer or of a head."""

    HAS_COLUMNS = True
    pieces: Pieces[Attention, Sequence[Link]]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.everything = attentions(self.session.trace.program)
        stop = port.position.stop
        self.at = next((step for step in self.everything if stop.startswith(step.name.rpartition(".")[0] + ".")), None)
        self.head = port.position.place.head
        self.scope, self.itself, self.hidden = "all heads", True, NOTHING
        self.scopes = ("all heads", "layer", "head") if self.at is not None else ("all heads",)
        self.links: tuple[Link, ...] = ()
        self.waiting: list[Attention] = []
        self.writer = LinkLines(self.everything, self.session.labels)
        self.pieces = Pieces(self.requests, self.KIND, self._following, self._cost, self._look, self._take)

    @property
    def steps(self) -> tuple[Attention, ...]:
        return self.everything if self.at is None or self.scope == "all heads" else (self.at,)

    def begin(self) -> None:
        """Look through the layers anew, one after the other."""
        self.links, self.waiting = (), list(self.steps)
        self._show_list()
        self.pieces.again()

    def _following(self) -> Attention | None:
        return self.waiting.pop(0) if self.waiting else None

    def _cost(self, step: Attention) -> int:
        return self.session.trace.pending([step.name]) + COST * step.heads * step.queries.size * step.keys.size

    def _look(self, step: Attention, task: Task) -> Sequence[Link]:
        wanted = Wanted(TOP, self.head if self.scope == "head" else None, self.itself)
        reader = Reader(self.session.model.vocabulary, self.hidden)
        return links_of(self.session.trace, step, reader, wanted, task.report)

    def _take(self, more: Sequence[Link]) -> None:
        self.links = strongest((*self.links, *more), TOP)
        self._show_list()

    def _show_list(self) -> None:
        self.lines.show(len(self.links), self._line)

    def _line(self, index: int) -> Text:
        return self.writer.line(self.links[index], self.size.width, bar_style(Surface.of(self.app)))

    def texts(self) -> Texts:
        at, names = self.at, {"all heads": "all heads"}
        if at is not None:
            names |= {"layer": f"layer {at.layer}, {at.group}", "head": f"layer {at.layer}, head {self.head}"}
        left_out = self.hidden.text, "" if self.itself else "links to the token itself left out"
        return Texts(
            f"Strongest links · {names[self.scope]}",
            " · ".join([*filter(None, left_out), f"the {len(self.links):,} strongest"]),
            self._selected(),
            f"{len(self.steps) - len(self.waiting)} of {len(self.steps)} layers",
            self.writer.header(self.size.width),
            () if len(self.scopes) > 1 else ("kind",),
        )

    def _selected(self) -> tuple[str, str]:
        at = self.lines.cursor
        if at is None:
            return ("no link", "every query may look at one key only, or is hidden") if not self.waiting else ("", "")
        link = self.links[at]
        who, whom = self.writer.words(link)
        return (
            f"query {who} gives {link.weight:.4f} of its attention to key {whom}",
            f"layer {link.layer} · head {link.head} · {link.step}[{link.head}, {link.query}, {link.key}]",
        )

    def action_arcs(self) -> None:
        self.open(arcs_of(self.port, "links"))

    def action_scope(self) -> None:
        self.scope = following(self.scopes, self.scope)
        self.begin()

    def action_itself(self) -> None:
        self.itself = not self.itself
        self.begin()

    def action_hide(self, which: str) -> None:
        self.hidden = self.hidden.turned(which)
        self.begin()

    def chosen(self) -> None:
        link = self.links[self.lines.index]
        leave_to(self, link.step, link.head, link.query, link.key)


@dataclass(frozen=True, eq=False)
class LinkLines:
    """Writes links of attentions, with the labels of tokens, in columns that fit the names of the heads."""

    attentions: Sequence[Attention]
    labels: Labels

    def header(self, width: int) -> str:
        room = self._word_width(width)
        head = f"{'head':<{self._name_width}}"
        return f" {'weight':>{NUMBER}} {'':<{self._bar(width)}}  {head} {'query':>{room}} → key"

    def line(self, link: Link, width: int, bar: Style) -> Text:
        """A link, on a screen of so many columns; `bar` is the style of its bar."""
        query, key = self.words(link)
        line, columns = Text(f" {percent(link.weight):>{NUMBER}} ", no_wrap=True), self._bar(width)
        line.append(f"{'━' * max(round(link.weight * columns), 1):<{columns}}", bar)
        name, room = self._head(self._by_name[link.step], link.head), self._word_width(width)
        return line.append(f"  {name:<{self._name_width}} {fit(query, room, 'right')} → {fit(key, room)}")

    def words(self, link: Link) -> tuple[str, str]:
        attention = self._by_name[link.step]
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

    @cached_property
    def _name_width(self) -> int:
        return max(len(self._head(each, each.heads - 1)) for each in self.attentions)

    @cached_property
    def _several(self) -> bool:
        return len({each.group for each in self.attentions}) > 1

    def _head(self, attention: Attention, head: int) -> str:
        """`L3 H7`; where there are several stacks or kinds of attention, with a word for it."""
        kind = f"{attention.stack if attention.own else 'cross'} " if self._several else ""
        return f"{kind}L{attention.layer} H{head}"
