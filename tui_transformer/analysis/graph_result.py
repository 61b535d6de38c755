"""What an attribution graph is: nodes and edges with their influence, pruned and read aloud.

Its file is what circuit-tracer's and Neuronpedia's viewer read, after circuit-tracer's `frontend/graph_models.py` and
Neuronpedia's `apps/webapp/app/api/graph/graph-schema.json` (github.com/hijohnnylin/neuronpedia): `influence` is the
share of all influence up to a node, by which viewers prune; the number of a feature is its layer and itself in one
(Cantor's pairing), as both have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.analysis.graph_influence import kept_of
from tui_transformer.analysis.graph_nodes import GraphNode, Kind, paired
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, is_file, read_json, write_whole
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import SPACE, Style, piece_label, visible

NODES, EDGES = 0.8, 0.98
"""The shares of influence that pruning keeps, as circuit-tracer's."""

OF_NODES = ("kind", "layer", "token", "number", "value")


@dataclass(frozen=True)
class GraphEdge:
    """A direct effect; `share` of all edges into the target before pruning, `influence` that share of the target's."""

    source: GraphNode
    target: GraphNode
    weight: float
    share: float
    influence: float


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes and the direct effects between them, sources before their targets, logits last.

    Attributes:
        nodes: All of them.
        weights: Nodes that were followed × nodes: row i has the edges into node `followed[i]`.
        followed: Which nodes these are.
        sums: What the edges into each of them and its constants sum to.
        constants: What biases add to each, and edits on the way.
        totals: Σ |edge| into each of them, as in the graph before it was pruned.
        probabilities: Of every node that is a logit; 0 of the others.
        influence: Of every node, on the logits; as in the graph before it was pruned.
        cumulative: The share of all influence that the nodes up to this one have, the strongest first.
        replacement, completeness: The scores of the graph before it was pruned.
        ids, words: Of every stack's sequence.
        answers: The words or labels of logits, by their numbers.
        title: The model's name.
        thresholds: The shares of influence that pruning has kept, of nodes and of edges.
    """

    nodes: tuple[GraphNode, ...]
    weights: Host
    followed: Host
    sums: Host
    constants: Host
    totals: Host
    probabilities: Host
    influence: Host
    cumulative: Host
    replacement: float
    completeness: float
    ids: Mapping[str, tuple[int, ...]]
    words: Mapping[str, tuple[str, ...]]
    answers: Mapping[int, str]
    title: str = ""
    thresholds: tuple[float, float] = (1.0, 1.0)

    def __repr__(self) -> str:
        scores = f"replacement {self.replacement:.3f}, completeness {self.completeness:.3f}"
        return f"<Graph: {len(self.nodes):,} nodes, {int((self.weights != 0).sum()):,} edges; {scores}>"

    def prune(self, nodes: float = NODES, edges: float = EDGES) -> Graph:
        """The nodes that make up a share of all influence, and of the edges between them likewise.

        Tokens and logits always stay. What then leads nowhere, or is followed and comes from nowhere, is left out.

        Raises:
            UsageError: Shares are from 0 to 1.
        """
        for share in (nodes, edges):
            if not 0.0 <= share <= 1.0:
                raise UsageError(f"a share of influence is from 0 to 1, not {share}")
        always = np.array([node.kind in ("embedding", "logit") for node in self.nodes])
        of_graph = self.weights, self.followed, self.influence, self.probabilities
        kept, there = kept_of(*of_graph, always, nodes, edges)
        return self.reduced(kept, np.where(there, self.weights, 0.0), (nodes, edges))

    def reduced(self, kept: Host, weights: Host, thresholds: tuple[float, float]) -> Graph:
        """Some of the nodes, with the weights of edges between them."""
        rows, places = kept[self.followed], np.cumsum(kept) - 1
        return replace(
            self,
            nodes=tuple(node for node, stays in zip(self.nodes, kept, strict=True) if stays),
            weights=weights[rows][:, kept],
            followed=places[self.followed[rows]],
            sums=self.sums[rows],
            constants=self.constants[rows],
            totals=self.totals[rows],
            probabilities=self.probabilities[kept],
            influence=self.influence[kept],
            cumulative=self.cumulative[kept],
            thresholds=thresholds,
        )

    @cached_property
    def edges(self) -> tuple[GraphEdge, ...]:
        """Read aloud from the answer back: of the nodes that are known the most influential first, with its inputs.

        The strongest of these come first.
        """
        rows = {int(node): row for row, node in enumerate(self.followed)}
        size = self.influence + self.probabilities
        known, found = [int(i) for i in np.flatnonzero(self.probabilities)], list[GraphEdge]()
        seen = set(known)
        while known:
            target = max(known, key=lambda i: (size[i], i))
            known.remove(target)
            if target not in rows:
                continue
            weights, total = self.weights[rows[target]], self.totals[rows[target]]
            for source in np.argsort(-np.abs(weights), kind="stable")[: int((weights != 0.0).sum())].tolist():
                share = abs(float(weights[source])) / float(total)
                nodes = self.nodes[source], self.nodes[target]
                found.append(GraphEdge(*nodes, float(weights[source]), share, share * float(size[target])))
                if source not in seen:
                    seen.add(source)
                    known.append(source)
        return tuple(found)

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for every edge, for pandas and polars, in the order of `edges`."""
        return [
            {
                "target": str(each.target),
                "source": str(each.source),
                **{f"target_{name}": getattr(each.target, name) for name in OF_NODES},
                **{f"source_{name}": getattr(each.source, name) for name in OF_NODES},
                "weight": each.weight,
                "share": each.share,
                "influence": each.influence,
            }
            for each in self.edges
        ]

    def word(self, node: GraphNode) -> str:
        """The word of a node's token; of a logit, that which it is of."""
        if node.kind == "logit":
            return self.answers[node.number or 0]
        words = self.words.get(node.stack) or next(iter(self.words.values()), ())  # what is embedded is of the first
        return words[node.token] if node.token < len(words) else ""

    def called(self, node: GraphNode) -> str:
        """What a node is called, in short: `1 feature 94`, `2.0 head`, `0 expert 3 neuron 17`; more, where needed."""
        stack, _, rest = node.place.partition(".")
        stacks, places = self._places
        parts = [stack[:3]] if len(stacks) > 1 else []
        if node.kind in ("embedding", "logit"):
            return " ".join([*parts, "token"]) if node.kind == "embedding" else "logit"
        number = "" if node.number is None else str(node.number)
        layer = "" if node.layer is None else str(node.layer)
        parts.append(".".join(filter(None, (layer, number))) if node.kind == "head" else layer)
        several = len(places[node.kind, stack, node.layer]) > 1 or node.layer is None
        parts.append(node.within or (rest.removeprefix(f"{layer}.").replace("_attention", "") if several else ""))
        return " ".join(filter(None, (*parts, node.kind, number if node.kind != "head" else "")))

    @cached_property
    def _places(self) -> tuple[set[str], dict[tuple[str, str, int | None], set[str]]]:
        """The stacks that nodes are of, and the places of every kind in a layer."""
        stacks, places = set[str](), dict[tuple[str, str, int | None], set[str]]()
        for node in self.nodes:
            if node.kind != "logit":
                stacks.add(node.stack)
                places.setdefault((node.kind, node.stack, node.layer), set()).add(node.place)
        return stacks, places

    def to_json(self, slug: str = "graph", labels: Mapping[int, str] | None = None) -> dict[str, Any]:
        """The graph as circuit-tracer and Neuronpedia's viewer read it; labels of features by their numbers."""
        # Viewers show nodes up to a share of influence: the last that pruning needs goes beyond its threshold.
        pruned = [node.kind not in ("embedding", "logit") for node in self.nodes]
        shown_to = max(self.thresholds[0], self.cumulative[pruned].max(initial=0.0))
        file = _File(self, labels or {})
        ids = [file.name(node) for node in self.nodes]
        return {
            "metadata": {
                "slug": re.sub(r"[^\w.-]+", "-", slug, flags=re.ASCII),  # Neuronpedia takes no others
                "scan": self.title,
                "transcoder_list": [],
                "prompt_tokens": file.prompt,
                "prompt": "".join(file.prompt),
                "node_threshold": float(shown_to),
                "schema_version": 1,  # the numbers of features are paired; without it they are taken for older ones
                "info": {"generator": {"name": "tui-transformer"}},
                "pruning_settings": dict(zip(("node_threshold", "edge_threshold"), self.thresholds, strict=True)),
            },
            "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""},
            "nodes": [file.node(i, name) for i, name in enumerate(ids)],
            "links": [
                {"source": ids[source], "target": ids[target], "weight": float(row[source])}
                for target, row in zip(self.followed.tolist(), self.weights, strict=True)
                for source in row.nonzero()[0].tolist()
            ],
        }

    def save(self, path: str | Path, labels: Mapping[int, str] | None = None) -> None:
        """Write that to a file, whole or not at all; its name is the graph's.

        circuit-tracer's server offers the graphs that a `graph-metadata.json` in their folder lists; where there is one
        the graph is entered.

        Raises:
            InputError: It cannot be written, or the list is none; an older file is as it was.
        """
        file = expanded(path)
        data = self.to_json(file.stem, labels)
        _write(file, data)
        index = file.with_name(INDEX)
        if not is_file(index):
            return
        listed, metadata = read_json(index, MOST_OF_INDEX), data["metadata"]
        graphs = listed.get("graphs")
        if not isinstance(graphs, list) or not all(isinstance(each, dict) for each in graphs):
            raise InputError(f'{index}: no list of graphs, which is {{"graphs": [{{…}}]}}')
        others = [each for each in graphs if each.get("slug") != metadata["slug"]]  # an older one of its name
        _write(index, {**listed, "graphs": [*others, metadata]})


# The file for viewers

TYPES: Mapping[Kind, str] = {
    "embedding": "embedding",
    "feature": "cross layer transcoder",
    "error": "mlp reconstruction error",
    "logit": "logit",
    "neuron": "neuron",
    "head": "attention head",
    "feed_forward": "mlp",
}
"""Types by kind: the first four are circuit-tracer's; viewers draw others as they draw features."""

INDEX, MOST_OF_INDEX = "graph-metadata.json", 64 << 20
"""The list of graphs in a folder, and how many bytes it has at most."""

STYLES: Mapping[str, Style] = {"Ġ": "bytes", "▁": "marked spaces"}
"""How pieces mark the space before them; whole words do not."""

OTHERS: tuple[Kind, ...] = ("error", "feed_forward", "head", "neuron", "feature")
"""Kinds with numbers below 0; the error of a layer has −1, as in circuit-tracer."""


def _write(path: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    write_whole(path, f"{text}\n".encode("utf-8", errors="backslashreplace"))


class _File:
    """Names and nodes of a graph's file."""

    def __init__(self, graph: Graph, labels: Mapping[int, str]) -> None:
        self.graph, self.labels = graph, labels
        every = "".join(chain(*graph.words.values(), graph.answers.values()))
        self.style = next((style for mark, style in STYLES.items() if mark in every), None)
        # circuit-tracer's viewer lays out no single column, and leaves out what is at over two thirds of the tokens.
        self.prompt = [""] if sum(map(len, graph.words.values())) == 1 else list[str]()
        self.starts = dict[str, int]()
        for stack, words in graph.words.items():
            self.starts[stack] = len(self.prompt)
            self.prompt += _plain(words, self.style)
        self.rows, self.several = dict[str, int](), dict[tuple[Kind, int], list[str]]()
        for node in self.graph.nodes:
            if node.kind != "logit" and node.place not in self.rows:
                # What is of no layer stands with the last before it: behind all of them, or with the first.
                before = (row for place, row in self.rows.items() if place.partition(".")[0] == node.stack)
                self.rows[node.place] = max(before, default=0) if node.layer is None else max(node.layer, 0)
        self.rows["output"] = 2 + max(self.rows.values(), default=0)
        for node in self.graph.nodes:
            places = self.several.setdefault((node.kind, self.rows[node.place]), [])
            if node.place not in places:
                places.append(node.place)

    def at(self, node: GraphNode) -> int:
        """Its token among those of all sequences."""
        return self.starts.get(node.stack, list(self.starts.values())[-1] if self.starts else 0) + node.token

    def layer(self, node: GraphNode) -> str:
        """`E` of tokens, that behind the last of logits."""
        return "E" if node.kind == "embedding" else str(self.rows[node.place])

    def name(self, node: GraphNode) -> str:
        """`layer_number_token`; in between what tells nodes apart that a viewer may have none of."""
        at = self.at(node)
        if node.kind == "embedding":
            return f"E_{self.graph.ids[node.stack][node.token]}_{at}"
        which = self._which(node)
        between = f"{self.layer(node)}.{which}" if which else self.layer(node)
        if node.kind in ("logit", "feature"):
            return f"{between}_{node.number}_{at}"
        number = "" if node.number is None else f"_{node.number}"
        return f"{between}_{node.kind}{number}_{at}"

    def feature(self, node: GraphNode) -> int:
        """Its number, by which viewers tell nodes of a layer and token apart; below 0 of what is no feature of a file.

        So are features of a second dictionary in a layer, whose numbers are those of the first.
        """
        number, which = node.number or 0, self._which(node)
        if node.kind in ("embedding", "logit"):
            return self.at(node) if node.kind == "embedding" else number
        if node.kind == "feature" and not which:
            return paired(self.rows[node.place], number)
        return -1 - paired(OTHERS.index(node.kind) + len(OTHERS) * which, number)

    def _which(self, node: GraphNode) -> int:
        return self.several[node.kind, self.rows[node.place]].index(node.place)

    def node(self, i: int, name: str) -> dict[str, Any]:
        graph, node = self.graph, self.graph.nodes[i]
        place = f"L_{node.number}" if node.kind == "logit" else name.rpartition("_")[0]
        return {
            "node_id": name,
            "feature": self.feature(node),
            "layer": self.layer(node),
            "ctx_idx": self.at(node),
            "feature_type": TYPES[node.kind],
            "token_prob": float(graph.probabilities[i]),
            "is_target_logit": bool(0.0 < graph.probabilities[i] == graph.probabilities.max()),
            "run_idx": 0,
            "reverse_ctx_idx": 0,
            # of a feature the same at all tokens, as circuit-tracer's
            "jsNodeId": f"{place}-{0 if node.kind == 'feature' else self.at(node)}",
            "clerp": self._said(i),
            "influence": None if node.kind == "logit" else float(graph.cumulative[i]),
            "activation": node.value if node.kind in ("feature", "neuron", "head", "feed_forward") else None,
        }

    def _said(self, i: int) -> str:
        node = self.graph.nodes[i]
        if node.kind == "logit":
            (word,) = _plain([self.graph.word(node)], self.style)
            word = word.replace('"', "”").replace("(p=", "(p =")  # viewers look for these to find word and probability
            return f'Output "{word}" (p={self.graph.probabilities[i]:.3f})'
        if node.kind == "embedding":
            return f'Emb: "{self.prompt[self.at(node)]}"'
        own = self.labels.get(node.number or 0) if node.kind == "feature" else None
        return own or f"{node.place}{'' if node.number is None else f' {node.number}'} {node.kind}"


def _plain(words: Sequence[str], style: Style | None) -> Iterator[str]:
    """Words as they stand in a text, with the space before them, and what cannot be seen as something that can."""
    for i, word in enumerate(words):
        yield piece_label(word, style).replace(SPACE, " ") if style else f"{' ' * (i > 0)}{visible(word)}"
