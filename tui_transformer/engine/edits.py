"""Edits: cells of a step or weight that are set instead of computed, for experiments with what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from tui_transformer.engine.axis import Places, Region, Shape, as_range, cells, overlap, shape_text, whole, within
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.program import Program, array_of_numbers, check_index, checked_region, step_of_numbers
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field, replace

VISIBLE = "input.visible"
KINDS = ("head", "row", "column")
Givens = Mapping[str, Host]


class Traced(Protocol):
    """The source of a patch: a trace."""

    @property
    def program(self) -> Program: ...

    @property
    def batch(self) -> int: ...

    def window(self, name: str, region: Region, item: int = 0) -> Host: ...


class Change(Protocol):
    """Cells of one step or weight that are set. Regions and indices do not count the batch axis."""

    @property
    def name(self) -> str:
        """The step or weight."""

    @property
    def region(self) -> Region:
        """The cells that are set."""

    @property
    def how(self) -> str:
        """How they were set, in words that stand behind a value."""

    def placed(self, program: Program, givens: Givens) -> Change:
        """The same change, under the step's own name, checked against a program and its inputs.

        Raises:
            InputError: There is no such step or cell, or it cannot hold the value.
        """

    def widen(self, region: Region) -> Region:
        """The cells that have to be there for the change to be made in `region`."""

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        """Set the cells in `array`, which holds `region` (behind a batch axis, where the step has one)."""

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        """Make the gradient by the changed cells of a region that by the cells before, in place."""


@runtime_checkable
class Several(Protocol):
    """What may be several changes: of steps that a pattern names, or of heads, rows or columns in a list."""

    def each(self, program: Program) -> Iterable[Change]:
        """The changes, each of one step and without gaps."""


def single(changes: Iterable[Change], program: Program) -> Iterator[Change]:
    """Changes, each of one step and of cells without gaps.

    Raises:
        UsageError: They are no list of changes.
    """
    listed = list(changes) if isinstance(changes, Iterable) else [None]
    if not all(hasattr(change, "placed") for change in listed):
        raise UsageError("edits are a list of Edit, Ablate, Patch, Set, Add, Scale, Project or Apply: [Set(…), …]")
    for change in listed:
        yield from change.each(program) if isinstance(change, Several) else (change,)


class Setting:
    """What sets cells to something that does not depend on them."""

    def widen(self, region: Region) -> Region:
        return region

    def pass_back(self: Change, backend: Backend, gradient: Array, region: Region) -> None:
        """Nothing passes through what was set."""
        gradient[inside(self.region, region)] = 0.0


@dataclass(frozen=True)
class Edit(Setting):
    """One cell of a step or weight set to a value."""

    how: ClassVar[str] = "set by hand"
    name: str
    index: Index
    value: float

    @property
    def region(self) -> Region:
        """The cell."""
        return tuple(range(i, i + 1) for i in self.index)

    def placed(self, program: Program, givens: Givens) -> Self:
        """Checked: the cell is there, and can hold the value."""
        edit = replace(self, name=program.named(self.name))
        check_index(program, edit.name, edit.index)
        if edit.name in givens:
            raise InputError(f"{edit.name} is an input: set a step or a weight")
        if math.isnan(edit.value):
            raise InputError(f"{edit.name} can be set to a number, not to NaN")
        if edit.name in program.by_name and program.by_name[edit.name].op.integer:
            limit = min(program.shape(reader.inputs[1])[0] for reader in program.readers(edit.name))
            if not (0 <= edit.value < limit and float(edit.value).is_integer()):  # what reads it has no such row
                raise InputError(f"{edit.name} holds whole numbers from 0 to {limit - 1}, not {edit.value:g}")
        return edit

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        array[inside(self.region, region)] = self.value


@dataclass(frozen=True)
class Ablate(Setting):
    """A region of a step set to 0, or every column of it to its mean over the positions (padding left out).

    The mean is that of the values before all changes, of the same head and column, and a constant to gradients.
    """

    name: str
    region: Region
    mean: bool = False
    counted: Host | None = field(default=None, compare=False, repr=False)
    """Batch × rows: the positions that the mean is over; filled in by `placed`."""
    read: Callable[[Region], Host] | None = field(default=None, compare=False, repr=False)
    """The values before all changes, where others change them; filled in by `with_means`."""

    @property
    def how(self) -> str:
        return "ablated to the mean" if self.mean else "ablated to 0"

    def placed(self, program: Program, givens: Givens) -> Self:
        """Checked: the region lies in a step of numbers, or without a mean in a weight."""
        name = checked_region(program, self.name, self.region)
        if self.mean and (name in program.weights or len(program.axes(name)) < 2):
            what = "is a weight" if name in program.weights else "has no rows"
            raise InputError(f"{name} {what}: it has no mean over positions")
        return replace(self, name=name, counted=_counted(program, name, givens) if self.mean else None, read=None)

    def widen(self, region: Region) -> Region:
        return region if self.counted is None else _all_rows(region, self.counted)

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        """Set the cells to 0, or to the means of their columns, batch (× heads) × 1 × columns."""
        place, counted = inside(self.region, region), self.counted
        if counted is None:
            array[place] = 0.0
            return
        lines = array[inside(_all_rows(self.region, counted), region)]
        if self.read is not None:
            lines = backend.floats(self.read(_all_rows(overlap(self.region, region), counted)))
        mask = backend.booleans(counted).reshape(len(counted), *(1,) * (len(region) - 2), -1, 1)
        count = backend.floats(counted.sum(axis=1)).reshape(len(counted), *(1,) * len(region))
        array[place] = backend.xp.where(mask, lines, 0.0).sum(axis=-2, keepdims=True) / count


def kept(values: npt.ArrayLike) -> npt.ArrayLike:
    """Values as they are now: a copy of an array that can be written to, as a trace reads them when it computes."""
    if not isinstance(values, np.ndarray) or not values.flags.writeable:
        return values
    values = values.copy()
    values.flags.writeable = False
    return values


def _given(values: Host, region: Region, part: Region) -> Host:
    return values[None][within(part, region)]


def _elsewhere(trace: Traced, name: str, part: Region) -> Host:
    return np.stack([trace.window(name, part, item) for item in range(trace.batch)])


def _of_item(read: Callable[[Region], Host], item: int, part: Region) -> Host:
    """Of the values of a batch, or of all of its sentences together, those of one sentence."""
    values = read(part)
    return values[item : item + 1] if len(values) > 1 else values


@dataclass(frozen=True)
class Patch(Setting):
    """A region of a step with values from elsewhere.

    `read` gives the values of a part of the region, behind a batch axis as long as the trace's or of 1.
    """

    name: str
    region: Region
    read: Callable[[Region], Host] = field(repr=False)
    fits: Shape | None = None
    """The shape that the step has to have; None where the region alone says what is read."""

    @property
    def how(self) -> str:
        return "patched"

    @classmethod
    def of(cls, name: str, values: npt.ArrayLike, region: Region | None = None) -> Self:
        """An array of the shape of a step or weight in place of it, or of a region; or one of the region's shape.

        The array has no batch axis. That it fits is checked when the step is known.
        """
        given = np.asarray(kept(values))
        if region is not None and given.shape == tuple(map(len, region)):
            return cls(name, region, partial(_given, given, region))
        asked = whole(given.shape) if region is None else region
        return cls(name, asked, partial(_given, given, whole(given.shape)), given.shape)

    @classmethod
    def between(cls, trace: Traced, other: Traced, name: str, rows: Places = None, heads: Places = None) -> Self:
        """Values of another trace in a step, or in the same rows or heads of it (by default all).

        Raises:
            InputError: No such step, rows or heads in one of the two, or shapes that do not fit.
        """
        step = step_of_numbers(trace.program, name)
        here, there = step.shape, other.program.shape(step.name)
        if here[-1] != there[-1]:
            raise InputError(
                f"{step.name} is {shape_text(here)} here and {shape_text(there)} there: the last axis differs"
            )
        if other.batch not in (1, trace.batch):
            raise InputError(f"{other.batch} sentences cannot patch {trace.batch}: use one, or as many")
        if heads is not None and len(here) < 3:
            raise InputError(f"{step.name} has no heads: leave them out")
        region: list[range] = []
        asked = (as_range("heads", heads), as_range("rows", rows), None)[-len(here) :]
        for kind, part, own, size in zip(KINDS[-len(here) :], asked, here, map(min, here, there), strict=True):
            if part is None and size < max(own, there[len(region)]):
                texts = f"{shape_text(here)} here and {shape_text(there)} there"
                raise InputError(f"{step.name} is {texts}: name {kind}s that both have")
            if part is not None and not 0 <= part.start < part.stop <= size:
                missing = part.start if part.start not in range(size) else part.stop - 1
                raise InputError(f"{step.name} has no {kind} {missing} in both: use 0 to {size - 1}")
            region.append(range(own) if part is None else part)
        return cls(step.name, tuple(region), partial(_elsewhere, other, step.name))

    def placed(self, program: Program, givens: Givens) -> Self:
        """Checked: the region lies in a step of numbers or a weight, and the values have its shape or that of all."""
        name, shape = array_of_numbers(program, self.name)
        if self.fits not in (None, shape):
            there = shape_text(self.fits or ())
            raise InputError(f"{name} is {shape_text(shape)}: values of {there} fit neither it nor the region")
        return replace(self, name=checked_region(program, self.name, self.region))

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        part = overlap(self.region, region)
        values = self.read(part)
        array[inside(part, region)] = backend.floats(values[0] if array.ndim == len(region) else values)


@dataclass(frozen=True)
class OfSentence:
    """A change of one sentence of a batch, and of no other."""

    change: Change
    item: int

    @property
    def name(self) -> str:
        return self.change.name

    @property
    def region(self) -> Region:
        return self.change.region

    @property
    def how(self) -> str:
        return self.change.how

    def placed(self, program: Program, givens: Givens) -> Self:
        """Checked as the change; a weight is the same for all sentences."""
        change = self.change.placed(program, givens)
        if change.name in program.weights:
            raise InputError(f"{change.name} is a weight: it is the same for all sentences")
        return replace(self, change=change)

    def widen(self, region: Region) -> Region:
        return self.change.widen(region)

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        self.change.apply(backend, array[self.item : self.item + 1], region)

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        self.change.pass_back(backend, gradient[self.item : self.item + 1], region)


# What a trace does with changes


def of_sentence(change: Change, item: int) -> Change | None:
    """A change of a batch as it is of one of its sentences alone; None where it is of another."""
    if isinstance(change, OfSentence):
        return change.change if change.item == item else None
    if isinstance(change, Ablate) and change.counted is not None and len(change.counted) > 1:
        read = None if change.read is None else partial(_of_item, change.read, item)
        return replace(change, counted=change.counted[item : item + 1], read=read)
    if isinstance(change, Patch):
        return replace(change, read=partial(_of_item, change.read, item))
    return change


def with_means(changes: Sequence[Change], origin: Traced, more: Collection[str] = ()) -> Iterator[Change]:
    """Placed changes, of which those to a mean read a trace without changes where others of the sentence reach them.

    `more` are steps that are given other values, too.
    """
    for change in changes:
        own = change.change if isinstance(change, OfSentence) else change
        if isinstance(own, Ablate) and own.counted is not None:
            item = getattr(change, "item", None)
            among = (each for each in changes if each is not change)
            others = [*more, *(each.name for each in among if item in (None, getattr(each, "item", item)))]
            if others and own.name in origin.program.downstream(others):
                own = replace(own, read=partial(_elsewhere, origin, own.name))
                change = replace(change, change=own) if isinstance(change, OfSentence) else own
        yield change


def changes_of(changes: Iterable[Change], name: str, region: Region) -> list[Change]:
    """The changes of a step or weight that set a cell of a region."""
    return [change for change in changes if change.name == name and cells(overlap(change.region, region))]


def widened(changes: Iterable[Change], name: str, region: Region) -> Region:
    """The cells that have to be there for all changes inside a region, and for those inside of what these read."""
    every, before = list(changes), None
    while before != region:
        before = region
        for change in changes_of(every, name, region):
            region = change.widen(region)
    return region


def changed(changes: Iterable[Change], name: str, backend: Backend, array: Array, region: Region) -> Array:
    """The array of a (widened) region with the changes of that name made in order; a copy where there are any."""
    made = changes_of(changes, name, region)
    if made:
        array = array.copy()
    for change in made:
        change.apply(backend, array, region)
    return array


def inside(part: Region, region: Region) -> tuple[object, ...]:
    """Where what `part` has of `region` is in an array that holds `region`, with or without a batch axis."""
    both = overlap(part, region)
    return (..., *(slice(a.start - b.start, a.stop - b.start) for a, b in zip(both, region, strict=True)))


def covers(region: Region, index: Index) -> bool:
    """Whether a cell lies in a region of the same array."""
    return all(i in part for i, part in zip(index, region, strict=True))


def how_set(changes: Sequence[Change], name: str, index: Index) -> str:
    """How a cell was set last; "" where it was computed."""
    ways = (change.how for change in reversed(changes) if change.name == name and covers(change.region, index))
    return next(ways, "")


def _all_rows(region: Region, counted: Host) -> Region:
    return (*region[:-2], range(counted.shape[1]), region[-1])


def _counted(program: Program, name: str, givens: Givens) -> Host:
    """Batch × rows of a step, true where the row is a real token; every row where nothing says which are."""
    axis = program.axes(name)[-2]
    for given, visible in givens.items():
        if given.endswith(VISIBLE) and axis.sequence and program.axes(given)[0].sequence == axis.sequence:
            return visible | ~visible.any(axis=1, keepdims=True)
    return np.ones((1, axis.size), dtype=np.bool_)
