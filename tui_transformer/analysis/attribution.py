"""Direct logit attribution: what every head, layer and embedding writes toward a logit.

A logit is linear in the residual stream once the norms on the way are frozen: μ and σ of each norm are those of the
forward pass, and only what they divide is taken apart. With the direction w = W_U[:, t] (or the difference of two such
columns, for a logit difference) carried back through them, a term that is added to the stream counts term · w (Elhage
et al. 2021, "A Mathematical Framework for Transformer Circuits", §"Residual stream"; nostalgebraist 2020 for the frozen
final norm). Biases, β and what no term stands for are terms of their own, so that all of them sum to the logit; the
remainder is what rounding leaves. Through a step with edits a term counts as far as they pass it on, as they set cells
to something else, scale or project them; what they add is a term.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tui_transformer.analysis.circuits import in_float64
from tui_transformer.analysis.graph_walk import changes
from tui_transformer.analysis.measurable import last_position, logits_of, positions_in
from tui_transformer.engine import ops
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.edits import changes_of, of_sentence
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.ops.base import EXACT
from tui_transformer.engine.program import FEATURE, Step
from tui_transformer.engine.targets import NEURONS
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, replace

NORMS = (ops.LayerNorm, ops.RmsNorm, ops.NormOfSum)


@dataclass(frozen=True)
class Term:
    """Part of a logit: what the step or weight `name` adds to it.

    `kind`: "head", "neuron", "feature", "layer", "embedding", "bias" or "edit"; `number`: which head, neuron or
    feature, None for the whole step.
    """

    name: str
    kind: str
    number: int | None
    value: float

    def __str__(self) -> str:
        return self.name if self.number is None else f"{self.name}[{self.number}]"


@dataclass(frozen=True)
class Attribution:
    """A logit, as the forward pass has it before a soft cap, or the difference of two, and its terms in order.

    `tokens` are the token, and the one that is taken away, None where there is none; `position` is where it is read.
    """

    tokens: tuple[int, int | None]
    position: int
    logit: float
    terms: tuple[Term, ...]

    def __repr__(self) -> str:
        terms = f"{len(self.terms)} terms"
        return f"<Attribution of {self.tokens} at {self.position}: {self.logit:.6g}, {terms}>"

    def to_dict(self) -> dict[str, float]:
        """Every term by its name, with the number of the head, neuron or feature behind it."""
        return {str(term): term.value for term in self.terms}

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for every term, for pandas and polars."""
        return [vars(term) for term in self.terms]

    @property
    def remainder(self) -> float:
        """The rest of the logit that no term makes."""
        return self.logit - sum(term.value for term in self.terms)


def attribute(
    trace: Trace,
    token: int,
    other: int | None = None,
    *,
    position: int | None = None,
    neurons: bool = False,
    features: bool = False,
    item: int | None = None,
) -> Attribution:
    """The terms of the logit of a token at a position, or of the difference to another token's.

    Args:
        trace: The model on a sentence.
        token: Its ID.
        other: The token whose logit is taken away.
        position: From 0, or from the end; by default the last token that is no padding.
        neurons: Every neuron apart, in place of the feed-forward layers; of experts those that the token chose.
        features: Of a model with features every active one apart, and their error, in place of what they are of; where
            the reconstruction replaces that they always are.
        item: Which sentence of a batch.

    Raises:
        InputError: The model has no logits of words, or there is no such token or position.
    """
    logits_of(trace.program, "attribution reads these")
    step = trace.program.step(LOGITS)
    if not isinstance(step.op, ops.Linear | ops.Unembed):
        raise InputError(f"{LOGITS} is “{step.op.formula}”, and no product with a matrix: attribution follows these")
    rows, words = step.shape[-2:]
    item = item_of(trace, item)
    row = positions_in(rows, last_position(trace, item) if position is None else position).start
    for each in (token, other):
        if each is not None and not isinstance(each, int | np.integer):
            raise UsageError(f"a token is its ID, a whole number, not {type(each).__name__}")
        if each is not None and not 0 <= each < words:
            raise InputError(f"there is no token {each}: IDs go from 0 to {words - 1}")
    walk = _Walk(trace, row, item, neurons, features)
    logit = walk.line(LOGITS)
    direction = np.zeros(words)
    direction[token] = 1.0
    if other is not None:
        direction[other] -= 1.0
    terms = tuple(walk.of(LOGITS, direction))
    value = float(logit[token] - (0.0 if other is None else logit[other]))
    return Attribution((token, other), row, value, terms)


@dataclass(frozen=True, eq=False)
class FrozenNorm:
    """A norm of the sum of `sources` at some rows, with μ and σ held fast.

    `deviation`: σ, tokens × 1; `weight`: γ, d; `centred`: whether the mean is taken away.
    """

    sources: tuple[str, ...]
    deviation: Host
    weight: Host
    centred: bool


def frozen_norm(trace: Trace, step: Step, rows: range, item: int) -> FrozenNorm:
    """The norm of a step at some rows, in float64."""
    op, parts = step.op, step.op.parts if isinstance(step.op, ops.NormOfSum) else 1
    region = rows, range(step.axes[-1].size)
    x = sum((np.asarray(trace.window(name, region, item), np.float64) for name in step.inputs[:parts]), np.zeros(1))
    centred = not isinstance(op, ops.RmsNorm)
    epsilon = op.epsilon if isinstance(op, ops.LayerNorm | ops.RmsNorm | ops.NormOfSum) else 0.0
    spread = x - x.mean(axis=-1, keepdims=True) if centred else x
    deviation = np.sqrt(np.mean(spread * spread, axis=-1, keepdims=True) + epsilon)
    return FrozenNorm(step.inputs[:parts], deviation, in_float64(trace, step.inputs[parts]), centred)


def passed(trace: Trace, name: str, vectors: Host, rows: range, item: int, *, back: bool = False) -> Host:
    """What edits of a step leave of vectors (… × rows × columns) that are added to it; the same array where none do.

    Each takes away, scales or projects; `back` is the way from the step to what made it, as gradients go.

    Raises:
        InputError: A function of the caller's changes the rows.
    """
    step = trace.program.by_name.get(name)
    if step is None or len(step.axes) != 2:
        return vectors
    region = rows, range(step.axes[-1].size)
    own = (of_sentence(edit, item) for edit in trace.edits if edit.name == name)
    made = changes_of((edit for edit in own if edit is not None), name, region)
    left = np.array(vectors, np.float64) if made else vectors
    for change in reversed(made) if back else made:
        change.pass_back(EXACT, left, region)
    return left


@dataclass(frozen=True)
class _Walk:
    """From the logits back to what is added to the residual stream, at one row; `direction` is ∂logit ÷ ∂row."""

    trace: Trace
    row: int
    item: int
    neurons: bool
    features: bool

    def of(self, name: str, direction: Host) -> Iterator[Term]:
        """The terms of a step whose row is multiplied by a direction."""
        toward = self._before(name, direction)
        if toward is None:
            yield from self._of_computed(name, direction)
            return
        terms = [*self._of_computed(name, toward)]
        if [term.name for term in terms] == [name]:  # taken whole, as it is
            yield self._whole(name, direction)
            return
        yield from terms
        rest = float(self.line(name) @ direction) - sum(term.value for term in terms)
        yield Term(name, "edit", None, rest)

    def _before(self, name: str, direction: Host) -> Host | None:
        """The direction in front of a step's edits; None where it has none at the row."""
        line, rows = direction[None], range(self.row, self.row + 1)
        left = passed(self.trace, name, line, rows, self.item, back=True)
        return None if left is line else left[0]

    def _of_computed(self, name: str, direction: Host) -> Iterator[Term]:
        """The terms of a step before its edits."""
        step = self.trace.program.by_name.get(name)
        if step is None:
            yield Term(name, "bias", None, float(self.line(name) @ direction))
        elif name == LOGITS:
            yield from self._of_words(step, direction)
        elif isinstance(step.op, ops.Add):
            change = changes(self.trace.program, step) if self.features else None
            for source in step.inputs if change is None else change.inputs[:2]:  # what features write, and their error
                yield from self.of(source, direction)
        elif isinstance(step.op, ops.Scale):
            yield from self.of(step.inputs[0], direction * step.op.factor)
        elif isinstance(step.op, NORMS) and len(step.axes) == 2:
            yield from self._of_norm(step, direction)
        elif isinstance(step.op, ops.Linear):
            yield from self._of_matrix(step, direction)
        elif isinstance(step.op, ops.FromSize):
            x = self.line(step.inputs[1])[None]  # what the dictionary read: its mean, and its size
            mean, moved = (step.op.forward(EXACT, np.full_like(x, value), x)[0] for value in (0.0, 1.0))
            yield from self.of(step.inputs[0], direction * float(moved[0] - mean[0]))
            yield Term(step.name, "layer", None, float(mean @ direction))
        elif self.neurons and isinstance(step.op, ops.WeightedExperts):
            shares = self.line(step.inputs[0])
            for expert in map(int, np.flatnonzero(shares)):
                yield from self.of(step.inputs[1 + expert], direction * shares[expert])
        elif isinstance(step.op, ops.OfExpert) and isinstance(step.op.op, ops.Linear):
            yield from self._of_matrix(replace(step, inputs=step.inputs[:-1]), direction)
        else:
            yield self._whole(name, direction)

    def _of_words(self, step: Step, direction: Host) -> Iterator[Term]:
        source, weight, *biases = step.inputs
        rows, columns = map(range, self.trace.program.shape(weight))
        toward, constants = np.zeros(self.trace.program.shape(source)[-1]), np.zeros(len(biases))
        for token in np.flatnonzero(direction).tolist():
            at = range(token, token + 1)
            if isinstance(step.op, ops.Unembed):
                vector = in_float64(self.trace, weight, (at, columns)) * step.op.scale
            else:
                vector = in_float64(self.trace, weight, (rows, at))
            toward += direction[token] * vector.reshape(-1)
            constants += [direction[token] * in_float64(self.trace, bias, (at,))[0] for bias in biases]
        yield from self.of(source, toward)
        for bias, value in zip(biases, constants.tolist(), strict=True):
            yield Term(bias, "bias", None, value)

    def _whole(self, name: str, direction: Host) -> Term:
        kind = "embedding" if "embedding." in name else "layer"
        return Term(name, kind, None, float(self.line(name) @ direction))

    def _of_norm(self, step: Step, direction: Host) -> Iterator[Term]:
        norm = frozen_norm(self.trace, step, range(self.row, self.row + 1), self.item)
        toward = direction * norm.weight / norm.deviation[0]
        toward = toward - toward.mean() if norm.centred else toward
        for name in norm.sources:
            yield from self.of(name, toward)
        for bias in step.inputs[len(norm.sources) + 1 :]:
            yield Term(bias, "bias", None, float(self.line(bias) @ direction))

    def _of_matrix(self, step: Step, direction: Host) -> Iterator[Term]:
        """The heads, neurons or active features that a matrix reads, and its bias; all of it where it reads none."""
        source, weight, *biases = step.inputs
        before = self.trace.program.by_name.get(source)
        change = None if before is None else changes(self.trace.program, before)
        if before is not None and change is not None and not self.features:
            parts = [*self._of_matrix(replace(step, inputs=(before.inputs[0], weight, *biases)), direction)]
            yield from parts
            if parts[0].name != step.name:
                yield self._whole(change.name, in_float64(self.trace, weight) @ direction)
            return
        read = "" if before is None else before.axes[-1].name
        if change is not None:
            toward = in_float64(self.trace, weight) @ direction
            yield from (term for name in change.inputs[:2] for term in self.of(name, toward))
        elif read == FEATURE:
            values, columns = self.line(source), range(step.shape[-1])
            for feature in map(int, np.flatnonzero(values)):
                row = in_float64(self.trace, weight, (range(feature, feature + 1), columns))[0]
                yield Term(source, "feature", feature, float(values[feature] * (row @ direction)))
        elif before is not None and isinstance(before.op, ops.MergeHeads):
            yield from self._of_heads(source, before.inputs[0], in_float64(self.trace, weight) @ direction)
        elif self.neurons and read == NEURONS:
            written = in_float64(self.trace, weight) @ direction * self.line(source)
            yield from (Term(source, "neuron", i, float(value)) for i, value in enumerate(written))
        else:
            yield self._whole(step.name, direction)
            return
        yield from (Term(bias, "bias", None, float(self.line(bias) @ direction)) for bias in biases)

    def _of_heads(self, side_by_side: str, heads: str, direction: Host) -> Iterator[Term]:
        """The heads, and what edits make of them where they are side by side."""
        left, (count, _, width) = self._before(side_by_side, direction), self.trace.program.shape(heads)
        region = range(count), range(self.row, self.row + 1), range(width)
        values = np.asarray(self.trace.window(heads, region, self.item), np.float64)[:, 0]
        toward = direction if left is None else left
        written = (toward.reshape(len(values), -1) * values).sum(axis=-1)
        yield from (Term(heads, "head", i, float(value)) for i, value in enumerate(written))
        if left is not None:
            yield Term(side_by_side, "edit", None, float(self.line(side_by_side) @ direction - written.sum()))

    def line(self, name: str) -> Host:
        """The row of a step, or a weight, in float64."""
        shape = self.trace.program.shape(name)
        if name in self.trace.program.weights:
            return in_float64(self.trace, name)
        region = whole(shape) if len(shape) == 1 else (range(self.row, self.row + 1), range(shape[-1]))
        return np.asarray(self.trace.window(name, region, self.item), np.float64).reshape(-1)
