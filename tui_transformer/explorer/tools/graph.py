"""An attribution graph, walked from the answer back: what leads to a node, the strongest first, and by way of what."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby

import numpy as np
from rich.text import Text

from tui_transformer.analysis.features import places_of_features
from tui_transformer.analysis.graph import graph, label_of
from tui_transformer.analysis.graph_nodes import GraphNode
from tui_transformer.analysis.graph_result import Graph, GraphEdge
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.effects import number
from tui_transformer.explorer.tools.features import labels_at
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.session.answer_summary import answer_position, measure_of
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import BarScale

NUMBER, SHARE, NAME, TOKEN, BAR = 11, 7, 22, 14, 10
"""Columns of a number, of a share, of a node, of its token, and of a bar at least."""

MOST_NAME = 26
"""Columns of a node where one is called by more, as a neuron of an expert."""

NEURONS = 10
"""Of every feed-forward layer and token, where not the layers are asked for."""


@dataclass(frozen=True, eq=False)
class Walked:
    """A pruned graph, and what it was before.

    Attributes:
        nodes, edges: How many there were.
        neurons: How many of every feed-forward layer and token were asked for, in place of the layer.
        has_layers: Whether there are such layers.
    """

    graph: Graph
    nodes: int
    edges: int
    neurons: int
    has_layers: bool
    model: Model

    def standing(self, way: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
        """What of a way in another graph of the same answer is one in this."""
        found: list[GraphNode] = []
        for wanted in map(str, way):
            among = [edge.source for edge in self.into(found[-1])] if found else self.answers
            node = next((node for node in among if str(node) == wanted), None)
            if node is None:
                break
            found.append(node)
        return tuple(found)

    @cached_property
    def _by_target(self) -> dict[GraphNode, list[GraphEdge]]:
        return {node: list(edges) for node, edges in groupby(self.graph.edges, lambda edge: edge.target)}

    def into(self, node: GraphNode) -> list[GraphEdge]:
        """The edges into a node, the strongest first."""
        return self._by_target.get(node, [])

    def called(self, node: GraphNode) -> str:
        """A node in short; a logit with its word and probability."""
        if node.kind != "logit":
            return self.graph.called(node)
        probability = float(self.graph.probabilities[self.graph.nodes.index(node)])
        return f"logit {label_of(self.model, self.graph, node)} {in_percent(probability)}"

    @cached_property
    def width(self) -> int:
        """Columns of what nodes are called."""
        longest = max((len(self.graph.called(node)) for node in self.graph.nodes if node.kind == "neuron"), default=0)
        return min(max(NAME, longest), MOST_NAME)

    def at(self, node: GraphNode) -> str:
        """The token where it is."""
        word = "" if node.kind == "logit" else label_of(self.model, self.graph, node)
        return f"{node.token} {word}".rstrip()

    @property
    def answers(self) -> list[GraphNode]:
        """The logits, the likeliest first."""
        order = np.argsort(-self.graph.probabilities, kind="stable")
        return [self.graph.nodes[i] for i in order if self.graph.nodes[i].kind == "logit"]


class GraphScreen(Overview, tool="graph"):
    """The inputs of one node of the graph; in the title the node, and the way from it to the answer."""

    HAS_COLUMNS = True

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.walked: Walked | None = None
        self.way: tuple[GraphNode, ...] = ()
        self.neurons = 0
        self.waiting = False
        self.requests.failed = lambda _: self._stay()
        at = places_of_features(self.session.trace.program)
        self.labels = labels_at(self.session, at[0]) if len(at) == 1 else {}

    def begin(self) -> None:
        session = self.session
        trace, measure, neurons = session.trace, measure_of(session), self.neurons
        self.waiting = True

        def work(task: Task) -> Walked:
            position = answer_position(session) if trace.program.logits else None
            targets = None if measure is None else measure.tokens or None
            whole = graph(trace, targets, position=position, neurons=neurons, report=task.report)
            has_layers = any(node.kind in ("feed_forward", "neuron") for node in whole.nodes)
            edges = int((whole.weights != 0.0).sum())
            return Walked(whole.prune(), len(whole.nodes), edges, neurons, has_layers, session.model)

        self.compute(work, self._take)

    def _take(self, walked: Walked) -> None:
        """Show it from the answer back, or where one was in a graph of the same answer, as far as that is in this."""
        index, answers, before = self.lines.cursor, walked.answers, self.walked
        is_same = before is not None and list(map(str, before.answers)) == list(map(str, answers))
        there = (*self.way, *([] if index is None else [self._sources[index]])) if is_same else ()
        stood = walked.standing(there)
        self.walked, self.waiting = walked, False
        way = stood[: len(self.way)] or ((answers[0],) if len(answers) == 1 else ())
        self._go(way, stood[-1] if len(stood) > len(way) else None)

    def _stay(self) -> None:
        """With the graph that is there, as no other is made."""
        self.waiting = False
        self.neurons = 0 if self.walked is None else self.walked.neurons

    def _go(self, way: tuple[GraphNode, ...], onto: GraphNode | None = None) -> None:
        """Show the inputs of the last node of a way; of none the answers."""
        self.way = way
        nodes = self._sources
        self.lines.show(len(nodes), self._line)
        self.lines.cursor = nodes.index(onto) if onto in nodes else 0 if nodes else None

    @property
    def _inputs(self) -> list[GraphEdge]:
        return self.walked.into(self.way[-1]) if self.walked is not None and self.way else []

    @property
    def _sources(self) -> list[GraphNode]:
        answers = [] if self.walked is None else self.walked.answers
        return [edge.source for edge in self._inputs] if self.way else answers

    # What is shown

    def _line(self, index: int) -> Text:
        walked = self.walked
        if walked is None:
            return Text()
        node, edges, width = self._sources[index], self._inputs, self.lines.size.width
        said = f"{fit(walked.called(node), walked.width)}  {fit(walked.at(node), TOKEN)}"
        if not edges:
            return Text(f" {said}", no_wrap=True)
        edge, most = edges[index], abs(edges[0].weight)
        text = Text(f" {number(edge.weight, '+'):>{NUMBER}} {in_percent(edge.share):>{SHARE}}  {said}", no_wrap=True)
        room = width - text.cell_len - 2
        label = self.labels.get(node.number or 0, "") if node.kind == "feature" else ""
        if room >= BAR:
            color = "" if self.app.no_color else "cyan" if edge.weight >= 0 else "magenta"
            text.append("  ").append(f"{BarScale(most).bar(edge.weight, BAR):<{BAR}}", color)
        if label and room > BAR + TOKEN:
            text.append(f"  {fit(visible(label), room - BAR - 2)}")
        return text

    def texts(self) -> Texts:
        walked, index = self.walked, self.lines.cursor
        if walked is None:
            return Texts("Attribution graph", "", ("tracing the answer back", ""))
        found, way = walked.graph, (f"{walked.called(node)} at {walked.at(node)}" for node in reversed(self.way))
        note = (
            f"{len(found.nodes):,} of {walked.nodes:,} nodes, {len(found.edges):,} of {walked.edges:,} edges · "
            f"replacement {found.replacement:.2f}, completeness {found.completeness:.2f}"
        )
        inputs = f" {'effect':>{NUMBER}} {'share':>{SHARE}}  {'from':<{walked.width}}  at token"
        columns = inputs if self.way else " answers"
        which = f", {walked.neurons} neurons a layer" if walked.neurons else ""
        heading = f"Attribution graph{which} · {' → '.join(way) or 'the answers'}"
        detail = ("nothing that stayed leads here", "")
        if index is not None:
            node, edges = self._sources[index], self._inputs
            count = len(walked.into(node))
            what = f"{walked.called(node)} at token {walked.at(node)} · {minus(f'{node.value:.4g}')}"
            if node.kind == "feature" and (label := self.labels.get(node.number or 0)):
                what += f" · {label}"
            more = self.port.hint(f"{count:,} inputs: {{cursor.right}}") if count else "nothing leads to it"
            if edges:
                effect = f"{in_percent(edges[index].share)} of all that leads to {walked.called(self.way[-1])}"
                more += f" · {effect}, {in_percent(edges[index].influence)} of the influence on the answer"
            detail = what, more
        return Texts(heading, note, detail, columns=columns, useful={"kind": walked.has_layers})

    # What keys do

    def action_into(self) -> None:
        index = self.lines.cursor
        if self.walked is None or index is None:
            return
        node = self._sources[index]
        if self.walked.into(node):
            self._go((*self.way, node))
            self.show_lines()

    def action_back(self) -> None:
        if len(self.way) > 1 or (self.way and self.walked is not None and len(self.walked.answers) > 1):
            self._go(self.way[:-1], self.way[-1])
            self.show_lines()

    def action_kind(self) -> None:
        if self.walked is None or self.walked.has_layers:
            self.neurons = 0 if self.neurons else NEURONS
            self.begin()

    def action_end(self) -> None:
        if self.waiting and self.walked is not None:
            self.requests.cancel(self.KIND)
            self._stay()
            self.show_lines()
        else:
            self.action_leave()

    def action_measure(self) -> None:
        choose(self.port, self.begin, self)

    def chosen(self) -> None:
        if self.walked is not None and self.lines.cursor is not None:
            node = self._sources[self.lines.cursor]
            head = (node.number or 0) if node.kind == "head" else 0
            is_cell = node.kind in ("feature", "neuron", "logit")
            leave_to(self, node.step, head, row=node.token, column=node.number if is_cell else None)
