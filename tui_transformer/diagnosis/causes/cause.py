"""A cause: a change of the program that somebody may have made by mistake, computed from the values of a dump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.diagnosis.dumps.dump import FLOAT32_UNIT, Precision
from tui_transformer.diagnosis.naming.words import kind
from tui_transformer.diagnosis.reference_values import ForwardOnly, largest_difference
from tui_transformer.engine.backend import Array, Backend, Host, choose_backend
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Context, ExpertWeights, Linear, OfExpert, Op, Project, Scale, Scores, Unembed
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.files import read_toml
from tui_transformer.records import dataclass, field, replace

MOST_ALONE = 8
"""Most steps of a kind that are tried one at a time; more are tried together only."""

NEAREST = 12
"""Most steps before one that are tried in its place."""

PRODUCTS = (Linear, Project, Unembed, Scores, Context, OfExpert)
"""What rounds its operands where products alone have few bits."""

RUNS = 4
"""Passes with other roundings, from which it is taken how far these move a cell."""

FLIPPING = 4.0
"""Roundings of a router's logits move some of them by so many times the largest that is seen."""

CPU = choose_backend("cpu", "float64", small=True)
"""Where causes are tried."""

Function = Callable[..., Array]
"""A result from a step and its inputs, with batch axes; weights have none."""

SENTENCES: Mapping[str, str] = read_toml(Path(__file__).with_name("sentences.toml"), 1 << 20)
"""What is said of each cause, by its public name and what tells several apart."""


@dataclass(frozen=True)
class Cause:
    """A mistake that may have been made.

    Attributes:
        name: Its public name, as `scale-d_model`.
        change: What it makes of the program.
        says: When a step matches with it, and what to mend: the end of a sentence that begins with "It matches".
    """

    name: str
    change: Change
    says: str


@dataclass(frozen=True)
class Change:
    """A program that somebody may have written in place of the right one.

    Attributes:
        steps: Steps in the place of those of their names; new names are computed before what reads them.
        weights: How weights were read.
    """

    steps: Mapping[str, Step] = field(default_factory=dict)
    weights: Mapping[str, Callable[[Host], Host]] = field(default_factory=dict)


@dataclass(frozen=True)
class Instead(ForwardOnly):
    """A function in the place of an operation."""

    function: Callable[..., Array]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del backend, out
        return self.function(*inputs)


def result_of(step: Step, *inputs: Array) -> Array:
    """What a step gives of these inputs."""
    return step.op.forward(CPU, *inputs)


def instead(step: Step, function: Function) -> Step:
    """The step, computed by a function of it and of the same inputs."""
    return with_op(step, Instead(partial(function, step)))


def with_op(step: Step, op: Op) -> Step:
    """The step with another operation on the same inputs."""
    return replace(step, op=op)


def altered(step: Step, **fields: Any) -> Step:
    """The step with other fields of its operation."""
    return replace(step, op=replace(step.op, **fields))


def reading(step: Step, name: str, place: int = 0) -> Step:
    """The step with another input: the first, or that of a place."""
    return replace(step, inputs=(*step.inputs[:place], name, *step.inputs[place + 1 :]))


def as_it_is(_: Step, x: Array, *__: Array) -> Array:
    """The first input, to which nothing is done."""
    return x


def passing_on(step: Step, says: str, of: str = "x") -> Step:
    """The step, which gives its first input as it is."""
    return replace(step, op=Scale(1.0, f"({says})", of), inputs=step.inputs[:1])


def changing(steps: Iterable[Step]) -> Change:
    """Steps in the place of those of their names."""
    return Change({step.name: step for step in steps})


def cause(key: str, change: Change | Iterable[Step], /, **words: object) -> Cause:
    """The cause of a key of `sentences.toml`, with words and numbers for its sentence."""
    change = change if isinstance(change, Change) else changing(change)
    said = {name: spoken(each, 6) if isinstance(each, float) else each for name, each in words.items()}
    return Cause(key.partition("/")[0], change, SENTENCES[key].format(**said))


def computed(key: str, group: Iterable[Step], function: Function, /, **words: object) -> Cause:
    """The cause that every step of a group is computed by a function."""
    return cause(key, (instead(step, function) for step in group), **words)


def groups(steps: Iterable[Step]) -> Iterable[tuple[Step, ...]]:
    """Steps that one mistake in the code reaches: all, those of the layers, those of each kind, each alone."""
    steps = tuple(steps)
    kinds = dict.fromkeys(kind(step.name) for step in steps)
    alone = [(step,) for step in steps] if len(steps) <= MOST_ALONE else []
    layers = tuple(step for step in steps if kind(step.name) != step.name)
    every = (steps, layers, *(tuple(s for s in steps if kind(s.name) == each) for each in kinds), *alone)
    return {tuple(step.name for step in group): group for group in every if group}.values()


def earlier_like(program: Program, step: Step, but: Sequence[str] = ()) -> list[str]:
    """The nearest steps before this that have its axes, without these, nearest first."""
    before = program.steps[: program.places[step.name]]
    return [each.name for each in reversed(before) if each.axes == step.axes and each.name not in but][:NEAREST]


def transposed(weight: Host) -> Host:
    """A matrix that lies out × in and is taken for in × out, or the other way round."""
    turned: Host = weight.T.reshape(weight.shape)
    return turned


@dataclass(frozen=True, eq=False)
class Segment:
    """Steps that lie between the target and the steps before it whose values a dump gives; the rest is of the trace."""

    trace: Trace
    target: str
    given: Mapping[str, tuple[Host, Precision]]

    @property
    def program(self) -> Program:
        """The right program."""
        return self.trace.program

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that are computed for the target, in order, itself the last."""
        return tuple(self._ordered({}))

    @cached_property
    def _inputs(self) -> Mapping[str, tuple[str, ...]]:
        return {step.name: step.inputs for step in self.steps}

    @cached_property
    def sources(self) -> frozenset[str]:
        """The steps of the dump that the target is computed from."""
        return frozenset(name for step in self.steps for name in step.inputs if name in self.given)

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """The weights that are read."""
        return tuple(dict.fromkeys(n for step in self.steps for n in step.inputs if n in self.program.weights))

    @property
    def wider(self) -> Segment:
        """As if the dump did not hold what the target reads: a step may be there, and not used."""
        return replace(self, given={n: a for n, a in self.given.items() if n not in self._inputs[self.target]})

    def of(self, *kinds: type[Op]) -> list[Step]:
        """The steps with these operations."""
        return [step for step in self.steps if isinstance(step.op, kinds)]

    def value(self, change: Change | None = None) -> Host:
        """The target with its batch axis, computed by the right program or a changed one."""
        values = self._exact
        if change is not None and (change.steps or change.weights):
            stale = {*change.steps, *change.weights}
            ordered = self._ordered(change.steps)
            for step in ordered:
                if not stale.isdisjoint(step.inputs):
                    stale.add(step.name)
            fresh = {name: value for name, value in values.items() if name not in stale}
            values = self._run(ordered, fresh, change.weights)
        value = values[self.target]  # what depends on no sentence is computed once
        every: Host = np.broadcast_to(value, (self.trace.batch, *value.shape[1:])) if len(value) == 1 else value
        return every

    def noise(self, unit: float) -> float:
        """Largest difference that other roundings make: each input within its precision, each result within `unit`."""
        random = np.random.default_rng(0)
        runs = (self._run(self.steps, {}, {}, unit, random)[self.target] for _ in range(2))
        return max(largest_difference(each, self._exact[self.target]) for each in runs)

    def spread(self, unit: float) -> Host:
        """How far such roundings move each cell, the root of the mean square; and at least what its row has of it."""
        random = np.random.default_rng(0)
        right = self.value()
        squares = np.zeros(right.shape)
        for _ in range(RUNS):
            moved = self._run(self.steps, {}, {}, unit, random)[self.target]
            with np.errstate(invalid="ignore"):
                gap = np.abs(moved - right)
            squares += np.where(np.isfinite(gap), gap, 0.0) ** 2 / RUNS
        spread: Host = np.sqrt(np.maximum(squares, squares.mean(axis=-1, keepdims=True)))
        return spread

    @cached_property
    def _exact(self) -> dict[str, Host]:
        return self._run(self.steps, {}, {})

    @np.errstate(all="ignore")
    def _run(
        self,
        steps: Sequence[Step],
        known: Mapping[str, Host],
        read: Mapping[str, Callable[[Host], Host]],
        unit: float = 0.0,
        random: np.random.Generator | None = None,
    ) -> dict[str, Host]:
        """Values of steps; `read`: how weights are read; `random`: moves inputs and results by their roundings."""
        values = dict(known)
        for step in steps:
            if step.name not in values:
                operands = [values[n] if n in values else self._operand(n, read, random) for n in step.inputs]
                if random is not None:
                    operands = self._rounded(step, operands, unit, random)
                result = np.array(step.op.forward(self.trace.backend, *operands), copy=True)
                values[step.name] = result if random is None else _shaken(result, unit * np.abs(result), random)
        return values

    def _rounded(self, step: Step, operands: list[Host], unit: float, random: np.random.Generator) -> list[Host]:
        """Operands of a product in its precision, which stands for its weights, too.

        Of a router the logits, other experts chosen where roundings like these can make it so.
        """
        first, *rest = operands
        if isinstance(step.op, ExpertWeights):
            name = step.inputs[0]
            right = self._exact[name] if name in self._exact else self.given[name][0]
            by = FLIPPING * np.abs(first - right).max(axis=-1, keepdims=True)
            chosen = result_of(step, right) > 0
            pushed = right + np.where(chosen, -by, by)
            flipped = ((result_of(step, pushed) > 0) != chosen).any(axis=-1, keepdims=True)
            return [np.where(flipped, pushed, first)]
        if unit > FLOAT32_UNIT and isinstance(step.op, PRODUCTS):
            first = _shaken(first, unit * np.abs(first), random)
        return [first, *rest]

    def _operand(
        self, name: str, read: Mapping[str, Callable[[Host], Host]], random: np.random.Generator | None
    ) -> Host:
        if name in self.given:
            array, precision = self.given[name]
            if random is None:
                return array
            none = isinstance(self.program.by_name[name].op, ExpertWeights) & (array == 0)  # not chosen, and so exactly
            return _shaken(array, np.where(none, 0.0, precision.of(array)), random)
        if name in self.program.weights:
            weight: Host = self.trace.weights.get(name, self.program.shape(name))
            return read[name](weight) if name in read else weight
        given, backend = self.trace.givens[name], self.trace.backend
        convert = {"b": backend.booleans, "f": backend.floats}.get(given.dtype.kind, backend.integers)
        converted: Host = convert(given)
        return converted

    def _ordered(self, changed: Mapping[str, Step]) -> list[Step]:
        """The steps for the target in the order of computation, with those of a change in their places."""
        if changed and all(step.inputs == self._inputs.get(name) for name, step in changed.items()):
            return [changed.get(step.name, step) for step in self.steps]
        order: list[Step] = []
        seen: set[str] = set()
        waiting: list[tuple[str, bool]] = [(self.target, False)]
        while waiting:
            name, ready = waiting.pop()
            step = changed.get(name) or self.program.by_name.get(name)
            if step is None or (name in self.given and name != self.target and name not in changed):
                continue
            if ready:
                order.append(step)
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                waiting += [(source, False) for source in reversed(step.inputs)]
        return order


def _shaken(values: Host, by: Host, random: np.random.Generator) -> Host:
    if values.dtype.kind != "f":
        return values
    moved: Host = values + np.where(np.isfinite(values), by, 0.0) * random.uniform(-1.0, 1.0, values.shape)
    return moved
