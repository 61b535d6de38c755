"""What an attribution graph is: nodes and edges with their influence, pruned, scored and read aloud.

With N_ts = |A_ts| ÷ Σ_s |A_ts| of the edges A and the probabilities p of the logits, influence = p (N + N² + …). Graphs
are pruned and scored as circuit-tracer does (github.com/safety-research/circuit-tracer): of nodes, then of edges, those
stay that make up a share of all influence; replacement = the influence of tokens ÷ that of tokens and errors;
completeness = the mean share of a node's inputs that are no errors, weighted by influence (a node without inputs counts
as 1).

Its file is what circuit-tracer's and Neuronpedia's viewer read, after circuit-tracer's `frontend/graph_models.py` and
Neuronpedia's `apps/webapp/app/api/graph/graph-schema.json` (github.com/hijohnnylin/neuronpedia): `influence` is the
share of all influence up to a node, by which viewers prune; the number of a feature is its layer and itself in one
(Cantor's pairing), as both have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.analysis.graph_nodes import GraphNode, Kind, paired
from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.files import expanded, write_whole
from tui_transformer.text.display import SPACE, Style, piece_label

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
        kept = (self.influence >= _threshold(self.influence, nodes)) | always
        shares = shares_of(np.where(kept[self.followed][:, None] & kept, self.weights, 0.0))
        reached = influence_of(shares, self.followed, self.probabilities) + self.probabilities
        scores = shares * reached[self.followed][:, None]
        there = (scores >= _threshold(scores.reshape(-1), edges)) & (shares > 0.0)
        before = -1
        while before != kept.sum():
            before = int(kept.sum())
            there &= kept[self.followed][:, None] & kept
            into = np.ones(len(kept), np.bool_)
            into[self.followed] = there.any(axis=1)
            kept &= (there.any(axis=0) & into) | always
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
        words = self.words.get(node.stack, ())
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
        return _json(self, slug, labels or {})

    def save(self, path: str | Path, labels: Mapping[int, str] | None = None) -> None:
        """Write that to a file, whole or not at all; its name is the graph's.

        Raises:
            InputError: It cannot be written; an older file is as it was.
        """
        data = _json(self, expanded(path).stem, labels or {})
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
        write_whole(expanded(path), f"{text}\n".encode("utf-8", errors="backslashreplace"))


# Influence


def shares_of(weights: Host) -> Host:
    """The shares |A_ts| ÷ Σ_s |A_ts|; 0 where nothing comes in."""
    size = np.abs(weights, dtype=np.float64)
    total = size.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(size, total, out=np.zeros_like(size), where=total > 0.0))


def influence_of(shares: Host, followed: Host, start: Host) -> Host:
    """The sum start (N + N² + …), N with rows of the nodes that are followed; it ends, as sources come first."""
    total, now = np.zeros(len(start)), start
    for _ in range(len(followed) + 1):
        now = now[followed] @ shares
        total += now
        if not now.any():
            break
    return total


def _threshold(scores: Host, share: float) -> float:
    """The score of the last that is needed for a share of their sum, the largest first."""
    ordered = np.sort(scores)[::-1]
    total = ordered.sum()
    if not total:
        return 0.0
    place = int(np.searchsorted(np.cumsum(ordered) / total, share))
    return float(ordered[min(place, len(ordered) - 1)])


def cumulative_of(influence: Host) -> Host:
    """The share of all influence that the nodes up to each have, the strongest first."""
    order = np.argsort(-influence, kind="stable")
    found = np.zeros(len(influence))
    found[order] = np.cumsum(influence[order]) / (influence.sum() or 1.0)
    return found


def scores_of(
    shares: Host, followed: Host, influence: Host, start: Host, tokens: Host, errors: Host
) -> tuple[float, float]:
    """Replacement and completeness."""
    from_tokens, from_errors = influence[tokens].sum(), influence[errors].sum()
    explained = np.ones(len(influence))
    explained[followed] -= shares[:, errors].sum(axis=1)
    reached = influence + start
    replacement = from_tokens / (from_tokens + from_errors) if from_tokens + from_errors else 0.0
    return float(replacement), float((explained * reached).sum() / reached.sum()) if reached.any() else 0.0


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


def _json(graph: Graph, slug: str, labels: Mapping[int, str]) -> dict[str, Any]:
    """A graph as that object; labels of features by their numbers."""
    words = {stack: list(_plain(each, each)) for stack, each in graph.words.items()}
    starts, prompt = dict[str, int](), list[str]()
    for stack, each in words.items():
        starts[stack] = len(prompt)
        prompt += each
    file = _File(graph, labels, starts, tuple(prompt), 1 + max((node.layer or 0 for node in graph.nodes), default=0))
    ids = [file.name(node) for node in graph.nodes]
    return {
        "metadata": {
            "slug": slug,
            "scan": graph.title,
            "transcoder_list": [],
            "prompt_tokens": prompt,
            "prompt": "".join(prompt),
            "node_threshold": graph.thresholds[0],
            "info": {"generator": {"name": "tui-transformer"}},
            "pruning_settings": dict(zip(("node_threshold", "edge_threshold"), graph.thresholds, strict=True)),
        },
        "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""},
        "nodes": [file.node(i, name) for i, name in enumerate(ids)],
        "links": [
            {"source": ids[source], "target": ids[target], "weight": float(row[source])}
            for target, row in zip(graph.followed.tolist(), graph.weights, strict=True)
            for source in row.nonzero()[0].tolist()
        ],
    }


class _File:
    """Names and nodes of a graph's file."""

    def __init__(
        self, graph: Graph, labels: Mapping[int, str], starts: Mapping[str, int], prompt: tuple[str, ...], layers: int
    ) -> None:
        self.graph, self.labels, self.starts, self.prompt, self.layers = graph, labels, starts, prompt, layers
        self.several = dict[tuple[str, int | None], list[str]]()
        for node in graph.nodes:
            places = self.several.setdefault((node.kind, node.layer), [])
            if node.place not in places:
                places.append(node.place)

    def at(self, node: GraphNode) -> int:
        """Its token among those of all sequences."""
        return self.starts.get(node.stack, list(self.starts.values())[-1] if self.starts else 0) + node.token

    def layer(self, node: GraphNode) -> str:
        """`E` of tokens, that behind the last of logits."""
        if node.kind == "embedding":
            return "E"
        return str(self.layers + 1 if node.kind == "logit" else max(node.layer or 0, 0))

    def name(self, node: GraphNode) -> str:
        """`layer_number_token`; in between what tells nodes apart that a viewer may have none of."""
        at = self.at(node)
        if node.kind == "embedding":
            return f"E_{self.graph.ids[node.stack][node.token]}_{at}"
        if node.kind in ("logit", "feature"):
            which = self._which(node)
            return f"{self.layer(node)}{which}_{node.number}_{at}"
        number = "" if node.number is None else f"_{node.number}"
        return f"{self.layer(node)}{self._which(node)}_{node.kind}{number}_{at}"

    def feature(self, node: GraphNode) -> int:
        """Its number, by which viewers tell nodes of a layer apart: below 0 of what is no feature of a file."""
        number, layer = node.number or 0, max(node.layer or 0, 0)
        if node.kind == "feature":
            return paired(layer, number)
        number = number if node.expert is None else paired(node.expert + 1, number)
        others = {"embedding": self.at(node), "logit": number, "error": -1, "feed_forward": -2, "head": -3 - 2 * number}
        return others.get(node.kind, -4 - 2 * number)

    def _which(self, node: GraphNode) -> str:
        """Which of several places of this kind in a layer; "" of the first."""
        place = self.several[node.kind, node.layer].index(node.place)
        return f".{place}" if place else ""

    def node(self, i: int, name: str) -> dict[str, Any]:
        """One of `nodes`."""
        graph, node = self.graph, self.graph.nodes[i]
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
            "jsNodeId": f"{name.rpartition('_')[0]}-0",
            "clerp": self._said(i),
            "influence": None if node.kind == "logit" else float(graph.cumulative[i]),
            "activation": node.value if node.kind in ("feature", "neuron", "head", "feed_forward") else None,
        }

    def _said(self, i: int) -> str:
        """What a viewer calls a node."""
        node = self.graph.nodes[i]
        if node.kind == "logit":
            (word,) = _plain([self.graph.word(node)], next(iter([*self.graph.words.values()][::-1]), ()))
            return f'Output "{word}" (p={self.graph.probabilities[i]:.3f})'
        if node.kind == "embedding":
            return f'Emb: "{self.prompt[self.at(node)]}"'
        if node.kind == "feature":
            return self.labels.get(node.number or 0, "")
        return f"{node.place}{'' if node.number is None else f' {node.number}'} {node.kind}"


def _plain(words: Sequence[str], among: Sequence[str]) -> Iterator[str]:
    """Words as they stand in a text, with the space before them: pieces by the mark that the words have for it."""
    styles: Mapping[str, Style] = {"Ġ": "bytes", "▁": "marked spaces"}
    style = next((style for mark, style in styles.items() if any(mark in word for word in among)), None)
    for i, word in enumerate(words):
        yield piece_label(word, style).replace(SPACE, " ") if style else f"{' ' * (i > 0)}{word}"
