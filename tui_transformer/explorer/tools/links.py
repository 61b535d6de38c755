"""Who looks at whom: the strongest links as a list, or as arcs between words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
from rich.style import Style
from rich.text import Text

from tui_transformer.analysis.attentions import Attention, Reader, attentions
from tui_transformer.analysis.rollout import Link, Rollout, links_of, strongest
from tui_transformer.analysis.tokens import NOTHING
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to, work_on
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.sentence import edit_in, show_as_new
from tui_transformer.explorer.widgets.arcs import Arcs
from tui_transformer.explorer.widgets.palette import Surface, bar_style
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.session import Session
from tui_transformer.text.display import cells, fit_label
from tui_transformer.views.step_view import Labels, placed


def attention_at(stop: str, every: Sequence[Attention]) -> Attention | None:
    """The attention whose sublayer a stop is in."""
    return next((step for step in every if stop.startswith(step.name.rpartition(".")[0] + ".")), None)


# The strongest links


TOP = 200
"""Links that are listed."""

BAR, LONGEST_BAR = 10, 80
"""Columns of a bar at least, and at most."""

WORD, SHORT_WORD, ROOMY = 32, 10, 80
"""Columns of a token at most, and those on a screen that is narrower than the last."""

NUMBER, NO_WORDS = 7, 14
"""Columns of the weight, and of what else is no word: border, spaces, arrow."""


class LinksScreen(Overview, tool="links"):
    """The largest weights of all heads, of a layer or of a head."""

    HAS_COLUMNS = True

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.everything = attentions(self.session.trace.program)
        self.at = attention_at(port.position.stop, self.everything)
        self.head = port.position.place.head
        self.scope, self.itself, self.hidden = "all heads", True, NOTHING
        self.scopes = ("all heads", "layer", "head") if self.at is not None else ("all heads",)
        self.links: tuple[Link, ...] = ()
        self.waiting: list[Attention] = []
        self.writer = LinkLines(self.everything, self.session.labels)
        work_on(
            self,
            lambda: self.waiting.pop(0) if self.waiting else None,
            self._look,
            lambda _, more: self._show_list(strongest((*self.links, *more), TOP)),
            lambda step: self.session.trace.pending([step.name]) + 4 * step.heads * step.queries.size * step.keys.size,
        )

    @property
    def steps(self) -> tuple[Attention, ...]:
        return self.everything if self.at is None or self.scope == "all heads" else (self.at,)

    def begin(self) -> None:
        self.waiting = list(self.steps)
        self._show_list(())
        self.pieces.again()

    def _look(self, step: Attention, task: Task) -> Sequence[Link]:
        head = self.head if self.scope == "head" else None
        reader = Reader(self.session.model.vocabulary, self.hidden)
        return links_of(self.session.trace, step, reader, TOP, head, itself=self.itself, report=task.report)

    def _show_list(self, links: tuple[Link, ...]) -> None:
        def line(index: int) -> Text:
            return self.writer.line(links[index], self.size.width, bar_style(Surface.of(self.app)))

        self.links = links
        self.lines.show(len(links), line)

    def texts(self) -> Texts:
        at, names = self.at, {"all heads": "all heads"}
        if at is not None:
            names |= {"layer": f"layer {at.layer}, {at.group}", "head": f"layer {at.layer}, head {self.head}"}
        left_out = self.hidden.text, "" if self.itself else "links to the token itself left out"
        place, detail = self.lines.cursor, ("", "")
        if place is not None:
            link = self.links[place]
            who, whom = self.writer.words(link)
            detail = (
                f"query {who} gives {link.weight:.4f} of its attention to key {whom}",
                f"layer {link.layer} · head {link.head} · {link.step}[{link.head}, {link.query}, {link.key}]",
            )
        elif not self.waiting:
            detail = "no link", "every query may look at one key only, or is hidden"
        return Texts(
            f"Strongest links · {names[self.scope]}",
            " · ".join([*filter(None, left_out), f"the {len(self.links):,} strongest"]),
            detail,
            f"{len(self.steps) - len(self.waiting)} of {len(self.steps)} layers",
            self.writer.header(self.size.width),
            {"kind": len(self.scopes) > 1},
        )

    def action_arcs(self) -> None:
        self.open(ArcsScreen(self.port, "links"))

    def action_scope(self) -> None:
        self.scope = following(self.scopes, self.scope)
        self.begin()

    def action_itself(self) -> None:
        self.itself = not self.itself
        self.begin()

    def action_hide(self, which: str = "") -> None:
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
        word, bar = self._room(width)
        return f" {'weight':>{NUMBER}} {'':<{bar}}  {'head':<{self._name_width}} {'query':>{word}} → key"

    def line(self, link: Link, width: int, bar: Style) -> Text:
        """A link, on a screen of so many columns; `bar` is the style of its bar."""
        (query, key), (word, columns) = self.words(link), self._room(width)
        line = Text(f" {percent(link.weight):>{NUMBER}} ", no_wrap=True)
        line.append(f"{'━' * max(round(link.weight * columns), 1):<{columns}}", bar)
        name = self._head(self._by_name[link.step], link.head)
        return line.append(f"  {name:<{self._name_width}} {fit_label(query, word, 'right')} → {fit_label(key, word)}")

    def words(self, link: Link) -> tuple[str, str]:
        attention = self._by_name[link.step]
        ends = ((attention.queries, link.query), (attention.keys, link.key))
        query, key = (placed(self.labels.of(axis)(index), index) for axis, index in ends)
        return query, key

    def _room(self, width: int) -> tuple[int, int]:
        """Columns of a token, those of the longest as far as there is room for two; and of a bar, what they leave."""
        word = min(self._longest, WORD) if width >= ROOMY else SHORT_WORD
        return word, max(min(width - NO_WORDS - NUMBER - self._name_width - 2 * word, LONGEST_BAR), BAR)

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

    def _head(self, attention: Attention, head: int) -> str:
        """`L3 H7`; where there are several stacks or kinds of attention, with a word for it."""
        several = len({each.group for each in self.attentions}) > 1
        kind = f"{attention.stack if attention.own else 'cross'} " if several else ""
        return f"{kind}L{attention.layer} H{head}"


# Arcs: the lines of one head, the strongest of all heads, or the rollout


SOURCES = ("head", "links", "rollout")
"""One head; of every pair of tokens the largest weight of all heads; what reached which token through the layers."""


def fitting(step: Attention) -> tuple[str, ...]:
    """Sources of arcs for an attention: a rollout goes from layer to layer of one sequence."""
    return SOURCES if step.own else SOURCES[:2]


@dataclass(frozen=True)
class WantedArcs:
    """The arcs that are asked for: one of `SOURCES`, the attention, and the head of it."""

    source: str
    step: Attention
    head: int

    @property
    def title(self) -> str:
        where = f"{self.step.group} · layer {self.step.layer}"
        return {
            "head": f"{where} · head {self.head}",
            "links": f"{self.step.group} · the strongest link of all heads and layers",
            "rollout": f"rollout · {self.step.group} · up to layer {self.step.layer}",
        }[self.source]

    def steps(self, session: Session) -> tuple[Attention, ...]:
        return (self.step,) if self.source == "head" else attentions(session.trace.program, self.step.group)

    def cost(self, session: Session) -> int:
        steps, queries, keys = self.steps(session), self.step.queries.size, self.step.keys.size
        products = 2 * queries * len(steps) if self.source == "rollout" else 0
        look = queries * keys * (sum(4 * step.heads for step in steps) + products)
        return session.trace.pending([step.name for step in steps]) + look

    def weigh(self, session: Session, report: Callable[[str], None]) -> Host:
        trace, steps = session.trace, self.steps(session)
        if self.source == "rollout":
            return Rollout(trace, steps, Reader(session.model.vocabulary)).after(self.step.layer, report)
        cells = range(self.step.queries.size), range(self.step.keys.size)
        if self.source == "head":
            weights: Host = trace.window(self.step.name, (range(self.head, self.head + 1), *cells))[0]
            return weights
        largest = np.zeros(tuple(map(len, cells)))
        for step in steps:
            report(step.name)
            for head in range(step.heads):
                of_head = trace.window(step.name, (range(head, head + 1), *cells))[0]
                largest = np.maximum(largest, np.nan_to_num(of_head))
        return largest


class ArcsScreen(Overview, tool="arcs"):
    """The lines of one head, of all, or of the rollout."""

    WIDGETS = (Arcs,)

    def __init__(self, port: Port, source: str = "head") -> None:
        """Begin at the attention that is shown, or the first, with a source where that fits it."""
        super().__init__(port)
        self.every = attentions(self.session.trace.program)
        step = attention_at(port.position.stop, self.every) or self.every[0]
        source = source if source in fitting(step) else "head"
        self.wanted = self.shown = WantedArcs(source, step, min(port.position.place.head, step.heads - 1))
        self.weights: Host | None = None

    @property
    def arcs(self) -> Arcs:
        return self.query_one(Arcs)

    def begin(self) -> None:
        self.arcs.at = self.port.position.place.row, 0
        self._want(self.wanted)

    def action_sentence(self) -> None:
        def follow(session: Session) -> None:
            self.every, self.weights = attentions(session.trace.program), None
            step = next((each for each in self.every if each.name == self.wanted.step.name), self.every[0])
            self._want(replace(self.wanted, step=step))

        edit_in(self, follow)

    def _want(self, wanted: WantedArcs) -> None:
        self.wanted, session = wanted, self.session
        take = partial(self._take, wanted)
        self.compute(lambda task: wanted.weigh(session, task.report), take, wanted.cost(session))

    def _take(self, shown: WantedArcs, weights: Host) -> None:
        self.shown, self.weights = shown, weights
        labels, step = self.session.labels, shown.step
        query, key = labels.of(step.queries), labels.of(step.keys)
        self.arcs.show(weights, lambda i: placed(query(i), i), lambda i: placed(key(i), i))
        show_as_new(self)

    def texts(self) -> Texts:
        limits = ", ".join(f"{limit:g}".removeprefix("0") for limit in self.arcs.limits)
        useful = {
            "head.next": self.wanted.source == "head" and self.wanted.step.heads > 1,
            "layer.next": len(self.every) > 1,
            "sentence.edit": bool(self.session.model.config.vocab_size),
        }
        detail = "", ""
        if self.weights is not None and len(self.weights):
            query, step, labels = min(self.arcs.at[0], len(self.weights) - 1), self.shown.step, self.session.labels
            row, key_of = np.nan_to_num(self.weights[query]), labels.of(step.keys)
            best = np.argsort(-row, kind="stable")[:4].tolist()
            keys = "   ".join(f"{placed(key_of(key), key)} {percent(float(row[key]))}" for key in best)
            detail = f"{placed(labels.of(step.queries)(query), query)} looks at", keys
        return Texts(
            f"Arcs · {self.shown.title}",
            f"the thicker, the larger the weight: from {limits}; weaker ones of other words faded",
            detail,
            useful=useful,
        )

    def action_head(self, by: int) -> None:
        wanted = self.wanted
        if wanted.source == "head" and wanted.step.heads > 1:
            self._want(replace(wanted, head=(wanted.head + by) % wanted.step.heads))

    def action_layer(self, by: int) -> None:
        """The next attention: of the next layer, the other stack, or across."""
        step = following(self.every, self.wanted.step, by)
        source = self.wanted.source if self.wanted.source in fitting(step) else "head"
        if step != self.wanted.step:
            self._want(WantedArcs(source, step, min(self.wanted.head, step.heads - 1)))

    def action_source(self) -> None:
        self._want(replace(self.wanted, source=following(fitting(self.wanted.step), self.wanted.source)))

    def chosen(self) -> None:
        query = self.arcs.at[0]
        if self.weights is not None and query < len(self.weights):
            key = int(np.nan_to_num(self.weights[query]).argmax())
            leave_to(self, self.shown.step.name, self.shown.head, query, key)
