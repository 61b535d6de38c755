"""Walk: the layers of a trace one after the other, whatever the trace keeps.

A measure of all heads reads every layer of a model. Where a trace keeps nothing, each of its windows would run the
model from its first layer. A walk keeps what leaves some layers, as many as its budget allows, and what the windows of
the layer at hand are made from; so that a layer starts from the nearest one that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from tui_transformer.engine.keep import Plan
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace

LAYER_BUDGET = 256 << 20
"""Bytes that what leaves the layers may take."""

Report = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody wants to know how far the work is."""


@dataclass(eq=False)
class Walk:
    """Gives, for a step, a trace whose windows of that step are cheap.

    Attributes:
        trace: What is walked through; it is not changed.
        budget: Bytes that what leaves the layers may take.
    """

    trace: Trace
    budget: int = LAYER_BUDGET
    _last: Trace | None = field(default=None, repr=False)

    def at(self, name: str, report: Report = silent) -> Trace:
        """A trace in which everything that the windows of a step are made from is there.

        Args:
            name: The step.
            report: Told of every step that runs; what it raises ends the work, and what is there stays.
        """
        wanted = sources(self.trace.program, name)
        if wanted <= self.trace.plan.names:
            self.trace.compute(wanted, before=lambda step: report(step.name))
            return self.trace
        found = self._with(wanted)
        self._last = found
        found.compute(wanted, before=lambda step: report(step.name))
        return found

    def _with(self, wanted: frozenset[str]) -> Trace:
        """A trace like the last one that keeps other things; of what is there it takes the layers along."""
        kept = self.trace.plan.names | self._layers | wanted
        last = self._last or self.trace
        held = {name: last.array(name) for name in last.held if name in kept}
        found = replace(self.trace, base=None, _held=held)
        found.plan = Plan(kept, 0, 0)
        return found

    @cached_property
    def _layers(self) -> frozenset[str]:
        """What leaves the layers: every k-th of them, so many as the budget holds."""
        program = self.trace.program
        names = layer_outputs(program)
        if not names:
            return frozenset()
        size = math.prod(program.shape(names[0])) * self.trace.backend.dtype.itemsize * self.trace.batch
        stride = max(1, -(-len(names) * size // max(self.budget, 1)))
        return frozenset(names[stride - 1 :: stride])


def layer_outputs(program: Program) -> tuple[str, ...]:
    """The own names of what leaves each layer, in order."""
    found = (program.aliases[name] for name in program.names if name in program.aliases and _is_layer(name))
    return tuple(found)


def _is_layer(name: str) -> bool:
    stack, _, rest = name.partition(".")
    layer, _, last = rest.partition(".")
    return bool(stack) and layer.isdigit() and last == "output"


def sources(program: Program, name: str) -> frozenset[str]:
    """What the windows of a step are made from that is itself no matrix of queries × keys."""
    step = program.step(name)
    return frozenset(_sources(program, step)) if step.square else frozenset({step.name})


def _sources(program: Program, step: Step) -> list[str]:
    found: list[str] = []
    for name in step.inputs:
        source = program.by_name.get(name)
        if source is not None:
            found += _sources(program, source) if source.square else [name]
    return found
