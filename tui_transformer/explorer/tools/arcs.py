"""Who looks at whom, as lines between words: of a head, of the strongest of all heads, or of the rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.analysis.attentions import Attention, Reader, attentions
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.widgets.arcs import Arcs
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import placed

SOURCES = ("head", "links", "rollout")
"""One head; of every pair of tokens the largest weight of all heads; what reached which token through the layers."""


def open_from(port: Port) -> None:
    """Of the head that is shown, or the first."""
    port.open(arcs_of(port, "head"))


def arcs_of(port: Port, source: str) -> ArcsScreen:
    """The screen, at the attention that is shown, or the first."""
    every = attentions(port.session.trace.program)
    stop = port.position.stop
    step = next((step for step in every if stop.startswith(step.name.rpartition(".")[0] + ".")), every[0])
    return ArcsScreen(port, step, source if source in fitting(step) else "head")


def fitting(step: Attention) -> tuple[str, ...]:
    """Sources of arcs for an attention: a rollout goes from layer to layer of one sequence."""
    return SOURCES if step.own else SOURCES[:2]


@dataclass(frozen=True)
class Wanted:
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
        steps = self.steps(session)
        size = self.step.queries.size * self.step.keys.size
        look = sum(4 * step.heads * size for step in steps)
        products = 2 * size * self.step.queries.size * len(steps) if self.source == "rollout" else 0
        return session.trace.pending([step.name for step in steps]) + look + products

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

    def __init__(self, port: Port, step: Attention, source: str) -> None:
        super().__init__(port)
        self.every = attentions(self.session.trace.program)
        self.wanted = Wanted(source, step, min(port.position.place.head, step.heads - 1))
        self.weights: Host | None = None

    @property
    def arcs(self) -> Arcs:
        return self.query_one(Arcs)

    def begin(self) -> None:
        """At the row that is shown."""
        self.arcs.at = self.port.position.place.row, 0
        self._want(self.wanted)

    def _want(self, wanted: Wanted) -> None:
        self.wanted, session = wanted, self.session
        self.compute(wanted.cost(session), lambda task: wanted.weigh(session, task.report), self._take)

    def _take(self, weights: Host) -> None:
        self.weights = weights
        labels, step = self.session.labels, self.wanted.step
        query, key = labels.of(step.queries), labels.of(step.keys)
        self.arcs.show(weights, lambda i: placed(query(i), i), lambda i: placed(key(i), i))

    def texts(self) -> Texts:
        limits = ", ".join(f"{limit:g}".removeprefix("0") for limit in self.arcs.limits)
        alone = self.wanted.source != "head" or self.wanted.step.heads < 2
        return Texts(
            f"Arcs · {self.wanted.title}",
            f"the thicker, the larger the weight: from {limits}",
            self._strongest(),
            hidden={*(["head.next"] if alone else []), *(["layer.next"] if len(self.every) < 2 else [])},
        )

    def _strongest(self) -> tuple[str, str]:
        if self.weights is None or not len(self.weights):
            return "", ""
        query, step, labels = min(self.arcs.at[0], len(self.weights) - 1), self.wanted.step, self.session.labels
        row = np.nan_to_num(self.weights[query])
        best = np.argsort(-row, kind="stable")[:4].tolist()
        keys = "   ".join(f"{placed(labels.of(step.keys)(key), key)} {percent(float(row[key]))}" for key in best)
        return f"{placed(labels.of(step.queries)(query), query)} looks at", keys

    def action_head(self, by: int) -> None:
        wanted = self.wanted
        if wanted.source == "head" and wanted.step.heads > 1:
            self._want(replace(wanted, head=(wanted.head + by) % wanted.step.heads))

    def action_layer(self, by: int) -> None:
        """The next attention: of the next layer, the other stack, or across."""
        step = following(self.every, self.wanted.step, by)
        source = self.wanted.source if self.wanted.source in fitting(step) else "head"
        if step != self.wanted.step:
            self._want(Wanted(source, step, min(self.wanted.head, step.heads - 1)))

    def action_source(self) -> None:
        self._want(replace(self.wanted, source=following(fitting(self.wanted.step), self.wanted.source)))

    def chosen(self) -> None:
        """To the strongest cell of the query."""
        query = self.arcs.at[0]
        if self.weights is not None and query < len(self.weights):
            key = int(np.nan_to_num(self.weights[query]).argmax())
            leave_to(self, self.wanted.step.name, self.wanted.head, query, key)
