"""Steps computed in float64 from the values of a dump, as they are or with changes of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.dumps.precision import Precision
from tui_transformer.engine.backend import Backend, Host
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace


@dataclass(frozen=True)
class Change:
    """A program that somebody may have written in place of the right one.

    Attributes:
        steps: Steps in the place of those of their names; new names are computed before what reads them.
        weights: How weights were read.
    """

    steps: Mapping[str, Step] = field(default_factory=dict)
    weights: Mapping[str, Callable[[Host], Host]] = field(default_factory=dict)

    def __or__(self, other: Change) -> Change:
        return Change({**self.steps, **other.steps}, {**self.weights, **other.weights})


@dataclass(frozen=True, eq=False)
class Segment:
    """Steps that lie between a step and the steps before it whose values are in the dump.

    Attributes:
        trace: The right values in float64: of weights and inputs.
        target: The step.
        given: Values of a dump, by step, with their precision.
    """

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
    def sources(self) -> frozenset[str]:
        """The steps of the dump that the target is computed from."""
        return frozenset(name for step in self.steps for name in step.inputs if name in self.given)

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """The weights that are read."""
        names = (name for step in self.steps for name in step.inputs if name in self.program.weights)
        return tuple(dict.fromkeys(names))

    def value(self, change: Change | None = None) -> Host:
        """The target, with its batch axis."""
        change = change or Change()
        if not change.steps and not change.weights:
            return self._right[self.target]
        return self._computed(change)[self.target]

    def noise(self, unit: float) -> float:
        """Largest difference that other roundings make: each input within its precision, each result within `unit`."""
        random = np.random.default_rng(0)
        spread = 0.0
        for _ in range(2):
            rounded = self._run({}, {}, unit, random)[self.target]
            spread = max(spread, largest_difference(rounded, self._right[self.target]))
        return spread

    @cached_property
    def _right(self) -> dict[str, Host]:
        return self._run({}, {}, 0.0, None)

    def _computed(self, change: Change) -> dict[str, Host]:
        """The values of changed steps and what follows from them; the others are those of the right program."""
        stale = {*change.steps, *change.weights}
        ordered = self._ordered(change.steps)
        for step in ordered:
            if not stale.isdisjoint(step.inputs):
                stale.add(step.name)
        fresh = {name: value for name, value in self._right.items() if name not in stale}
        return self._run(change.steps, change.weights, 0.0, None, fresh, ordered)

    @np.errstate(all="ignore")
    def _run(
        self,
        steps: Mapping[str, Step],
        weights: Mapping[str, Callable[[Host], Host]],
        unit: float,
        random: np.random.Generator | None,
        known: Mapping[str, Host] | None = None,
        ordered: Iterable[Step] | None = None,
    ) -> dict[str, Host]:
        values = dict(known or {})
        for step in self._ordered(steps) if ordered is None else ordered:
            if step.name in values:
                continue
            operands = [self._operand(name, values, weights, random) for name in step.inputs]
            result = np.array(step.op.forward(self.trace.backend, *operands), copy=True)
            values[step.name] = result if random is None else _shaken(result, unit * np.abs(result), random)
        return values

    def _operand(
        self,
        name: str,
        values: Mapping[str, Host],
        weights: Mapping[str, Callable[[Host], Host]],
        random: np.random.Generator | None,
    ) -> Host:
        if name in values:
            return values[name]
        if name in self.given:
            array, precision = self.given[name]
            return array if random is None else _shaken(array, precision.of(array), random)
        if name in self.program.weights:
            weight: Host = self.trace.weights.get(name, self.program.shape(name))
            return weights[name](weight) if name in weights else weight
        return _input(self.trace.backend, self.trace.givens[name])

    def _ordered(self, changed: Mapping[str, Step]) -> list[Step]:
        """The steps for the target in the order of computation, with those of a change in their places."""
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


def largest_difference(a: Host, b: Host) -> float:
    """The largest |a − b| over the finite cells."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)
    gap = gap[np.isfinite(gap)]
    return float(gap.max()) if gap.size else 0.0


def _shaken(values: Host, by: Host, random: np.random.Generator) -> Host:
    """The values, each moved by at most so much."""
    if values.dtype.kind != "f":
        return values
    moved: Host = values + np.where(np.isfinite(values), by, 0.0) * random.uniform(-1.0, 1.0, values.shape)
    return moved


def _input(backend: Backend, given: Host) -> Host:
    convert = {"b": backend.booleans, "f": backend.floats}.get(given.dtype.kind, backend.integers)
    array: Host = convert(given)
    return array
