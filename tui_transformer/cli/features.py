"""Features of dictionaries: `features`, at every token; `graph`, those that lead to an answer, from it back."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tui_transformer.cli.options import Edited, Into, Position, TableFormat, parse_ids
from tui_transformer.cli.output import Row, Table, Value, emit, note
from tui_transformer.cli.session import open_session
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.cli.typer_layer import Option, argument, flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import fit, visible

if TYPE_CHECKING:
    from tui_transformer.analysis.features import ActiveFeatures
    from tui_transformer.analysis.graph_nodes import GraphNode
    from tui_transformer.analysis.graph_result import Graph as AttributionGraph
    from tui_transformer.engine.backend import Host
    from tui_transformer.model import Model
    from tui_transformer.session.session import Session


Labels = Annotated[
    Path | None,
    Option("What features are called: CSV or Neuronpedia's JSON, a number and a label each.", metavar="FILE"),
]
Ends = tuple[str | None, str | None]
"""The words that are raised, and those that are lowered."""


@dataclass(frozen=True, kw_only=True)
class Features(Edited):
    """List the strongest features of every token: how strong each is, what it leaves, and which words it raises.

    FILE is a sparse autoencoder or a transcoder of SAELens, Gemma Scope, sparsify or circuit-tracer; by default the
    dictionary that comes with the model, as one does with story, and its labels. The columns:
    active, how many features are not 0; error, what all of them leave of x, or of what a transcoder writes,
    ‖x − reconstruction‖ ÷ ‖x‖; left, the same with this one and those above it alone; raises and lowers, what it adds
    to the logits of its token directly, norms frozen.

    Example: tui-transformer features --model story --text "Once there was a girl"
    """

    file: Path | None = argument(
        "A dictionary of features: its folder or its file of weights.", default=None, metavar="FILE", show_default=False
    )
    at: str | None = option(
        None,
        "The step that it reads; by default that of the hook that the file names. {} is the number of the layer, where "
        "it reads several.",
        metavar="STEP",
    )
    into: Into = None
    replace: bool = flag("The reconstruction goes on in the model's place.")
    token: int | None = option(None, "Only this token, from 0.", min=0)
    feature: str | None = option(
        None, "These features at every token, active or not. May be given again.", several=True, metavar="12,340"
    )
    top: int = option(5, "How many features of each token.", min=1)
    words: int = option(3, "How many words of each feature, raised and lowered.", min=0)
    labels: Labels = None
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.features import places_of_features
        from tui_transformer.features.dictionary import own_dictionary
        from tui_transformer.features.labels import own_labels, read_labels

        labels = {} if self.labels is None else read_labels(self.labels)
        session = open_session(self)
        own = own_dictionary(session.model.folder) if self.file is None else None
        labels = labels or own_labels(own)
        with cleared():
            places = places_of_features(session.trace.program)
            rows = [row for at in places for row in self._rows(session, at, labels, several=len(places) > 1)]
        columns = ["position", "token", "active", "error", "rank", "feature", "value", "left"]
        columns[:0] = ["at"] if len(places) > 1 else []
        columns += ["label"] if labels else []
        columns += ["raises", "lowers"] if self.words else []
        where = places[0] if len(places) == 1 else f"{len(places)} steps"
        said = f"{visible(str(self.file or own))} at {where}" + " · the reconstruction goes on" * self.replace
        Table(tuple(columns), rows, 4, said).emit(self.format)

    def featured(self, model: Model) -> Model:
        from tui_transformer.features.dictionary import Features as Dictionary

        dictionary = Dictionary.of(model) if self.file is None else Dictionary.load(self.file)
        return model.with_features(dictionary, self.at, into=self.into, replace=self.replace)

    def _rows(self, session: Session, at: str, labels: Mapping[int, str], *, several: bool) -> Iterator[Row]:
        """A line a feature of every token."""
        from tui_transformer.analysis.attentions import prepared
        from tui_transformer.analysis.features import active_features

        trace, numbers = session.trace, () if self.feature is None else parse_ids(self.feature, "--feature")
        prepared(trace, f"{at}.error", show)
        tokens = None if self.token is None else range(self.token, self.token + 1)
        found = []
        for each in active_features(trace, at, self.top, features=numbers, tokens=tokens):
            show(f"features · token {each.token + 1:,}")
            found.append(each)
        label = session.labels.of(trace.program.axes(f"{at}.features")[0])
        spelled = self._words(session, found)
        for each, words in zip(found, spelled, strict=True):
            front = (*((at,) if several else ()), each.token, label(each.token), each.active, each.error)
            for place, feature in enumerate(each.features):
                cells: list[Value] = [*front, feature.rank or None, feature.feature, feature.value, feature.left]
                cells += [labels.get(feature.feature)] if labels else []
                yield *cells, *(words[place] if self.words else ())
            if not each.features:
                yield *front, *(None,) * (4 + bool(labels) + 2 * bool(self.words))

    def _words(self, session: Session, found: Sequence[ActiveFeatures]) -> list[list[Ends]]:
        """The words that every feature raises and lowers; none where what it writes goes to no logits."""
        from tui_transformer.analysis.features import feature_words

        none: list[list[Ends]] = [[(None, None)] * len(each.features) for each in found]
        if not self.words or not any(each.features for each in found):
            return none
        try:
            logits = list(feature_words(session.trace, found, report=show))
        except InputError as error:
            note(f"no words: {error}")
            return none
        return [
            [
                self._ends(session, row) if one.value else (None, None)
                for one, row in zip(each.features, rows, strict=True)
            ]
            for each, rows in zip(found, logits, strict=True)
        ]

    def _ends(self, session: Session, logits: Host) -> Ends:
        order = logits.argsort(kind="stable").tolist()
        ends = order[::-1][: self.words], order[: self.words]
        raised, lowered = (
            ", ".join(f"{session.labels.word(word)} {logits[word]:+.2f}" for word in words) for words in ends
        )
        return raised, lowered


# Graphs of an answer

READ, WIDTH = 24, 79
"""Lines of a text where --top names no other number, and how wide they are."""

COLUMNS = ("target", "target_word", "source", "source_word", "weight", "share", "influence", "label")


@dataclass(frozen=True, kw_only=True)
class Graph(Edited):
    """Say which tokens, features and layers lead to an answer, and by way of which others: its attribution graph.

    Attention patterns, norms' divisors and gates are held as they are; then the edges into a node and its biases sum to
    what it is (Ameisen et al. 2025). Nodes are tokens, active features of the dictionaries, what these leave (error),
    heads and feed-forward layers that no transcoder replaces. It is read from the answer back: of the nodes named so
    far the most influential first, with its strongest inputs. weight: the direct effect; share: of all inputs.

    Example: tui-transformer graph --model story --text "Once there was a girl"
    """

    features: list[Path] | None = option(
        None,
        "A dictionary of features; by default that which comes with the model, as one does with story. May be given "
        "again.",
        metavar="FILE",
    )
    at: list[str] | None = option(
        None,
        "The steps that the dictionaries read, in their order; by default those of the hooks that the files name. {} "
        "is the number of the layer, where one reads several. May be given again.",
        metavar="STEP",
    )
    no_features: bool = flag("Without the dictionary that comes with the model: heads and layers alone.")
    each_head: bool | None = option(None, "Heads at every token are nodes; by default where there are no features.")
    neurons: int = option(0, "So many neurons of every layer and token, the strongest, in place of the layer.", min=0)
    target: str | None = option(
        None, "The words or IDs of the answer, by default the likeliest. May be given again.", several=True,
        metavar="WORD[,WORD]",
    )  # fmt: skip
    mass: float | None = option(None, "The likeliest words up to this probability, as 0.95.", min=0.01, max=1.0)
    position: Position = None
    threshold: float = option(0.8, "The share of all influence that the nodes have which stay.", min=0.0, max=1.0)
    edge_threshold: float = option(0.98, "The same of edges.", min=0.0, max=1.0)
    most: int = option(2_000, "So many nodes are followed, the most influential first.", min=1)
    top: int | None = option(None, f"So many lines; by default {READ}, in JSON and CSV all.", min=1)
    inputs: int = option(5, "Of text, so many of the strongest inputs of each node.", min=1)
    labels: Labels = None
    json: Path | None = option(
        None, "Write the graph as circuit-tracer and Neuronpedia's viewer read it.", metavar="FILE"
    )
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.features import places_of_features
        from tui_transformer.analysis.graph import graph
        from tui_transformer.cli.metrics import token_ids

        if self.no_features and self.features:
            raise UsageError("--no-features is instead of --features: leave one of them out")
        if self.target is not None and self.mass is not None:
            raise UsageError("--mass is of the likeliest words: leave --target out")
        session = open_session(self)
        if self.labels is not None and len(places_of_features(session.trace.program)) != 1:
            raise UsageError("--labels are of the features of one dictionary at one step: name it alone")
        labels = self._labels(session.model)
        targets = token_ids(session.model, self.target) or None
        with cleared():
            whole = graph(
                session.trace,
                targets,
                position=self._position(session),
                mass=self.mass,
                heads=self.each_head,
                neurons=self.neurons,
                most=self.most,
                report=show,
            )
        pruned = whole.prune(self.threshold, self.edge_threshold)
        if self.json is not None:
            pruned.save(self.json, labels)
            note(f"wrote {self.json}")
        if self.format == "text":
            self._read_aloud(session, whole, pruned, labels)
            return
        rows = list[Row]()
        for edge in pruned.edges[: self.top]:
            ends = (part for node in (edge.target, edge.source) for part in (str(node), _word(session, pruned, node)))
            rows.append((*ends, edge.weight, edge.share, edge.influence, _label(labels, edge.source)))
        Table(COLUMNS, rows).emit(self.format)

    def _position(self, session: Session) -> int | None:
        """The position of the answer; None where the logits are of labels."""
        from tui_transformer.cli.metrics import positions_of

        if not session.trace.program.logits and self.position is None:
            return None
        positions = positions_of(session, self.position)
        if len(positions) > 1:
            raise UsageError("a graph is of one position: name it with --position")
        return positions[0]

    def featured(self, model: Model) -> Model:
        from tui_transformer.features.dictionary import Features, own_dictionary

        if self.features is None:
            if self.at is not None:
                raise UsageError("--at is where a dictionary reads: name one with --features")
            there = not self.no_features and own_dictionary(model.folder) is not None
            return model.with_features(Features.of(model)) if there else model
        places: list[str | None] = [*(self.at or [])]
        if len(places) > len(self.features):
            raise UsageError(f"--at is given {len(places)} times, and --features {len(self.features)}")
        places += [None] * (len(self.features) - len(places))
        for file, at in zip(self.features, places, strict=True):
            model = model.with_features(Features.load(file), at)
        return model

    def _labels(self, model: Model) -> Mapping[int, str]:
        from tui_transformer.features.dictionary import own_dictionary
        from tui_transformer.features.labels import own_labels, read_labels

        if self.labels is not None:
            return read_labels(self.labels)
        return {} if self.features or self.no_features else own_labels(own_dictionary(model.folder))

    def _read_aloud(
        self, session: Session, whole: AttributionGraph, graph: AttributionGraph, labels: Mapping[int, str]
    ) -> None:
        """A line an edge, under the node that it leads to, and what the graph is."""
        rows = list[Row]()
        for target, edges in groupby(graph.edges, lambda edge: edge.target):
            into = _said(session, graph, target)
            for edge in islice(edges, self.inputs):
                source = _said(session, graph, edge.source)
                rows.append((*into, *source, edge.weight, edge.share, _label(labels, edge.source)))
                into = ("", "")
        del rows[self.top or READ :]
        columns = ("into", "at", "from", "at", "weight", "share", "label")
        lines = Table(columns if labels else columns[:-1], [row if labels else row[:-1] for row in rows]).pieces("text")
        emit(f"{fit(line.rstrip(), WIDTH).rstrip()}\n" for line in "".join(lines).splitlines())
        count = int((whole.weights != 0).sum())
        followed = ("feature", "neuron", "head", "feed_forward", "logit")
        skipped = sum(node.kind in followed for node in whole.nodes) - len(whole.followed)
        about = (
            f"{len(graph.nodes):,} of {len(whole.nodes):,} nodes stay for {self.threshold:.0%} of the influence",
            f"{len(graph.edges):,} of {count:,} edges for {self.edge_threshold:.0%} of that between them"
            + (f", {len(rows):,} are here (--inputs, --top)" if len(rows) < len(graph.edges) else ""),
            f"replacement {graph.replacement:.3f}",
            f"completeness {graph.completeness:.3f}",
            *([f"{skipped:,} nodes were not followed (--most)"] if skipped > 0 else []),
        )
        emit(["\n", *(f"{visible(line)}\n" for line in textwrap.wrap(" · ".join(about), WIDTH))])


def _said(session: Session, graph: AttributionGraph, node: GraphNode) -> tuple[str, str]:
    """A node in short, and the token where it is; of a logit its word, and its probability where the model has them."""
    if node.kind == "logit":
        from tui_transformer.engine.program import PROBABILITIES

        program, said = session.trace.program, f"logit {fit(_word(session, graph, node), 10).rstrip()}"
        if program.logits or PROBABILITIES in program.by_name:
            said += f" {graph.probabilities[graph.nodes.index(node)]:.2f}"
        return said, str(node.token)
    return graph.called(node), f"{node.token} {fit(_word(session, graph, node), 8).rstrip()}"


def _word(session: Session, graph: AttributionGraph, node: GraphNode) -> str:
    from tui_transformer.analysis.graph import label_of

    return label_of(session.model, graph, node)


def _label(labels: Mapping[int, str], node: GraphNode) -> str | None:
    return labels.get(node.number or 0, "") if node.kind == "feature" else ""
