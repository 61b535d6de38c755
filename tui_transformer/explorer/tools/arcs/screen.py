"""Who looks at whom, as lines between words."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.actions.tools import ARCS
from tui_transformer.explorer.shell.overview import Overview, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.arcs.sources import Wanted, fitting
from tui_transformer.explorer.widgets.arcs import Arcs
from tui_transformer.session.answer_summary import percent
from tui_transformer.views.step_view import placed


def open_from(port: Port) -> None:
    """Of the head that is shown, or the first; says so where the model has no attention."""
    screen = screen_of(port, "head")
    if screen is None:
        port.say("this model has no attention")
    else:
        port.open(screen)


def screen_of(port: Port, source: str) -> ArcsScreen | None:
    """The screen, at the attention that is shown; None where there is none."""
    every = attentions(port.session.trace.program)
    stop = port.position.stop
    here = next((step for step in every if stop.startswith(step.name.rpartition(".")[0] + ".")), None)
    step = here or (every[0] if every else None)
    if step is None:
        return None
    return ArcsScreen(port, step, source if source in fitting(step) else "head")


class ArcsScreen(Overview):
    """The lines of one head, of all, or of the rollout."""

    ACTIONS = ARCS
    HELP_TOPIC, KIND = "arcs", "arcs"

    def __init__(self, port: Port, step: Attention, source: str) -> None:
        super().__init__(port)
        self.every = attentions(self.session.trace.program)
        self.wanted = Wanted(source, step, min(port.position.place.head, step.heads - 1))
        self.weights: Host | None = None

    def content(self) -> ComposeResult:
        """The lines."""
        yield Arcs(id="arcs")

    def on_mount(self) -> None:
        """Begin at the row that is shown."""
        self._arcs.focus()
        self._arcs.at = self.port.position.place.row, 0
        self._weigh()

    @property
    def _arcs(self) -> Arcs:
        return self.query_one(Arcs)

    def _weigh(self) -> None:
        wanted, session = self.wanted, self.session
        self.requests.ask(
            self.KIND, wanted.cost(session), lambda task: (wanted, wanted.weigh(session, task.report)), self._take
        )
        self.show_lines()

    def _take(self, weighed: tuple[Wanted, Host]) -> None:
        wanted, weights = weighed
        if wanted == self.wanted:
            self.weights = weights
            labels, step = self.session.labels, wanted.step
            query, key = labels.of(step.queries), labels.of(step.keys)
            self._arcs.show(weights, lambda i: placed(query(i), i), lambda i: placed(key(i), i))
            self.show_lines()

    # What is said

    def heading(self) -> str:
        """Of what."""
        return f"Arcs · {self.wanted.title}"

    def note(self) -> str:
        """Meaning of a line."""
        limits = ", ".join(f"{limit:g}".removeprefix("0") for limit in self._arcs.limits)
        return f"the thicker, the larger the weight: from {limits}"

    def detail(self) -> tuple[str, str]:
        """The strongest lines of the current query."""
        if self.weights is None or not len(self.weights):
            return "", ""
        query, step, labels = min(self._arcs.at[0], len(self.weights) - 1), self.wanted.step, self.session.labels
        row = np.nan_to_num(self.weights[query])
        best = np.argsort(-row, kind="stable")[:4].tolist()
        keys = "   ".join(f"{placed(labels.of(step.keys)(key), key)} {percent(float(row[key]))}" for key in best)
        return f"{placed(labels.of(step.queries)(query), query)} looks at", keys

    def left_out(self) -> Collection[str]:
        """The actions that there is nothing for."""
        step = self.wanted.step
        alone = self.wanted.source != "head" or step.heads < 2
        return {*(["head.next"] if alone else []), *(["layer.next"] if len(self.every) < 2 else [])}

    # What keys do

    def action_head(self, by: int) -> None:
        """The next head."""
        step = self.wanted.step
        if self.wanted.source == "head":
            self._want(Wanted("head", step, (self.wanted.head + by) % step.heads))

    def action_layer(self, by: int) -> None:
        """The next attention: of the next layer, the other stack, or across."""
        place = (self.every.index(self.wanted.step) + by) % len(self.every)
        step = self.every[place]
        source = self.wanted.source if self.wanted.source in fitting(step) else "head"
        self._want(Wanted(source, step, min(self.wanted.head, step.heads - 1)))

    def action_source(self) -> None:
        """One head, the strongest of all, the rollout."""
        sources = fitting(self.wanted.step)
        following = sources[(sources.index(self.wanted.source) + 1) % len(sources)]
        self._want(Wanted(following, self.wanted.step, self.wanted.head))

    def _want(self, wanted: Wanted) -> None:
        if wanted != self.wanted:
            self.wanted = wanted
            self._weigh()

    @on(Arcs.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(Arcs.Chosen)
    def _chosen(self, event: Arcs.Chosen) -> None:
        if self.weights is not None and event.index < len(self.weights):
            key = int(np.nan_to_num(self.weights[event.index]).argmax())
            leave_to(self, self.wanted.step.name, self.wanted.head, event.index, key)
