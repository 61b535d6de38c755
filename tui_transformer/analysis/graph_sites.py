"""The sites of an attribution graph: found on the way back through a program, from the logits to the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tui_transformer.analysis.graph_nodes import Kind, Rows, Units
from tui_transformer.analysis.graph_walk import Held, changes, followed, inner, reads_features
from tui_transformer.analysis.nodes import HEADS, SENDERS
from tui_transformer.engine import ops
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops.activations import Function
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.targets import FEATURES, NEURONS
from tui_transformer.errors import InputError
from tui_transformer.records import replace

ERROR = ".error"


READ: Mapping[type[Any], int] = {ops.Gate: 1, ops.ClampedGate: 1, Function: 0}
"""Which input of what makes an activation is the product that its neurons read; the other is a gate."""


class Sites:
    """The sites behind a step, `found` on the way back through the program: those that lead to the logits."""

    def __init__(self, held: Held, start: str, *, heads: bool, neurons: int) -> None:
        self.held, self.neurons, self.found = held, neurons, dict[str, Rows | Units]()
        program = held.program
        errors = (name for name in program.by_name if _is_error(program, name))
        self._rows = {name: Rows("error", name.removesuffix(ERROR), name, (name,), reads=False) for name in errors}
        for place, (name,) in HEADS(program).items() if heads else ():
            self._rows[name] = Rows("head", place, name, (name,))
        for place, (step,) in SENDERS["embedding"](program).items():
            name = _computed(program, step)
            self._rows[name] = Rows("embedding", place, name, (name,), reads=False)
        layers = (f"{place}.output" for place in SENDERS["feed_forward"](program))
        self._layers = {name for name in layers if name in program.by_name}
        waiting, seen = [start], set[str]()
        while waiting:
            name = waiting.pop()
            if name in program.by_name and name not in seen:
                seen.add(name)
                waiting += self._behind(name)

    def _behind(self, name: str) -> Sequence[str]:
        """The steps before a step; where a site is there, those that it reads."""
        program = self.held.program
        step = program.by_name[name]
        if name in self._rows:
            site = self.found[name] = self._rows[name]
            return (followed(program, step) or ()) if site.reads else ()
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
        known = self.found.get(step.name)  # of a cross-layer transcoder, a layer later
        if known is None:
            tokens, numbers = np.nonzero(self._values(step.name))
            place = step.name.removesuffix(FEATURES)
            known = Units("feature", place, step.name, (), encoder.name, tokens=tokens, numbers=numbers)
        self.found[step.name] = replace(known, taken=(*known.taken, product))
        return encoder.inputs[:1]

    def _layer(self, step: Step) -> Sequence[str]:
        """A feed-forward layer, or one of experts, of which all, or the strongest neurons and the rest."""
        place, parts = step.sublayer, self._parts(step) if self.neurons else ()
        if not parts:
            outside = self._inside(step)
            reads = bool(outside)
            kind: Kind = "feed_forward" if reads else "error"
            self.found[step.name] = Rows(kind, place, step.name, (step.name,), reads=reads)
            return outside
        units = tuple(self._strongest(parts))
        for each in units:
            self.found[each.step] = each
        self.found[f"{step.name} rest"] = Rows("error", place, step.name, (step.name,), reads=False, units=units)
        return [inner(self.held.program.by_name[part.encoder]).inputs[0] for part in parts]

    def _inside(self, step: Step) -> tuple[str, ...]:
        """What a feed-forward layer reads from outside, where all in it can be followed; else nothing."""
        program, outside, waiting = self.held.program, dict[str, None](), [step.name]
        while waiting:
            name = waiting.pop()
            own = program.by_name[name]
            if not name.startswith(f"{step.sublayer}.") or reads_features(program, own) or _is_error(program, name):
                outside[name] = None
                continue
            before = followed(program, own)
            if before is None:
                return ()
            waiting += [each for each in before if each in program.by_name]
        return tuple(outside)

    def _parts(self, step: Step, after: tuple[str, ...] = (), shares: str = "", expert: int = 0) -> list[Units]:
        """The neurons of a layer, or of every expert, none of them chosen; [] where something is made otherwise.

        They go `through` their product and the steps `after` it to the layer, where they are taken.
        """
        program, own, through = self.held.program, inner(step), (step.name, *after)
        sources = [program.by_name[name] for name in step.inputs if name in program.by_name]
        found: list[list[Units]] | None = None
        if isinstance(step.op, ops.WeightedExperts):
            router, *products = sources
            found = [self._parts(each, through, router.name, number) for number, each in enumerate(products)]
        elif isinstance(step.op, ops.Add) and all(isinstance(each.op, ops.WeightedExperts) for each in sources):
            found = [self._parts(each, through) for each in sources]
        if found is not None:
            return list(chain(*found)) if all(found) else []
        before = program.by_name.get(own.inputs[0])
        if not isinstance(own.op, ops.Linear) or before is None or before.axes[-1].name != NEURONS:
            return []
        op = inner(before).op
        place = next((place for kind, place in READ.items() if isinstance(op, kind)), None)
        hidden = None if place is None else program.by_name[before.inputs[place]]
        if hidden is None or not isinstance(inner(hidden).op, ops.Linear):
            return []
        units = Units("neuron", step.sublayer, before.name, through[-1:], hidden.name, through=through)
        return [replace(units, shares=shares, expert=expert)]

    def _strongest(self, parts: Sequence[Units]) -> Iterator[Units]:
        """The neurons that write most at every token, share · |a| ‖W₂ row‖ (of a layer that is no expert, share 1)."""
        found = [self._candidates(part) for part in parts]
        which = np.repeat(np.arange(len(parts)), [len(sizes) for *_, sizes in found])
        tokens, numbers, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.lexsort((-sizes, tokens))
        rank = np.arange(len(order)) - np.searchsorted(tokens[order], tokens[order])
        kept = order[rank < self.neurons]
        for i, part in enumerate(parts):
            own = kept[which[kept] == i]
            own = own[np.lexsort((numbers[own], tokens[own]))]
            if len(own):
                yield replace(part, tokens=tokens[own], numbers=numbers[own])

    def _candidates(self, part: Units) -> tuple[Host, Host, Host]:
        """Tokens, numbers and sizes of the neurons of a part that may be among them: so many a token."""
        held, values = self.held, self._values(part.step)
        shares = np.ones(len(values))
        if part.shares:
            shares = np.abs(self._values(part.shares)[:, part.expert])
        rows = np.flatnonzero(shares)
        if not len(rows):  # the weights of an expert that no token chose are not read
            return rows, rows, np.zeros(0)
        values, weight = values[rows], held.program.by_name[part.through[0]].inputs[1]
        lengths = np.linalg.norm(held.backend.to_host(held.value(weight)).astype(np.float64), axis=1)
        sizes = np.abs(values) * lengths * shares[rows, None]
        numbers = np.argsort(-sizes, axis=1, kind="stable")[:, : self.neurons]
        at = np.repeat(np.arange(len(rows)), numbers.shape[1]), numbers.reshape(-1)
        there = values[at] != 0.0
        return rows[at[0]][there], at[1][there], sizes[at][there]

    def _values(self, name: str) -> Host:
        return self.held.backend.to_host(self.held.value(name)[0])


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
