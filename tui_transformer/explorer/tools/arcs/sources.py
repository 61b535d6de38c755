"""Sources of arcs: a head, the strongest of all heads, the rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.attentions import Attention, Reader, attentions
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.engine.backend import Host
from tui_transformer.session.session import Session

Report = Callable[[str], None]
SOURCES = ("head", "links", "rollout")
"""One head; of every pair of tokens the largest weight of all heads; what reached which token through the layers."""


@dataclass(frozen=True)
class Wanted:
    """The arcs that are asked for.

    Attributes:
        source: One of `SOURCES`.
        step: The attention.
        head: The head of it.
    """

    source: str
    step: Attention
    head: int

    @property
    def title(self) -> str:
        """The attention that is drawn, in words."""
        where = f"{self.step.group} · layer {self.step.layer}"
        return {
            "head": f"{where} · head {self.head}",
            "links": f"{self.step.group} · the strongest link of all heads and layers",
            "rollout": f"rollout · {self.step.group} · up to layer {self.step.layer}",
        }[self.source]

    def cost(self, session: Session) -> int:
        """About how many operations it takes."""
        steps = self._all(session) if self.source != "head" else (self.step,)
        size = self.step.queries.size * self.step.keys.size
        look = sum(4 * step.heads * size for step in steps)
        products = 2 * size * self.step.queries.size * len(steps) if self.source == "rollout" else 0
        return session.trace.pending([step.name for step in steps]) + look + products

    def weigh(self, session: Session, report: Report) -> Host:
        """The weights, queries × keys."""
        trace = session.trace
        if self.source == "rollout":
            reader = Reader(session.model.vocabulary)
            return Rollout(trace, self._all(session), reader).after(self.step.layer, report)
        rows, columns = range(self.step.queries.size), range(self.step.keys.size)
        if self.source == "head":
            weights: Host = trace.window(self.step.name, (range(self.head, self.head + 1), rows, columns))[0]
            return weights
        largest = np.zeros((len(rows), len(columns)))
        for step in self._all(session):
            report(step.name)
            for head in range(step.heads):
                of_head = trace.window(step.name, (range(head, head + 1), rows, columns))[0]
                largest = np.maximum(largest, np.nan_to_num(of_head))
        return largest

    def _all(self, session: Session) -> tuple[Attention, ...]:
        return attentions(session.trace.program, self.step.group)


def fitting(step: Attention) -> tuple[str, ...]:
    """Sources of arcs for an attention: a rollout goes from layer to layer of one sequence."""
    return SOURCES if step.own else SOURCES[:2]
