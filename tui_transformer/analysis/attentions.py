"""Attentions: the attention steps of a program, by stack, kind and layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tui_transformer.analysis.tokens import NOTHING, Hidden, Tokens, tokens_of
from tui_transformer.engine.axis import Axis
from tui_transformer.engine.backend import Host, numpy_backend
from tui_transformer.engine.ops import Mask, Softmax, SoftmaxWithSink
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass
from tui_transformer.text.vocabulary import Vocabulary

SELF = "self_attention"


@dataclass(frozen=True)
class Attention:
    """One attention step, by the name of its weights (heads × queries × keys).

    `stack`: `encoder` or `decoder`; `kind`: `self_attention` or `cross_attention`; layers count from 0.
    """

    name: str
    stack: str
    kind: str
    layer: int
    heads: int
    queries: Axis
    keys: Axis

    @classmethod
    def of(cls, step: Step) -> Attention:
        """From its step of weights."""
        stack, layer, kind = step.sublayer.split(".")[:3]
        return cls(step.name, stack, kind, int(layer), step.axes[0].size, *step.axes[1:])

    @property
    def sublayer(self) -> str:
        """`decoder.3.self_attention`."""
        return self.name.rpartition(".")[0]

    @property
    def group(self) -> str:
        """Name that the layers of one stack share: `encoder self-attention`."""
        return f"{self.stack} {self.kind.replace('_', '-')}"

    @property
    def own(self) -> bool:
        """True if queries and keys are the same sequence; the last keys are then the queries' own tokens."""
        return self.kind == SELF


def is_attention(step: Step | None) -> bool:
    """True if a step holds attention weights; with a sink, its rows sum to less than 1."""
    return step is not None and step.square and isinstance(step.op, Softmax | SoftmaxWithSink)


def attentions(program: Program, group: str | None = None) -> tuple[Attention, ...]:
    """The attention steps in order of computation; with a group, only those of that stack and kind."""
    steps = (Attention.of(step) for step in program.steps if is_attention(step))
    return tuple(each for each in steps if group in (None, each.group))


def groups(program: Program) -> tuple[str, ...]:
    """The stacks and kinds of attention that there are, in order."""
    return tuple(dict.fromkeys(each.group for each in attentions(program)))


def chosen_group(program: Program, wanted: str | None) -> str:
    """The group whose name holds all the words of `wanted`, by default the first; InputError where there is none."""
    known = groups(program)
    if not known:
        raise InputError("this model has no attention")
    words = (wanted or "").lower().replace("_", "-").replace("-", " ").split()
    fitting = [group for group in known if set(words) <= set(group.replace("-", " ").split())]
    if not fitting:
        raise InputError(f"there is no {wanted} here: choose {' or '.join(known)}")
    return fitting[0]


def in_layer(steps: Sequence[Attention], layer: int | None) -> tuple[Attention, ...]:
    """The steps of one layer, or all where none is named; InputError where there is no such layer."""
    chosen = tuple(each for each in steps if layer in (None, each.layer))
    if not chosen:
        raise InputError(f"there is no layer {layer}: layers are 0 to {steps[-1].layer}")
    return chosen


BLOCK = 1 << 22
"""Weights that are read at a time."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Some queries of one attention step, without the keys that are hidden.

    `weights`: heads × queries × keys; hidden keys have 0, and the rest of the row sums to 1. `queries`: the index of
    each. `own`: the key that is the query's own token, −1 in cross attention. `visible`: queries × keys, true where a
    query may look: not masked, no padding, not hidden. `tokens`: those of the keys.
    """

    weights: Host
    queries: Host
    own: Host
    visible: Host
    tokens: Tokens

    @property
    def seen(self) -> Host:
        """How many keys each query may look at."""
        return np.asarray(self.visible.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the weights of attention steps of a sentence of the batch, without the tokens that are hidden.

    The vocabulary says which tokens are special; None where there is none.
    """

    vocabulary: Vocabulary | None = None
    hidden: Hidden = NOTHING
    item: int = 0

    def counted(self, trace: Trace, attention: Attention) -> Host:
        """True for the queries that count: real tokens that are not hidden."""
        tokens = tokens_of(trace, self.vocabulary, attention.queries, self.item)
        return np.asarray(tokens.real & ~tokens.hidden(self.hidden))

    def rows(
        self, trace: Trace, attention: Attention, runs: Iterable[range], heads: range | None = None
    ) -> Iterator[Rows]:
        """The queries of the runs (neighbours, in rising order), of some heads or all; the trace is best `prepared`."""
        heads = range(attention.heads) if heads is None else heads
        tokens = tokens_of(trace, self.vocabulary, attention.keys, self.item)
        hidden = tokens.hidden(self.hidden)
        height = max(1, BLOCK // (len(heads) * attention.keys.size))
        for part in (run[start : start + height] for run in runs for start in range(0, len(run), height)):
            weights = trace.window(attention.name, (heads, part, range(attention.keys.size)), self.item)
            queries = np.arange(part.start, part.stop)
            visible = visible_keys(trace, attention, part, self.item) & tokens.real & ~hidden
            yield Rows(renormalized(weights, hidden), queries, own_keys(attention, queries), visible, tokens)


def own_keys(attention: Attention, queries: Host) -> Host:
    """The key of each query's own token; the last keys are the queries, where earlier ones come from a cache."""
    if not attention.own:
        return np.full(queries.shape, -1)
    return np.asarray(queries + (attention.keys.size - attention.queries.size))


def visible_keys(trace: Trace, attention: Attention, run: range, item: int = 0) -> Host:
    """Queries × keys, true where the mask lets a query look. The mask is the same in all heads."""
    masked = trace.program.step(trace.program.step(attention.name).inputs[0])
    shape = (len(run), attention.keys.size)
    if not isinstance(masked.op, Mask):
        return np.ones(shape, dtype=np.bool_)
    parts = zip(masked.inputs[1:], (run, range(shape[1]), range(shape[1])), strict=True)
    places = [trace.window(name, (part,), item)[None] for name, part in parts]
    scores = np.zeros((1, 1, *shape), dtype=np.float32)
    return np.asarray(np.isfinite(masked.op.forward(numpy_backend(), scores, *places)[0, 0]))


def renormalized(weights: Host, hidden: Host) -> Host:
    """Weights (… × keys) without the hidden keys (true in `hidden`), every row summing to 1 or 0."""
    if not hidden.any():
        return weights
    left = np.where(hidden, 0.0, weights).astype(weights.dtype)
    total = left.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(left, total, out=np.zeros_like(left), where=total > 0.0))


Report = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody wants to know how far the work is."""


def prepared(trace: Trace, name: str, report: Report = silent) -> Trace:
    """The trace, with everything there that windows of a step are made from.

    `report` is told of every step that runs; what it raises ends the work, and what is kept stays.
    """
    trace.prepare(name, before=lambda step: report(step.name))
    return trace
