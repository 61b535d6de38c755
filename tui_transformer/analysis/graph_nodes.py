"""Nodes of attribution graphs: what writes, what of it is read again, and where the way back from a reader begins.

A site is all nodes of one kind at one step; it knows what each of them writes, so that an edge is the product of that
with the gradient that arrives there. A node that reads has a number that its edges and constants sum to: the
pre-activation of a feature, a logit, or of a head or a feed-forward layer at a token the length of what it writes, as
if it were a feature whose direction is that of what it writes.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from tui_transformer.analysis.graph_walk import Held, Take, back, inner
from tui_transformer.analysis.nodes import layer_in
from tui_transformer.engine import ops
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.program import LABEL
from tui_transformer.records import dataclass, field

Kind = Literal["embedding", "feature", "neuron", "head", "feed_forward", "error", "logit"]


@dataclass(frozen=True)
class GraphNode:
    """A node of an attribution graph.

    Attributes:
        kind: `embedding` (what enters the first layer at a token), `feature`, `neuron`, `head` and `feed_forward` (at a
            token), `error` (what features or chosen neurons leave), `logit`.
        place: Of which step, attention, feed-forward layer or stack.
        token: At which token of its sequence, from 0.
        number: Which feature, neuron or head, or the ID of the token of a logit; None where the site has one a token.
        value: The activation; of a vector its length; of a logit that less the mean of all.
        step: The step that holds it.
    """

    kind: Kind
    place: str
    token: int
    number: int | None
    value: float
    step: str

    def __str__(self) -> str:
        number = "" if self.number is None else f":{self.number}"
        return f"{self.kind}:{self.place}{number}@{self.token}"

    @property
    def layer(self) -> int | None:
        """Its layer, −1 of an embedding; None of a logit."""
        return -1 if self.kind == "embedding" else layer_in(self.place)

    @property
    def expert(self) -> int | None:
        """Of a neuron, in which expert of its layer it is, −1 in that of all tokens; None where there are none."""
        if self.kind != "neuron":
            return None
        *_, before, last = self.place.split(".")
        return int(last) if before == "experts" else -1 if last == "shared" else None

    @property
    def within(self) -> str:
        """That expert in words."""
        return "" if self.expert is None else "shared" if self.expert < 0 else f"expert {self.expert}"

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`, of whose sequence its token is."""
        return self.place.partition(".")[0]

    @property
    def cell(self) -> tuple[int, ...]:
        """Where it is in its step; of a row, its first cell."""
        if self.kind == "head":
            return (self.number or 0, self.token, 0)
        return (self.token, self.number or 0)


def paired(a: int, b: int) -> int:
    """Two numbers in one, by which both are known (Cantor's pairing)."""
    return (a + b) * (a + b + 1) // 2 + b


@dataclass(frozen=True, eq=False)
class Site:
    """The nodes of one kind at one step.

    `nodes` are all of them; `edges`, in their order, the products of what they write with the gradients of a batch at
    a step that is taken (B × its shape → B × nodes); `follow` is the way back from what some of them read, and gives
    what constants add to the sum of each.

    Attributes:
        taken: The steps at which gradients are taken.
        encoder: Of features and neurons the step of their pre-activations, a product with a matrix.
        reads: Whether what its nodes read is followed.
    """

    kind: Kind
    place: str
    step: str
    taken: tuple[str, ...]
    encoder: str = ""
    reads: bool = True


@dataclass(frozen=True, eq=False)
class Rows(Site):
    """A vector for every token, of heads one for every head and token: its row of the context.

    Attributes:
        units: The strongest neurons of a feed-forward layer, of experts those of each; what the layer writes besides
            them is then meant: the rest of its product, with its bias.
    """

    units: tuple[Units, ...] = ()

    def _values(self, held: Held) -> Array:
        values = held.value(self.step)[0]
        if self.units:
            values = values.copy()
        for site in self.units:
            written = site.written(held, self.step)
            for token, units in site.runs:
                values[token] -= written[units].sum(axis=0)
        return values

    def nodes(self, held: Held) -> list[GraphNode]:
        sizes = np.linalg.norm(held.backend.to_host(self._values(held)).astype(np.float64), axis=-1)
        return [
            GraphNode(self.kind, self.place, token, head[0] if head else None, float(size), self.step)
            for (*head, token), size in np.ndenumerate(sizes)
        ]

    def edges(self, held: Held, name: str, gradient: Array) -> Array:
        return (gradient * self._values(held)).sum(axis=-1).reshape(len(gradient), -1)

    def follow(self, held: Held, which: Host, take: Take) -> Array:
        """From some of the vectors, each along itself."""
        values = held.value(self.step)[0]
        gradient = held.backend.xp.zeros((len(which), *values.shape), dtype=values.dtype)
        for i, place in enumerate(zip(*np.unravel_index(which, values.shape[:-1]), strict=True)):
            gradient[(i, *place)] = values[place] / held.backend.xp.sqrt((values[place] ** 2).sum())
        return back(held, {self.step: gradient}, take, self.step)


@dataclass(frozen=True, eq=False)
class Units(Site):
    """Features or neurons that are active at a token, each of which writes a row of a matrix.

    Attributes:
        tokens, numbers: Of every unit, by token.
        through: The steps through whose edits what they write goes before it is taken, the first first.
        shares: Of neurons of an expert, the step of the shares (n × experts), of which it has the column `expert`: what
            each writes is weighted with the share that its token gives the expert, held fast.
    """

    tokens: Host = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: Host = field(default_factory=lambda: np.zeros(0, np.int64))
    through: tuple[str, ...] = ()
    shares: str = ""
    expert: int = 0
    _written: dict[str, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def runs(self) -> list[tuple[int, slice]]:
        """Tokens, and the units of each."""
        edges = np.searchsorted(self.tokens, np.arange(self.tokens.max(initial=-1) + 2))
        return [(i, slice(a, b)) for i, (a, b) in enumerate(pairwise(edges)) if a < b]

    def nodes(self, held: Held) -> list[GraphNode]:
        cells = zip(self.tokens.tolist(), self.numbers.tolist(), self._values(held, self.step).tolist(), strict=True)
        return [GraphNode(self.kind, self.place, *cell, self.step) for cell in cells]

    def _values(self, held: Held, step: str) -> Host:
        return held.backend.to_host(held.value(step)[0])[self.tokens, self.numbers].astype(np.float64)

    def sums(self, held: Held, which: Host) -> Host:
        """What some units read, their pre-activations; where an activation was set, that, as then nothing is read.

        An edit that passes a part of the activation on changes what is written, and not what is read.
        """
        read, set_to = (self._values(held, step)[which] for step in (self.encoder, self.step))
        return np.where(self._passes(held, which), read, set_to)

    def _passes(self, held: Held, which: Host) -> Host:
        """Of some units, whether the activation has anything of what was computed."""
        if not held.edits(self.step):
            return np.ones(len(which), np.bool_)
        cells = zip(self.tokens[which].tolist(), self.numbers[which].tolist(), strict=True)
        return np.array([held.passes(self.step, cell) for cell in cells], np.bool_)

    def written(self, held: Held, product: str) -> Array:
        """What every unit writes at a product: units × d."""
        if product not in self._written:
            own = self.through[0] if self.shares else product  # of an expert, as they are before all are added up
            tokens, numbers = map(held.backend.integers, (self.tokens, self.numbers))
            rows = _lines(held, held.program.step(own).inputs[1], self.numbers, 0)
            rows = rows * held.value(self.step)[0][tokens, numbers][:, None]
            if self.shares:
                rows = rows * held.value(self.shares)[0][tokens, self.expert][:, None]
            self._written[product] = self._edited(held, rows)
        return self._written[product]

    def _edited(self, held: Held, rows: Array) -> Array:
        """What edits leave of what is written: each takes away, scales or projects, forwards as backwards."""
        edited = [name for name in self.through if held.edits(name)]
        if not edited:
            return rows
        rank = np.arange(len(self.tokens)) - np.searchsorted(self.tokens, self.tokens)
        shape = held.program.shape(edited[0])
        spread = held.backend.xp.zeros((1 + rank.max(initial=0), *shape), dtype=rows.dtype)
        places = tuple(map(held.backend.integers, (rank, self.tokens)))
        spread[places] = rows
        for change in (change for name in edited for change in held.edits(name)):
            change.pass_back(held.backend, spread, whole(shape))
        return spread[places]

    def edges(self, held: Held, name: str, gradient: Array) -> Array:
        written = self.written(held, name)
        found = held.backend.xp.zeros((len(gradient), len(self.tokens)), dtype=gradient.dtype)
        for token, units in self.runs:
            found[:, units] = gradient[:, token] @ written[units].T
        return found

    def follow(self, held: Held, which: Host, take: Take) -> Array:
        passes = self._passes(held, which)
        constants = held.backend.floats(np.where(passes, 0.0, self.sums(held, which)))
        places = tuple(map(held.backend.integers, (np.flatnonzero(passes), self.tokens[which][passes])))
        numbers = self.numbers[which][passes]
        if held.edits(self.encoder):
            cells = held.backend.xp.zeros((len(which), *held.program.shape(self.encoder)), dtype=constants.dtype)
            cells[(*places, held.backend.integers(numbers))] = 1.0
            return constants + back(held, {self.encoder: cells}, take)
        x, weight, *biases = inner(held.program.step(self.encoder)).inputs
        gradient = held.backend.xp.zeros((len(which), *held.program.shape(x)), dtype=constants.dtype)
        gradient[places] = _lines(held, weight, numbers, 1)
        for bias in biases:
            constants[places[0]] += _lines(held, bias, numbers, 0)
        return constants + back(held, {x: gradient}, take)


def _lines(held: Held, name: str, numbers: Host, axis: int) -> Array:
    """Rows (axis 0) or columns (axis 1) of a weight, or cells of a vector; no others are read from its file."""
    shape, trace = held.program.shape(name), held.trace
    unique, places = np.unique(numbers, return_inverse=True)
    region = [range(size) for size in shape]
    lines = []
    for number in unique.tolist():
        region[axis if len(shape) > 1 else 0] = range(number, number + 1)
        lines.append(np.asarray(trace.window(name, tuple(region))).reshape(-1))
    found: Host = np.array(lines)[places] if lines else np.zeros((0, shape[-1] if axis == 0 else shape[0]))
    return held.backend.floats(found[:, 0] if len(shape) == 1 else found)


@dataclass(frozen=True, eq=False)
class Logits(Site):
    """Logits of some tokens at a position, less the mean of all; of labels without that."""

    row: int = 0
    numbers: tuple[int, ...] = ()

    def _centred(self, held: Held) -> bool:
        return held.program.step(self.step).axes[-1].name != LABEL

    def nodes(self, held: Held) -> list[GraphNode]:
        step = held.program.step(self.step)
        values = held.backend.to_host(held.value(step.name)[0]).astype(np.float64)
        line = values if values.ndim == 1 else values[self.row]
        mean = float(line.mean()) if self._centred(held) else 0.0
        return [
            GraphNode("logit", "output", self.row, each, float(line[each]) - mean, step.name) for each in self.numbers
        ]

    def follow(self, held: Held, which: Host, take: Take) -> Array:
        step, backend, chosen = held.program.step(self.step), held.backend, np.array(self.numbers)[which]
        x, weight, *biases = step.inputs
        constants = backend.xp.zeros(len(which))
        if held.edits(step.name):  # from the logits themselves, whose edits are passed then
            x, lines = step.name, np.zeros((len(which), step.shape[-1]))
            lines[np.arange(len(which)), chosen] = 1.0
            lines -= 1.0 / step.shape[-1] if self._centred(held) else 0.0
        else:
            axis, scale = (0, step.op.scale) if isinstance(step.op, ops.Unembed) else (1, 1.0)
            lines = _lines(held, weight, chosen, axis) * scale
            constants = sum((_lines(held, bias, chosen, 0) for bias in biases), constants)
            if self._centred(held):
                lines = lines - held.value(weight).mean(axis=axis) * scale
                constants = constants - sum(held.value(bias).mean() for bias in biases)
        lines, shape = backend.floats(lines), held.program.shape(x)
        gradient = backend.xp.zeros((len(which), *shape), dtype=lines.dtype)
        gradient[(slice(None), self.row) if len(shape) == 2 else slice(None)] = lines
        return backend.floats(constants) + back(held, {x: gradient}, take)
