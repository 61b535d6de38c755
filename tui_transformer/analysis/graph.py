"""Attribution graphs: which tokens, features, heads and layers lead to an answer, directly and by way of each other.

After Ameisen et al. 2025, "Circuit Tracing: Revealing Computational Graphs in Language Models"
(transformer-circuits.pub/2025/attribution-graphs/methods.html). With attention patterns, the divisors of norms and
gates held fast (`analysis/graph_walk.py`) all between two nodes is linear. The edge from s to t is the direct linear
effect A_ts = w_s · J_ts · r_t: what s writes, carried to what t reads. The edges into a node and its constants (biases)
sum to its pre-activation, or to its logit less the mean of all logits.

Without dictionaries of features, heads and feed-forward layers at every token are the nodes, or neurons; of an
activation its share f(x) ÷ x is then held (Achtibat et al. 2024, "AttnLRP", arXiv 2402.05602, the identity rule). A
layer of experts is such a layer: what its router chose, and the shares that it gave, are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.graph_influence import cumulative_of, influence_of, scores_of, shares_of
from tui_transformer.analysis.graph_nodes import GraphNode, Logits, Rows, Site, Units
from tui_transformer.analysis.graph_result import Graph
from tui_transformer.analysis.graph_sites import Sites
from tui_transformer.analysis.graph_walk import Held
from tui_transformer.analysis.measurable import positions_in
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine import ops
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.parts import check_memory
from tui_transformer.engine.program import LABEL, PROBABILITIES, Step
from tui_transformer.engine.targets import FEATURES
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.sampling import softmax
from tui_transformer.machine import readable
from tui_transformer.model import Model
from tui_transformer.text.display import token_label

MOST_LOGITS = 10
"""As circuit-tracer: of the likeliest tokens up to a share no more than these."""

LEAST = 1e-100
"""As probability of a target that has none: influence is of targets, however unlikely."""

MOST = 2_000
"""Nodes whose inputs are followed."""

ROUND = 256
"""Nodes that are followed before the most influential of the others are looked for anew."""


def graph(
    trace: Trace,
    targets: int | Sequence[int] | None = None,
    *,
    position: int | None = None,
    mass: float | None = None,
    heads: bool | None = None,
    neurons: int = 0,
    most: int = MOST,
    report: Report = silent,
) -> Graph:
    """The attribution graph of logits: tokens, features, errors, heads and layers, and direct effects between them.

    The model's dictionaries of features (`Model.with_features`, of any number and kind) make the features and errors.
    Feed-forward layers that none of them replaces are nodes themselves, layers of experts among them.

    Args:
        trace: A single sentence.
        targets: IDs of tokens, or numbers of labels; by default the likeliest.
        position: Where logits are read, from 0 or from the end; by default at the last token that is no padding.
        mass: Where no targets are named, the likeliest that have this probability together (0.95 in circuit-tracer), at
            most 10.
        heads: Whether heads at every token are nodes; by default where the model has no features. Else the way goes
            through them.
        neurons: So many neurons of every feed-forward layer and token, those that write most, in place of the layer;
            the rest of it is an error. Of experts they are those of all that the token chose, and of the shared one,
            each weighted with the share of its expert.
        most: Nodes whose inputs are followed, the most influential first. Others are sources alone, and not errors.
        report: Told how far the work is; what it raises ends it.

    Raises:
        InputError: The model has no logits, there is no such target or position, or something on the way is neither
            linear nor held.
        UsageError: A trace of several sentences, or numbers that cannot be.
    """
    if trace.batch > 1:
        raise UsageError("a graph is of a single sentence: `sentence` of a trace gives one of a batch")
    if not 0.0 < (1.0 if mass is None else mass) <= 1.0 or neurons < 0 or most < 0:
        raise UsageError("mass is above 0 and at most 1, neurons and most are not below 0")
    step = trace.program.by_name.get(LOGITS)
    if step is None:
        raise InputError("the model has no logits: a graph leads back from these")
    if not isinstance(step.op, ops.Linear | ops.Unembed):
        raise InputError(f"{LOGITS} is “{step.op.formula}”, and no product with a matrix: a graph leads back from such")
    if len(step.shape) > 1:
        last = int(np.flatnonzero(real_tokens(trace, step.axes[0]))[-1])
        row = last if position is None else positions_in(step.shape[0], position).start
    elif position not in (None, 0):
        raise InputError("the logits are of the whole sentence: there is no position")
    else:
        row = 0
    chosen, shares = _targets(trace, step, row, targets, mass)
    features = any(name.endswith(FEATURES) for name in trace.program.by_name)
    trace.compute(before=lambda each: report(each.name))
    sites = Sites(Held(trace), step.inputs[0], heads=not features if heads is None else heads, neurons=neurons)
    logits = Logits("logit", "output", step.name, (), reads=False, row=row, numbers=chosen)
    return _Building(sites, logits, np.array(shares), most).graph(report)


def label_of(model: Model, graph: Graph, node: GraphNode) -> str:
    """The word of a node's token, or of a logit, as it stands beside a row; safe to show."""
    if node.kind == "logit":
        number, word = node.number or 0, graph.word(node)
        return model.target_label(number) if model.target_word(number) == word else token_label(word)
    ids = graph.ids.get(node.stack) or next(iter(graph.ids.values()), ())
    if node.token >= len(ids):
        return ""
    is_written = node.stack == "decoder" and len(graph.words) > 1
    return model.target_label(ids[node.token]) if is_written else model.word_label(ids[node.token])


def _targets(
    trace: Trace, step: Step, row: int, targets: int | Sequence[int] | None, mass: float | None
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The numbers of the logits, and their probabilities."""
    shape = step.shape
    region = (range(row, row + 1), range(shape[-1])) if len(shape) == 2 else (range(shape[0]),)
    name = PROBABILITIES if PROBABILITIES in trace.program.by_name else step.name
    line = np.asarray(trace.window(name, region), np.float64).reshape(-1)
    line = softmax(line) if name == step.name else line
    if targets is None:
        order = np.argsort(-line, kind="stable")[:MOST_LOGITS]
        count = 1 if mass is None else 1 + int(np.searchsorted(np.cumsum(line[order]), mass))
        targets = order[:count].tolist()
    chosen = (targets,) if isinstance(targets, int | np.integer) else tuple(targets)
    if not chosen or not all(isinstance(each, int | np.integer) for each in chosen):
        raise UsageError("targets are IDs of tokens, whole numbers")
    outside = next((each for each in chosen if not 0 <= each < shape[-1]), None)
    if outside is not None:
        what = "label" if step.axes[-1].name == LABEL else "token"
        raise InputError(f"there is no {what} {outside}: use 0 to {shape[-1] - 1}")
    unique = tuple(dict.fromkeys(int(each) for each in chosen))
    return unique, tuple(max(float(line[each]), LEAST) for each in unique)


class _Building:
    """A graph that is being made, row by row."""

    def __init__(self, sites: Sites, logits: Logits, probabilities: Host, most: int) -> None:
        self.held, self.logits, self.most = sites.held, logits, most
        places = self.held.program.places
        sources = sorted(sites.found.values(), key=lambda site: places[site.step])
        self.all: list[Rows | Units | Logits] = [*sources, logits]
        nodes = [site.nodes(self.held) for site in self.all]
        self.nodes, self.sizes = list(chain.from_iterable(nodes)), list(map(len, nodes))
        self.first = list(accumulate(self.sizes, initial=0))[:-1]
        self.of_node = np.repeat(np.arange(len(self.all)), self.sizes)
        self.taking: dict[str, list[tuple[int, Rows | Units]]] = {}
        for first, source in zip(self.first, sources, strict=False):
            for name in source.taken:
                self.taking.setdefault(name, []).append((first, source))
        reads = np.array([site.reads for site in self.all])[self.of_node]
        self.reading = reads & np.array([node.value != 0.0 for node in self.nodes])
        self.p = np.zeros(len(self.nodes))
        self.p[self.first[-1] :] = probabilities

    def graph(self, report: Report) -> Graph:
        """Follow nodes, the most influential first, until all that have influence are followed or there are `most`."""
        count, shape = len(self.nodes), self.held.program.shape
        rows = min(self.most, int(self.reading.sum())) + len(self.logits.numbers)
        written = sum(  # by features and neurons
            size * shape(name)[-1]
            for site, size in zip(self.all, self.sizes, strict=True)
            for name in site.taken
            if site.encoder
        )
        size = (3 * rows * count + written) * self.held.backend.dtype.itemsize
        what = f"a graph of {count:,} nodes, {rows:,} of them followed, takes"
        check_memory(size, what, "take a shorter text, or follow fewer (most)")
        report(f"graph · {count:,} nodes, up to {rows:,} followed, {readable(size)}")
        self.weights = np.zeros((rows, count), self.held.backend.dtype)
        self.constants, self.followed = np.zeros(rows), list[int]()
        self._follow(np.arange(self.first[-1], count), report)
        everything = int(self.reading.sum()) <= self.most
        while len(self.followed) < rows:
            shares = shares_of(self.weights[: len(self.followed)])
            influence = influence_of(shares, np.array(self.followed), self.p)
            waiting = (influence > 0.0) & self.reading
            waiting[self.followed] = False
            chosen = np.flatnonzero(waiting)
            if not len(chosen):
                break
            if not everything:
                order = np.argsort(-influence[chosen], kind="stable")
                chosen = np.sort(chosen[order][: min(ROUND, rows - len(self.followed))])
            self._follow(chosen, report)
        return self._made()

    def _follow(self, chosen: Host, report: Report) -> None:
        """The edges into some nodes, those of one site in batches."""
        for number in np.unique(self.of_node[chosen])[::-1]:
            own = chosen[self.of_node[chosen] == number]
            height = self._height(self.all[number])
            for at in range(0, len(own), height):
                self._rows(self.all[number], self.first[number], own[at : at + height])
                report(f"graph · {len(self.followed):,} of up to {len(self.weights):,} nodes followed")

    def _height(self, site: Site) -> int:
        """How many nodes of a site are followed at a time."""
        program = self.held.program
        steps = program.steps[: program.places[site.step] + 1]
        held = (step for step in steps if not step.windowed or self.held.edits(step.name))
        widest = max(int(np.prod(step.shape)) for step in held)
        own = (step for step in steps if step.name.startswith(f"{site.place}."))
        experts = (len(step.inputs) - 1 for step in own if isinstance(step.op, ops.WeightedExperts))
        return int(np.clip(self.held.trace.block // (widest * max(experts, default=1)), 1, ROUND))

    def _rows(self, site: Rows | Units | Logits, first: int, some: Host) -> None:
        rows = slice(len(self.followed), len(self.followed) + len(some))

        def take(name: str, gradient: Array) -> bool:
            for at, source in self.taking.get(name, ()):
                edges = self.held.backend.to_host(source.edges(self.held, name, gradient))
                self.weights[rows, at : at + edges.shape[1]] += edges
            return any(not source.encoder for _, source in self.taking.get(name, ()))

        with np.errstate(all="ignore"):
            constants = site.follow(self.held, some - first, take)
        self.constants[rows] = self.held.backend.to_host(constants)
        if not (np.isfinite(self.weights[rows]).all() and np.isfinite(self.constants[rows]).all()):
            raise InputError(f"the effects on {self.nodes[some[0]]} are not finite: there is no graph")
        self.followed += some.tolist()

    def _made(self) -> Graph:
        """Nodes without influence are left out, but for tokens that are no padding, and logits."""
        followed = np.array(self.followed)
        order = np.argsort(followed)
        weights, followed = self.weights[order], followed[order]
        shares = shares_of(weights)
        ids, words, answers = self._words()
        influence = influence_of(shares, followed, self.p)
        kinds = np.array([node.kind for node in self.nodes])
        scores = scores_of(shares, followed, influence, self.p, kinds == "embedding", kinds == "error")
        kept, sums = (influence > 0.0) | (self.p > 0.0), np.array([self.nodes[node].value for node in followed])
        for number, (first, site) in enumerate(zip(self.first, self.all, strict=True)):
            if site.kind == "embedding":
                real = real_tokens(self.held.trace, self.held.program.axes(site.step)[0])
                kept[first : first + len(real)] |= real
            if isinstance(site, Units):
                own = np.flatnonzero(self.of_node[followed] == number)
                sums[own] = site.sums(self.held, followed[own] - first)
        whole = Graph(
            tuple(self.nodes),
            weights,
            followed,
            sums=sums,
            constants=self.constants[order],
            totals=np.abs(weights, dtype=np.float64).sum(axis=1),
            probabilities=self.p,
            influence=influence,
            cumulative=cumulative_of(influence),
            replacement=scores[0],
            completeness=scores[1],
            ids=ids,
            words=words,
            answers=answers,
            title=self.held.trace.title,
        )
        return whole.reduced(kept, weights, (1.0, 1.0))

    def _words(self) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[str, ...]], dict[int, str]]:
        """IDs and words of every stack's sequence, and the words or labels of the logits."""
        trace, last = self.held.trace, self.held.program.step(self.logits.step).axes[-1]
        ids, words = dict[str, tuple[int, ...]](), dict[str, tuple[str, ...]]()
        written = "decoder.input.ids"
        for stack in dict.fromkeys(node.place for node in self.nodes if node.kind == "embedding"):
            name = written if stack == "decoder" and written in trace.givens else "input.ids"
            word = trace.target_word if name == written else trace.word
            ids[stack] = tuple(map(int, trace.givens[name][0]))
            words[stack] = tuple(map(word, ids[stack]))
        word = last.words.__getitem__ if last.words else trace.target_word
        return ids, words, {number: word(number) for number in self.logits.numbers}
