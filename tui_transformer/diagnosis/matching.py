"""Arrays of a dump beside the steps that they are: by name, by shape, and where these leave a choice, by value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from tui_transformer.diagnosis.dumps.dump import FLOAT32_UNIT, Dump, Tensor, Values, part_of
from tui_transformer.diagnosis.dumps.headings import Heading
from tui_transformer.diagnosis.entries import (
    Entry,
    Layout,
    Misfit,
    Planned,
    entry_of,
    given_of,
    joined,
    layouts,
    weight_of,
)
from tui_transformer.diagnosis.naming import Names, Target
from tui_transformer.diagnosis.naming.conventions import LOGITS, last_logits, stacks
from tui_transformer.diagnosis.naming.words import last, spelled
from tui_transformer.diagnosis.reference_values import Reference
from tui_transformer.engine.axis import shape_of, shape_text
from tui_transformer.engine.ops import DistanceBias
from tui_transformer.records import dataclass, field, replace

MOST_ALIKE = 4
"""Matrices under one heading, for every head of every layer."""

MOST_PARTS = 3
"""Parts of a layer that have a step of the same name: norms, sums."""

HUGE = 1e9
"""Scores as large as this stand for −∞."""

MOST_TIMES = 8
"""An array may be wider than its step, as what is fused is, but not by more."""


@dataclass(frozen=True)
class Matched:
    """Entries in the order of the program, and what every array of the dump was taken for, in its order."""

    entries: tuple[Entry, ...]
    plan: tuple[Planned, ...]

    @property
    def misfits(self) -> tuple[Misfit, ...]:
        """What is called a step and has not its shape."""
        return tuple(misfit for each in self.plan for misfit in each.misfits)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """What has numbers that are not compared, each with the reason."""
        return tuple(f"{each.theirs}: {each.reason}" for each in self.plan if each.reason)


MUCH = 2.0
"""What is so many times as near is rather meant."""


def match(dump: Dump, names: Names, reference: Reference) -> Matched:
    """Every array of a dump that is a step; layers and heads counted from 0, or from 1 where they show that."""
    heads_of = (step.axes[0].size for step in reference.program.steps if step.axes and step.axes[0].name == "head")
    layers, heads = max((stack.layers for stack in stacks(reference.program)), default=0), max(heads_of, default=0)
    said = [_numbers(tensor, names) for tensor in dump.tensors.values()]
    firsts = product(_firsts({layer for layer, _ in said}, layers), _firsts({head for _, head in said}, heads))
    program = reference.program
    steps = (math.prod(shape_of(step.axes)) * reference.batch for step in program.steps)
    most = MOST_TIMES * max(*steps, *(math.prod(program.shape(name)) for name in program.weights), 1)
    ways = [Matching(dump, names.counted_from(*first), reference, (layers, heads), most).matched() for first in firsts]
    return max(ways, key=lambda each: sum(planned.agrees for planned in each.plan))


def _firsts(numbers: set[int | None], count: int) -> tuple[int, ...]:
    """The number of the first layer or head, as the numbers of a dump show it; both where they leave it open."""
    there = {number for number in numbers if number is not None}
    if not there or 0 in there:
        return (0,)
    return (1,) if max(there) >= count else (0, 1)


def _numbers(tensor: Tensor, names: Names) -> tuple[int | None, int | None]:
    """The layer and the head that an array says by its heading or its name, as they are counted there."""
    heading = tensor.heading
    if heading is None or (heading.path and names.find(heading.path)):
        return names.numbers(tensor.name)
    return int(heading.layer) if heading.layer else None, int(heading.head) if heading.head else None


@dataclass(frozen=True, eq=False)
class Matching:
    """The arrays of a dump beside the steps of a program.

    Attributes:
        sizes: How many layers and heads there are.
        most: Numbers of an array that may be anything of the model.
        taken: Steps that arrays before are, and the heads of them.
        usual: How often the axes of a kind of step were so.
    """

    dump: Dump
    names: Names
    reference: Reference
    sizes: tuple[int, int]
    most: int
    taken: set[tuple[str, int | None]] = field(default_factory=set)
    usual: Counter[tuple[str, str]] = field(default_factory=Counter)

    def matched(self) -> Matched:
        """What every array is."""
        resolved = [each for group in self._groups() for each in self._resolved(group)]
        entries = sorted(
            self._last([*joined(entry for each in resolved for entry in each.entries)]),
            key=lambda entry: self.reference.program.places[entry.step],
        )
        place = {name: i for i, name in enumerate(self.dump.tensors)}
        resolved.sort(key=lambda each: place.get(each.theirs, len(place)))
        refused = [Planned(name, None, reason=reason) for name, reason in self.dump.refused.items()]
        return Matched(tuple(entries), (*resolved, *refused))

    def _last(self, entries: Collection[Entry]) -> Iterator[Entry]:
        """Logits that are the last of a dump are those that the model gives, though they are there before the cap."""
        program = self.reference.program
        first, *before = last_logits(program) or ("",)
        after = program.downstream(before) - {*before}
        is_last = not any(entry.step in after for entry in entries)
        for entry in entries:
            given = is_last and entry.step in before and spelled(entry.theirs) in LOGITS
            yield replace(entry, step=first, assumed=()) if given else entry

    def _groups(self) -> Iterator[list[Tensor]]:
        """The arrays; those that came again and again under one heading together."""
        groups: dict[Heading, list[Tensor]] = {}
        for tensor in self.dump.tensors.values():
            if tensor.heading is None:
                yield from ([part] for part in self._single(tensor))
            else:
                groups.setdefault(tensor.heading.key, []).append(tensor)
        for group in groups.values():
            yield from ([[part] for part in self._single(group[0])] if len(group) == 1 else [group])

    def _single(self, tensor: Tensor) -> Iterator[Tensor]:
        """The array, or where it holds a layer each along its first axis, these."""
        count = tensor.shape[0] if tensor.shape else 0
        if len(tensor.shape) > 2 and count > 1 and not any(map(self.names.find, tensor.readings)):
            parts = [self.names.find(f"{tensor.name}.{i}") for i in range(count)]
            if all(parts) and len({targets[0].steps for targets in parts}) == count:
                yield from (part_of(tensor, i, f"{tensor.name}[{i}]") for i in range(count))
                return
        yield tensor

    def _resolved(self, group: Sequence[Tensor]) -> list[Planned]:
        """What the arrays under one heading are: of the ways in which they can be meant, the one that fits best."""
        layers, heads = self.sizes
        heading = group[0].heading
        if heading is None or len(group) == 1:
            return [self._one(group[0], group[0].readings)]
        if len(group) > MOST_ALIKE * max(1, layers) * max(1, heads):
            reason = f"comes {len(group):,} times: which step each is, cannot be told"
            return [Planned(each.name, each.shape, reason=reason) for each in group]
        ways = []
        for way in self._ways(heading, len(group), layers, max(1, heads)):
            trial = replace(self, taken={*self.taken})
            found = [trial._one(each, way(i)) for i, each in enumerate(group)]
            fits = sum(each.agrees for each in found), sum(not each.reason for each in found)
            ways.append((fits, found, trial.taken))
        _, found, taken = max(ways, key=lambda each: each[0])
        self.taken.update(taken)
        return found

    def _ways(self, heading: Heading, count: int, layers: int, heads: int) -> Iterator[Callable[[int], list[str]]]:
        """Names of the i-th matrix under a heading that comes so many times: of heads, layers and parts in turn."""
        layers = 1 if heading.layer else layers
        first_layer, first_head = self.names.first

        def named(layer: int, head: int | None, text: str) -> list[str]:
            at = str(layer + first_layer)
            return replace(heading, text=text).readings(at, "" if head is None else str(head + first_head))

        if not heading.head and count % heads == 0 and count // heads <= layers:
            yield lambda i: named(i // heads, i % heads, heading.text)
        if not heading.layer and count <= layers:
            yield lambda i: named(i, None, heading.text)
        if layers and count % layers == 0 and 1 < count // layers <= MOST_PARTS:
            parts = count // layers
            yield lambda i: named(i // parts, None, f"{heading.text} {i % parts + 1}")
        yield lambda _: heading.readings()

    def _one(self, tensor: Tensor, readings: Sequence[str]) -> Planned:
        """What an array is that goes by these names; one that can be nothing of the model is not read."""
        plan, is_read = partial(Planned, tensor.name, tensor.shape), math.prod(tensor.shape) <= self.most
        if is_read and (given := given_of(tensor, self.reference)):
            return given
        readings = [tensor.name] if tensor.name in self.names.own else readings
        candidates: list[Candidate] = []
        misfits = []
        for i, reading in enumerate(readings):
            found = self.names.find(reading, spoken=tensor.heading is not None)
            targets = [each for each in found if each.unless not in self.dump.tensors]
            fitting = [list(self._candidates(tensor, each, 0 if len(targets) > 1 else i)) for each in targets]
            misfits += [self._misfit(tensor, each) for each, some in zip(targets, fitting, strict=True) if not some]
            if len(targets) > 1:  # several steps side by side
                bests = [self._best(each) for each in fitting]
                here = [self._misfit(tensor, each) for each, best in zip(targets, bests, strict=True) if best is None]
                made = self._build([best for best in bests if best is not None], tensor)
                return replace(made, reason=here[0][2], misfits=tuple(here)) if here else made
            candidates += [each for some in fitting for each in some]
        if tensor.shapeless and not candidates:
            return self._by_count(tensor, misfits)
        best = self._best(candidates)
        if is_read and (best is None or not best.agrees):
            steps = [step for reading in readings for each in self.names.find(reading) for step in each.steps]
            if weight := weight_of(tensor, steps, self.reference):
                return plan(weight, "a weight of the model", agrees=True)
        if best is None:
            reason = self._out_of_range(tensor) or (misfits[0][2] if misfits else "no step of this name")
            return plan(reason=reason, misfits=tuple(misfits[:1]))
        if best.key in self.taken and not best.agrees and tensor.heading is not None and tensor.heading.number > 1:
            return plan(reason=f"ambiguous: {best.step} has come before")
        return self._build([best], tensor)

    def _misfit(self, tensor: Tensor, target: Target) -> Misfit:
        step = target.steps[0]
        ours = shape_of(self.reference.program.by_name[step].axes)
        return step, tensor.name, f"{shape_text(tensor.shape) or '1'} does not fit {shape_text(ours) or '1'}"

    def _build(self, chosen: Sequence[Candidate], tensor: Tensor) -> Planned:
        self.taken.update(each.key for each in chosen)
        entries = tuple(entry_of(tensor, each.target, each.step, each.layout, self.reference) for each in chosen)
        assumed = "; ".join(words for each in entries for _, words in each.assumed)
        steps, agrees = ", ".join(each.step for each in entries), all(each.agrees for each in chosen)
        return Planned(tensor.name, tensor.shape, steps, assumed, entries=entries, agrees=agrees)

    def _best(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The array as the step that it is: of several that it may be, the first whose values are there."""
        agreeing = [each for each in candidates if each.agrees]
        if agreeing:
            best = min(agreeing, key=lambda each: each.key in self.taken)
            self.usual[self._kind(best)] += 1
            return best

        def unusual(each: Candidate) -> tuple[bool, int, bool, int, float]:
            """How far it is from what the name says, from how others are read, and from the right values."""
            ours = self.reference.value(each.step)
            both = np.isfinite(ours) & np.isfinite(each.layout.array)
            far = float(np.abs(np.where(both, each.layout.array, 0.0) - np.where(both, ours, 0.0)).sum())
            other = each.step != each.target.steps[0]
            return each.key in self.taken, each.reading, other, -self.usual[self._kind(each)], far

        return min((each for each in candidates if each.layout.natural), key=unusual, default=None)

    def _kind(self, each: Candidate) -> tuple[str, str]:
        axes = self.reference.program.by_name[each.step].axes
        return " × ".join(axis.name for axis in axes), each.layout.assumed

    def _candidates(self, tensor: Tensor, target: Target, reading: int) -> Iterator[Candidate]:
        """The steps and axes that an array can be; none after the first whose values are there.

        Of few bits so much is granted that more than one may seem to be there: then the nearest of them.
        """
        reference = self.reference
        nearest: tuple[float, Candidate] | None = None
        sizes = [math.prod(shape_of(reference.program.by_name[step].axes)) for step in target.steps]
        if math.prod(tensor.shape) > MOST_TIMES * self.reference.batch * max(sizes):
            return  # and it is not read: a small file may hold very many
        for step in target.steps:
            axes = reference.program.by_name[step].axes
            values = _of_all(tensor.values, step, reference)
            fitting = tuple(layouts(values, axes, reference.batch, target, fastest_first=tensor.fastest_first))
            for layout in (*fitting, *_moved(step, fitting, reference)):
                found = reference.difference(step, layout.array, layout.known, values.precision)
                each = Candidate(target, step, layout, not found.beyond, reading)
                if found.beyond:
                    yield each
                elif values.precision.unit <= FLOAT32_UNIT:
                    yield each
                    return
                elif nearest is None or found.rms < nearest[0] / MUCH:
                    nearest = found.rms, each
        if nearest is not None:
            yield nearest[1]

    def _by_count(self, tensor: Tensor, misfits: Sequence[Misfit]) -> Planned:
        """A file without a shape: the one step that has so many numbers."""
        sizes = {step.name: step.axes for step in self.reference.program.steps if not step.op.integer}
        cells, batch = tensor.shape[0], self.reference.batch
        fitting = [name for name, axes in sizes.items() if math.prod(shape_of(axes)) * batch == cells]
        if len(fitting) == 1 and not misfits:
            target = Target((fitting[0],), note=f"no other step has {cells:,} numbers")
            if best := self._best(list(self._candidates(tensor, target, 0))):
                return self._build([best], tensor)
        step = misfits[0][0] if misfits else next(iter(fitting), "")
        shape = list(shape_of(sizes[step])) if step else [7, 16]
        reason = f"{len(fitting)} steps have so many" if fitting else "no step has so many"
        reason = f"{step}, as it is called, has {math.prod(shape):,}" if misfits else reason
        said = (
            f"{cells:,} numbers: {reason}: name the file after its step, and say its shape in shapes.json beside it: "
            f'{{"{tensor.name}": {shape}}}'
        )
        return Planned(tensor.name, tensor.shape, reason=said, misfits=tuple(misfits[:1]))

    def _out_of_range(self, tensor: Tensor) -> str:
        """A layer or a head that the model has not; "" where it has them."""
        layers, heads = self.sizes
        layer, head = _numbers(tensor, self.names)
        for kind, number, first, count in (
            ("layer", layer, self.names.first[0], layers),
            ("head", head, self.names.first[1], heads),
        ):
            if number is not None and not first <= number < first + count:
                return f"{kind} {number}: the model has {count} {kind}s, and they are counted from {first}"
        return ""


def _of_all(values: Values, step: str, reference: Reference) -> Values:
    """What is the same of every sentence, and in the dump once, of all: positions, distances."""
    batch, shape = reference.batch, shape_of(reference.program.by_name[step].axes)
    if batch == 1 or values.array.size != math.prod(shape):
        return values
    ours = reference.value(step)
    if not np.array_equal(ours, np.broadcast_to(ours[:1], ours.shape), equal_nan=True):
        return values
    return values.mapped(lambda array: np.stack([np.squeeze(array)] * batch))


def _moved(step: str, fitting: Iterable[Layout], reference: Reference) -> Iterator[Layout]:
    """Scores with distances counted as positions of the keys: rows are moved by constants, which softmax takes out."""
    sublayer = step.rpartition(".")[0]
    biased = reference.program.by_name.get(f"{sublayer}.biased")
    if last(step) not in ("biased", "masked") or biased is None or not isinstance(biased.op, DistanceBias):
        return
    ours, hidden = reference.value(step), np.isneginf(reference.value(f"{sublayer}.masked"))
    if last(step) == "biased" and hidden.any():
        says = "scores that the mask hides are not compared"
        kept = [np.where(hidden & ~np.isnan(each.array), ours, each.array) for each in fitting]
        fitting = [_said(replace(each, array=array), says) for each, array in zip(fitting, kept, strict=True)]
        yield from fitting
    for layout in fitting:
        both = np.isfinite(ours) & np.isfinite(layout.array) & (np.abs(layout.array, dtype=np.float64) < HUGE) & ~hidden
        by = np.where(both, layout.array - np.where(both, ours, 0.0), -np.inf).max(axis=-1, keepdims=True)
        by = np.where(np.isfinite(by) & ~(hidden & np.isfinite(ours)), by, 0.0)
        yield _said(replace(layout, array=layout.array - by), "rows are moved by constants, which softmax takes out")


def _said(layout: Layout, words: str) -> Layout:
    return replace(layout, assumed="; ".join(filter(None, (layout.assumed, words))))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A step that an array may be, with its axes in an order; `reading`: which of its names says so."""

    target: Target
    step: str
    layout: Layout
    agrees: bool
    reading: int

    @property
    def key(self) -> tuple[str, int | None]:
        """The step, and the head of it."""
        return self.step, self.target.head if self.layout.known is not None else None


__all__ = ["Entry", "Matched", "Planned", "match"]
