"""Changes of heads, rows and columns, whatever the length of the text: set, added to, scaled, projected, a function.

They act on traces as other edits do, and during generation, where rows count from the beginning of the text. Adding a
vector to the residual stream is steering (Turner et al. 2023, "Activation Addition"; Rimsky et al. 2024, "Steering
Llama 2 via Contrastive Activation Addition"). Its component along a vector can be taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tui_transformer.engine.axis import Places, Region, Shape, as_range, as_ranges, shape_text
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.edits import KINDS, Ablate, Change, Edit, Givens, Patch, inside, kept
from tui_transformer.engine.names import find
from tui_transformer.engine.program import PROBABILITIES, Program, array_of_numbers
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import InitVar, dataclass, field, replace

OPEN = 1 << 30
"""As the stop of rows: to the end, however long the text is."""

PATTERN = re.compile(r"[*?\[]")


class Parts(NamedTuple):
    """A part of every axis that a step may have; None for all of it."""

    heads: range | None
    rows: range | None
    columns: range | None


@dataclass(frozen=True, eq=False)
class _Part:
    """Heads, rows and columns of a step or weight; all of an axis that is not named.

    Attributes:
        name: The step or weight; the end of a name is enough, and a pattern, as `*.context`, means several.
        values: A number, or an array that fits the region as NumPy broadcasts it: a vector for every row.
        heads: Of a step with heads: a number, a range or a list, as are rows and columns.
        rows: Positions, from 0; of a weight, its rows. `range(5, OPEN)` is all from 5 on.
        columns: The last axis.
        region: The cells, filled in by `placed`.
        feature: Of the features of a dictionary, what `columns` says.
    """

    how: ClassVar[str]
    name: str
    values: npt.ArrayLike
    heads: Places = None
    rows: Places = None
    columns: Places = None
    region: Region = field(default=(), repr=False)
    feature: InitVar[Places] = field(default=None, kw_only=True)

    def __post_init__(self, feature: Places) -> None:
        if feature is not None:
            if self.columns is not None:
                raise UsageError("a feature is a column: give columns or feature")
            object.__setattr__(self, "columns", feature)
        object.__setattr__(self, "values", kept(self.values))
        _ = self._runs

    @property
    def _runs(self) -> list[list[range | None]]:
        given = ((kind, getattr(self, kind)) for kind in Parts._fields)
        return [[None] if part is None else [*as_ranges(kind, part)] for kind, part in given]

    def each(self, program: Program) -> Iterator[Self]:
        """The same of every step that a pattern names, and of every run of a list, with the values that are its own."""
        names, runs = [self.name], self._runs
        if PATTERN.search(self.name):
            found = find((*program.names, *program.weights), self.name)
            names = list(dict.fromkeys(map(program.named, found)))
        for name, places in product(names, product(*map(enumerate, runs))):
            values = self.values
            for axis, (own, (at, _)) in enumerate(zip(runs, places, strict=True), -len(runs)):
                if len(own) > 1:
                    values = self._of_run(values, axis, [len(run or ()) for run in own], at)
            heads, rows, columns = (run for _, run in places)
            yield replace(self, name=name, values=values, heads=heads, rows=rows, columns=columns)

    def _of_run(self, values: npt.ArrayLike, axis: int, sizes: list[int], at: int) -> npt.ArrayLike:
        """Of values for all of a list, those of one of its runs."""
        given = np.asarray(values)
        if given.ndim < -axis or given.shape[axis] == 1:
            return values
        if given.shape[axis] != sum(sizes):
            raise InputError(
                f"values of {shape_text(given.shape)} do not fit the {sum(sizes)} {Parts._fields[axis]} of {self.name}"
            )
        start = sum(sizes[:at])
        return np.take(given, range(start, start + sizes[at]), axis)

    @property
    def parts(self) -> Parts:
        """Heads, rows and columns as ranges; None for all."""
        return Parts(*(as_range(kind, getattr(self, kind)) for kind in Parts._fields))

    def placed(self, program: Program, givens: Givens) -> Self:
        """Checked: the step or weight has these cells, and the values fit them."""
        return self.at(*array_of_numbers(program, self.name))

    def at(self, name: str, shape: Shape) -> Self:
        """The same in an array of this name and shape."""
        named = dict(zip(KINDS, self.parts, strict=True))
        here = KINDS[-len(shape) :]
        for kind, part in named.items():
            if part is not None and kind not in here:
                raise InputError(f"{name} has no {kind}s: leave them out")
        region = []
        for kind, size in zip(here, shape, strict=True):
            asked = named[kind]
            part = range(size) if asked is None else asked
            if part.stop >= OPEN:
                part = range(part.start, size)
            if asked is not None and not (0 <= part.start < part.stop <= size and part.step == 1):
                raise InputError(f"{name} has no {kind}s {part.start} to {part.stop - 1}: use 0 to {size - 1}")
            region.append(part)
        values, cells = np.asarray(self.values), tuple(map(len, region))
        if values.dtype.kind not in "fiu" or np.isnan(values).any():
            raise InputError(f"{name} is changed by numbers, not by NaN or anything else")
        try:
            fits = np.broadcast_shapes(values.shape, cells) == cells
        except ValueError:
            fits = False
        if not fits:
            raise InputError(f"values of {shape_text(values.shape)} do not fit the {shape_text(cells)} of {name}")
        return replace(self, name=name, region=tuple(region))

    def widen(self, region: Region) -> Region:
        return region

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        place, values = inside(self.region, region), self.values
        if np.ndim(values):
            whole: Array = np.broadcast_to(np.asarray(values), tuple(map(len, self.region)))
            values = np.ascontiguousarray(whole[inside(region, self.region)])
        array[place] = self._new(array[place], backend.floats(values))

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        """As cells go forward: right where a symmetric matrix makes the new ones, as scaling and projecting do."""
        self.apply(backend, gradient, region)

    def _new(self, old: Array, values: Array) -> Array:
        raise NotImplementedError

    def after(self, past: int, length: int) -> Self | None:
        """The same for a pass of the last `length` rows, with `past` before them; None where it changes none of them.

        Raises:
            InputError: The values have a row for each position, and no rows are named: they fit no longer text.
        """
        rows, named = _rows(self), self.parts.rows
        if named is None:
            if rows > 1:
                raise InputError(f"{self.name}: values of {rows} rows do not say where they go in a text that grows")
            return self
        part = range(max(named.start, past), min(named.stop, past + length))
        if not part:
            return None
        shifted = range(part.start - past, part.stop - past)
        if rows == 1:
            return replace(self, rows=shifted)
        start = named.start
        values = np.asarray(self.values)[..., part.start - start : part.stop - start, :]
        return replace(self, rows=shifted, values=values)


class Set(_Part):
    """Cells set to a number or to values."""

    how = "set"

    def _new(self, old: Array, values: Array) -> Array:
        return values

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        gradient[inside(self.region, region)] = 0.0


class Add(_Part):
    """A number or values added: `Add("1.output", 4 * vector)` steers."""

    how = "added to"

    def _new(self, old: Array, values: Array) -> Array:
        return old + values

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        """Nothing to do: it is the same."""


@dataclass(frozen=True, eq=False)
class Scale(_Part):
    """Cells multiplied by a number or values: `Scale("1.output.features", feature=123, by=0)`."""

    how = "scaled"
    values: npt.ArrayLike = np.nan
    by: InitVar[npt.ArrayLike | None] = field(default=None, kw_only=True)

    def __post_init__(self, feature: Places, by: npt.ArrayLike | None) -> None:
        if (by is None) == (self.values is np.nan):
            raise UsageError(f"{self.name} is scaled by a number or values: give by, and nothing else")
        if by is not None:
            object.__setattr__(self, "values", by)
        super().__post_init__(feature)

    def _new(self, old: Array, values: Array) -> Array:
        return old * values


class Project(_Part):
    """The component along a vector taken out: of every row x (of each head), x − (x · v) v ÷ ‖v‖².

    Leaves nothing that a linear reader along v sees (Ravfogel et al. 2020, "Null It Out", §3). One direction after
    another takes out all of them where they are at right angles.
    """

    how = "without a direction"

    def each(self, program: Program) -> Iterator[Self]:
        if len(self._runs[-1]) > 1:
            raise InputError(f"{self.name}: a direction is in neighbouring columns, and not in a list with gaps")
        return super().each(program)

    def at(self, name: str, shape: Shape) -> Self:
        """The same in an array of this name and shape, with a vector of length 1."""
        if not np.ndim(self.values) or np.shape(self.values)[-1] < 2:
            raise InputError(f"{name}: a direction is a vector, with a number for every column")
        placed = super().at(name, shape)
        vectors = np.asarray(placed.values, np.float64)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise InputError(f"{name}: a vector of length 0, or an infinite one, is no direction")
        return replace(placed, values=vectors / lengths)

    def widen(self, region: Region) -> Region:
        """All columns of a row, which its component is made of."""
        own, part = self.region[-1], region[-1]
        return (*region[:-1], range(min(own.start, part.start), max(own.stop, part.stop)))

    def _new(self, old: Array, values: Array) -> Array:
        return old - values * (old * values).sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Apply(_Part):
    """Cells made by a function of them: `Apply("0.feed_forward.activation", lambda x: np.maximum(x, 0))`.

    It is given a NumPy array behind a batch axis, which it may change, and gives one of the same shape. In generation
    it sees the rows that are computed, with the cache the last one alone: a function of single rows does the same in
    both. No gradient passes through it.
    """

    values: npt.ArrayLike = 0.0
    function: Callable[[Host], Host] = field(kw_only=True, repr=False)

    how = "made by a function"

    def widen(self, region: Region) -> Region:
        """All its cells, so that it sees the same however the step is computed."""
        pairs = zip(self.region, region, strict=True)
        return tuple(range(min(a.start, b.start), max(a.stop, b.stop)) for a, b in pairs)

    def apply(self, backend: Backend, array: Array, region: Region) -> None:
        place = inside(self.region, region)
        old = np.array(backend.to_host(array[place]))
        new = np.asarray(self.function(old.copy()))
        if new.shape != old.shape or new.dtype.kind not in "fiu":
            raise InputError(
                f"{self.name}: the function gave {shape_text(new.shape)}, not {shape_text(old.shape)} numbers"
            )
        array[place] = backend.floats(new)

    def pass_back(self, backend: Backend, gradient: Array, region: Region) -> None:
        what = "is changed by a function of yours: nothing says how a gradient passes through it"
        raise InputError(f"{self.name} {what}")


# During generation


def standing(program: Program, change: Change) -> Change:
    """A change of a sentence as it is meant for a text that grows: what covers an axis covers all of a longer one.

    Raises:
        InputError: It is a mean over the positions, which is of one sentence, or of what no token is chosen from.
    """
    if program.logits and array_of_numbers(program, change.name)[0] == PROBABILITIES:
        raise InputError(f"{PROBABILITIES}: tokens are chosen from {program.logits}: change that to write on")
    if isinstance(change, _Part):
        return change
    if isinstance(change, Ablate) and change.mean:
        raise InputError(f"{change.name}: a mean over the positions is of one sentence: set it to a value to write on")
    name, shape = array_of_numbers(program, change.name)
    if name in program.weights:
        return change
    parts = [None if part == range(size) else part for part, size in zip(change.region, shape, strict=True)]
    heads, rows, columns = [None] * (3 - len(shape)) + parts
    if isinstance(change, Edit):
        row, column = (range(i, i + 1) for i in change.index[-2:])
        return Set(name, change.value, heads, row, column)
    if isinstance(change, Patch):  # values of their own for each row, and for each key
        own = change.region[-1] if program.axes(name)[-1].name == "key" else columns
        return Set(name, change.read(change.region)[0], heads, change.region[-2], own)
    return Set(name, 0.0, heads, rows, columns)


def is_of_any_text(program: Program, change: Change) -> bool:
    """Whether a change of a step is meant for texts of every length: it names no token, and has no value for each."""
    if isinstance(change, Ablate):
        if len(axes := program.axes(change.name)) < 2:
            return False
        *heads, rows, columns = (part == range(axis.size) for part, axis in zip(change.region, axes, strict=True))
        # of a single token, whose row is all rows, only where the rest of the region says that it is not the token
        return rows and (columns or not axes[-1].sequence) and (axes[-2].size > 1 or not all((*heads, columns)))
    if not isinstance(change, _Part) or change.rows is not None or _rows(change) > 1:
        return False
    alike = change.columns is None and np.ndim(change.values) == 0
    return alike or not program.axes(change.name)[-1].sequence


def over_all(change: Change, program: Program, other: Program) -> Change:
    """An ablation that covers an axis in a program as it covers that of another, of a text of another length."""
    if not isinstance(change, Ablate) or change.name in program.weights or change.name not in other.by_name:
        return change
    shapes = zip(change.region, program.shape(change.name), other.shape(change.name), strict=True)
    return replace(change, region=tuple(range(new) if part == range(old) else part for part, old, new in shapes))


def _rows(change: _Part) -> int:
    return int(np.shape(change.values)[-2]) if np.ndim(change.values) > 1 else 1


@dataclass(frozen=True)
class Place:
    """Where changes are made in one pass: a step or weight, whose rows may be written tokens, or its columns keys."""

    name: str
    grows: bool
    keys: bool

    def changed(self, change: Change, shape: Shape, past: int) -> Change | None:
        """A change in a pass of whose tokens `past` are kept from before; None where it changes nothing in it.

        Raises:
            InputError: The step has no such heads or columns.
        """
        if not isinstance(change, _Part):
            return replace(change, name=self.name)  # type: ignore[type-var]
        moved = change.after(past, shape[-2]) if self.grows else change
        columns = None if moved is None else moved.parts.columns
        if moved is not None and columns is not None and self.keys:
            there = range(columns.start, min(columns.stop, shape[-1]))
            values = moved.values if np.size(moved.values) == 1 else np.asarray(moved.values)[..., : len(there)]
            moved = replace(moved, columns=there, values=values) if there else None
        return None if moved is None else moved.at(self.name, shape)


def places(changes: tuple[Change, ...], program: Program) -> tuple[tuple[Change, Place], ...]:
    """Changes, by the own names of steps, with their places; not those of what a pass leaves out, as an encoder."""
    found = list[tuple[Change, Place]]()
    for change in changes:
        if change.name in program.by_name or change.name in program.weights:
            axes, written = program.axes(change.name), program.axes(program.logits)[-2].sequence
            grows = change.name not in program.weights and len(axes) > 1 and axes[-2].sequence == written
            found.append((change, Place(change.name, grows, axes[-1].name == "key")))
    return tuple(found)


def of_pass(changes: tuple[Change, ...], program: Program, past: int) -> tuple[Change, ...]:
    """Changes as they are made in one pass of a text that grows, of whose tokens `past` are kept from before."""
    moved = (place.changed(change, program.shape(place.name), past) for change, place in places(changes, program))
    return tuple(change for change in moved if change is not None)
