"""Targets of ablation: a head, a layer, a position or a neuron, by name, and the edits that take it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tui_transformer.engine.axis import slices, whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import Set
from tui_transformer.engine.edits import Ablate, Change
from tui_transformer.engine.ops import Context, Linear, OfExpert
from tui_transformer.engine.program import FEATURE, Program, Step
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

EXAMPLES = "head:encoder.0.self_attention:3, layer:encoder.2, position:4 or neuron:encoder.0.feed_forward:17"
FEATURES = ".features"
"""How the names of steps of features end."""
START = "embedding.output"
NEURONS = "feed-forward"
"""The axis of the neurons."""

SHOWN = 6


@dataclass(frozen=True)
class Target:
    """A head, layer, position, neuron or feature that can be ablated; as text `head:encoder.0.self_attention:3`.

    `place` is the attention, layer or feed-forward sublayer that it is in; of a position, the layer that its row
    enters, "" for the first; of a feature, the step that a dictionary reads. `number` counts from 0; None for a layer.
    """

    kind: str
    place: str
    number: int | None = None

    def __str__(self) -> str:
        return ":".join(filter(None, (self.kind, self.place, "" if self.number is None else str(self.number))))

    def edits(
        self, program: Program, *, mean: bool = False, means: Mapping[str, Host] | None = None
    ) -> tuple[Change, ...]:
        """The edits that set it to 0, to its mean over the positions, or to a mean over a data set.

        A head: its rows of the context, so that it adds nothing to the concat (Michel et al. 2019, §2.3). A layer: what
        its sublayers add to the residual stream. A position: its row of the stream that enters a layer. A neuron: its
        column of what the second matrix of the feed-forward layer reads. A feature: its column, and so what it writes.

        With `mean` it is the mean over the positions instead of 0, and with `means`, (heads ×) 1 × columns, those.

        Raises:
            InputError: The program has no such target, or no mean of its step is given.
        """
        kind, changes = _kind(self.kind), list[Change]()
        for name in self.steps(program):
            region = list(whole(program.shape(name)))
            if kind.axis is not None and self.number is not None:
                count = kind.count(program, name)
                if self.number >= count:
                    raise InputError(f"{name} has no {kind.name} {self.number}: use 0 to {count - 1}")
                region[kind.axis] = range(self.number, self.number + 1)
            if means is None:
                changes.append(Ablate(name, tuple(region), mean))
                continue
            if name not in means:
                raise InputError(f"there is no mean of {name}")
            row = means[name][slices((*region[:-2], range(1), region[-1]))[1:]]
            heads, rows, columns = [None] * (3 - len(region)) + region
            changes.append(Set(name, row, heads, rows, columns))
        return tuple(changes)

    def steps(self, program: Program) -> Sequence[str]:
        """The own names of the steps that are set.

        Raises:
            InputError: The program has no such place.
        """
        return tuple(program.step(name).name for name in _kind(self.kind).steps(program, self.place))


@dataclass(frozen=True)
class Kind:
    """One kind of target: every place (called `what`) that has such targets, and the steps that are set there.

    `axis` is the one that its number counts, from the end; None where the whole step is the target.
    """

    name: str
    axis: int | None
    what: str
    places: Callable[[Program], Mapping[str, Sequence[str]]]

    def steps(self, program: Program, place: str) -> Sequence[str]:
        """The steps that are set for a place.

        Raises:
            InputError: There is no such place.
        """
        places = self.places(program)
        if not places:
            raise InputError(f"the model has no {self.name}s that can be ablated")
        if place not in places:
            names = list(filter(None, places))
            more = f" … {names[-1]}" if len(names) > SHOWN else ""
            raise InputError(f"there is no {self.what} {place[:80]!r}: use {', '.join(names[:SHOWN])}{more}")
        return places[place]

    def count(self, program: Program, step: str) -> int:
        """How many targets of the kind a step has."""
        return 1 if self.axis is None else program.shape(step)[self.axis]


def parse(text: str) -> Target:
    """A target as `str` writes it; blanks may stand for the colons.

    Raises:
        InputError: It is not a target.
    """
    name, *rest = re.split(r"[:\s]+", text.strip())
    kind = _kind(name)
    number = rest.pop() if kind.axis is not None and rest else None
    if len(rest) > 1 or (number is not None and not re.fullmatch(r"[0-9]{1,9}", number)):
        raise InputError(f"{text[:80]!r} is not a {name}: write {EXAMPLES}")
    if (number is None) != (kind.axis is None):
        raise InputError(f"{text[:80]!r} does not say which {name}: write {EXAMPLES}")
    return Target(name, rest[0] if rest else "", None if number is None else int(number))


def every(program: Program, scope: str = "head") -> tuple[Target, ...]:
    """All targets of a kind, as "head" or "layer", or those of one place, as "neuron:encoder.0.feed_forward".

    Raises:
        InputError: There are none.
    """
    name, _, place = scope.partition(":")
    kind = _kind(name)
    places = list(kind.places(program)) if not place and name != "position" else []
    targets: list[Target] = []
    for each in places or [place]:
        count = kind.count(program, kind.steps(program, each)[0])
        numbers = (None,) if kind.axis is None else range(count)
        targets += (Target(kind.name, each, number) for number in numbers)
    return tuple(targets)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise InputError(f"{name[:80]!r} is not a head, layer, position, neuron or feature: write {EXAMPLES}")
    return KINDS[name]


# Where the kinds are


def is_context(step: Step) -> bool:
    """True for the weighted values of heads, however they are computed."""
    return isinstance(getattr(step.op, "of", step.op), Context)  # in a broken model multiplied by a number


def _layers(program: Program) -> Mapping[str, Sequence[str]]:
    """Layer → what its sublayers add to the residual stream."""
    added: dict[str, list[str]] = {}
    for step in program.steps:
        if step.role == "residual":
            added.setdefault(step.layer, []).extend(step.inputs[1:])
    return added


def _streams(program: Program) -> Mapping[str, Sequence[str]]:
    """Layer → the residual stream that enters it; "" → the first of the model."""
    streams: dict[str, Sequence[str]] = {"": (START,)} if START in program.names else {}
    for layer in _layers(program):
        stack, _, number = layer.partition(".")
        first = f"{stack}.{START}" if f"{stack}.{START}" in program.names else START
        streams[layer] = (first if number == "0" else f"{stack}.{int(number) - 1}.output",)
    return streams


def _neurons(program: Program) -> Mapping[str, Sequence[str]]:
    """Feed-forward sublayer → the activation (gated, where it is) that its second matrix reads."""
    ops = ((step, step.op.op if isinstance(step.op, OfExpert) else step.op) for step in program.steps)
    products = (step for step, op in ops if isinstance(op, Linear) and step.axes[-1].name != FEATURE)
    return {step.sublayer: (step.inputs[0],) for step in products if program.axes(step.inputs[0])[-1].name == NEURONS}


def _features(program: Program) -> Mapping[str, Sequence[str]]:
    steps = (step.name for step in program.steps if step.axes[-1].name == FEATURE)
    return {name.removesuffix(FEATURES): (name,) for name in steps if name.endswith(FEATURES)}


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("head", -3, "attention", lambda program: {s.sublayer: (s.name,) for s in program.steps if is_context(s)}),
        Kind("layer", None, "layer", _layers),
        Kind("position", -2, "layer", _streams),
        Kind("neuron", -1, "feed-forward layer", _neurons),
        Kind("feature", -1, "step with features", _features),
    )
}
