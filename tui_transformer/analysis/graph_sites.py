"""The sites of an attribution graph: found on the way back through a program, from the logits to the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tui_transformer.analysis.attribution import NEURONS
from tui_transformer.analysis.graph_nodes import Heads, Rest, Rows, Site, Units
from tui_transformer.analysis.graph_walk import Held, changes, followed, reads_features
from tui_transformer.analysis.nodes import HEADS, SENDERS
from tui_transformer.engine import ops
from tui_transformer.engine.ops.activations import Function
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.targets import FEATURES
from tui_transformer.errors import InputError

ERROR = ".error"


@dataclass(eq=False)
class Sites:
    """The sites that lead to the logits, found on the way back through the program."""

    held: Held
    heads: bool
    neurons: int
    found: dict[str, Site] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        program = self.held.program
        self._embeddings = {_computed(program, step): each for each, (step,) in SENDERS["embedding"](program).items()}
        self._contexts = {step: place for place, (step,) in HEADS(program).items()} if self.heads else {}
        layers = (f"{place}.output" for place in SENDERS["feed_forward"](program))
        self._layers = {name for name in layers if name in program.by_name}

    def reach(self, names: Sequence[str]) -> None:
        """Find the sites behind some steps, and those behind what they read."""
        waiting = [name for name in names if name in self.held.program.by_name]
        while waiting:
            name = waiting.pop()
            if name not in self._seen:
                self._seen.add(name)
                waiting += [each for each in self._behind(name) if each in self.held.program.by_name]

    def _behind(self, name: str) -> Sequence[str]:
        """The steps before a step; where a site is there, those that it reads."""
        program = self.held.program
        step = program.by_name[name]
        if name in self._embeddings:
            self._add(Rows("embedding", self._embeddings[name], name, (name,), reads=False))
            return ()
        if name in self._contexts:
            self._add(Heads("head", self._contexts[name], name, (name,)))
            return followed(program, step) or ()
        if _is_error(program, name):
            self._add(Rows("error", name.removesuffix(ERROR), name, (name,), reads=False))
            return ()
        if name in self._layers and not _made_of_features(program, name):
            return self._layer(step)
        if reads_features(program, step):
            return [*self._features(program.by_name[step.inputs[0]], name), *step.inputs[2:]]
        before = followed(program, step)
        if before is None:
            raise InputError(f"{name} is not linear with the norms held: what is before it has no direct effect")
        return before

    def _features(self, step: Step, product: str) -> Sequence[str]:
        encoder = self.held.program.by_name[step.inputs[0]]
        known = self.found.get(step.name)
        if known is None:
            values = self.held.backend.to_host(self.held.value(step.name)[0])
            tokens, numbers = np.nonzero(values)
            place = step.name.removesuffix(FEATURES)
            units = Units("feature", place, step.name, (product,), encoder.name, tokens=tokens, numbers=numbers)
            self._add(units)
        else:
            self._add(replace(known, taken=(*known.taken, product)))  # a cross-layer transcoder, a layer later
        return encoder.inputs[:1]

    def _layer(self, step: Step) -> Sequence[str]:
        """A feed-forward layer, of which all, or the strongest neurons and the rest."""
        place, hidden = step.sublayer, self._hidden(step)
        inner = self._inside(step)
        if hidden is None or not self.neurons:
            reads = bool(inner)
            self._add(Rows("feed_forward" if reads else "error", place, step.name, (step.name,), reads=reads))
            return inner
        units = self._strongest(step, hidden)
        self._add(units)
        self._add(Rest("error", place, step.name, (step.name,), reads=False, units=units))
        return hidden.inputs[:1]

    def _inside(self, step: Step) -> tuple[str, ...]:
        """What a feed-forward layer reads from outside, where all in it can be followed; else nothing."""
        program, outside, waiting = self.held.program, dict[str, None](), [step.name]
        while waiting:
            name = waiting.pop()
            inner = program.by_name[name]
            if not name.startswith(f"{step.sublayer}.") or reads_features(program, inner) or _is_error(program, name):
                outside[name] = None
                continue
            before = followed(program, inner)
            if before is None:
                return ()
            waiting += [each for each in before if each in program.by_name]
        return tuple(outside)

    def _hidden(self, step: Step) -> Step | None:
        """The product whose columns are what neurons read; None where the layer is made of something else."""
        program = self.held.program
        before = program.by_name.get(step.inputs[0])
        if not isinstance(step.op, ops.Linear) or before is None or before.axes[-1].name != NEURONS:
            return None
        place = 1 if isinstance(before.op, ops.Gate) else 0 if isinstance(before.op, Function) else None
        hidden = None if place is None else program.by_name[before.inputs[place]]
        return hidden if hidden is not None and isinstance(hidden.op, ops.Linear) else None

    def _strongest(self, step: Step, hidden: Step) -> Units:
        """The neurons that write most at every token, |a| ‖W₂ row‖."""
        held, source = self.held, step.inputs[0]
        values = held.backend.to_host(held.value(source)[0])
        sizes = np.linalg.norm(held.backend.to_host(held.value(step.inputs[1])).astype(np.float64), axis=1)
        order = np.argsort(-np.abs(values) * sizes, axis=1, kind="stable")[:, : self.neurons]
        tokens = np.repeat(np.arange(len(values)), order.shape[1])
        numbers = np.sort(order, axis=1).reshape(-1)
        there = values[tokens, numbers] != 0.0
        place = step.sublayer
        own = {"tokens": tokens[there], "numbers": numbers[there]}
        return Units("neuron", place, source, (step.name,), hidden.name, **own)

    def _add(self, site: Site) -> None:
        self.found[f"{site.step} rest" if isinstance(site, Rest) else site.step] = site


def _computed(program: Program, name: str) -> str:
    """A step as the model makes it, where another one that features make goes on in its place."""
    step = program.by_name[name]
    if changes(program, step) is not None:
        return step.inputs[0]
    at = name.removesuffix(".reconstruction")
    return program.step(at).name if at != name and f"{at}{FEATURES}" in program.by_name else name


def _is_error(program: Program, name: str) -> bool:
    return name.endswith(ERROR) and f"{name.removesuffix(ERROR)}{FEATURES}" in program.by_name


def _made_of_features(program: Program, name: str) -> bool:
    """Whether a product reads what features make in the place of its neurons."""
    waiting = [name]
    while waiting:
        step = program.by_name.get(waiting.pop())
        if step is None or not isinstance(step.op, ops.Linear | ops.Add | ops.FromSize):
            continue
        if reads_features(program, step):
            return True
        waiting += followed(program, step) or ()
    return False
