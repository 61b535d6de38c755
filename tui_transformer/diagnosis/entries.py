"""Which axis of an array is which: the ways in which an array of a dump can be that of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.causes.cause import last
from tui_transformer.diagnosis.dumps.dump import Precision, Tensor, Values, role_of
from tui_transformer.diagnosis.naming.phrases import SETTINGS, Target, phrase_of
from tui_transformer.diagnosis.reference_values import Reference, stands_for_infinity
from tui_transformer.engine.axis import Axes, Shape, shape_of
from tui_transformer.engine.backend import Host


@dataclass(frozen=True, eq=False)
class Layout:
    """An array of a dump in the shape of a step.

    Attributes:
        array: Batch × the axes of the step.
        known: True where a number is there; None where all are.
        assumed: What was taken for granted; "" where the array has the shape of the step.
        natural: Its shape says so; others are taken only where the values are right.
    """

    array: Host
    known: Host | None = None
    assumed: str = ""
    natural: bool = True


LETTERS = {"batch": "batch", "head": "heads", "token": "tokens", "query": "queries", "key": "keys", "head width": "d_k"}


def layouts(values: Values, axes: Axes, batch: int, target: Target, *, fastest_first: bool) -> list[Layout]:
    """The ways in which an array can be that of a step, the plainest first; none where it does not fit."""
    if target.columns is not None:
        part = _columns(values, axes, batch, target.columns)
        if part is None:
            return []
        values = part
    if target.head is not None and len(axes) == 3:
        inner = _whole(values, axes[1:], batch, fastest_first=fastest_first)
        return [_in_head(layout, axes[0].size, target.head) for layout in inner]
    ways = list(_whole(values, axes, batch, fastest_first=fastest_first))
    if target.offset is not None:
        words = "before the bias is added"
        return [
            *ways,
            *(replace(each, array=each.array + target.offset, assumed=words, natural=False) for each in ways),
        ]
    if target.scale != 1.0:
        return [*ways, *(_scaled(layout, target.scale) for layout in ways)]
    return [*ways, *(_unpaired(layout) for layout in ways)] if target.paired else ways


def _scaled(layout: Layout, scale: float) -> Layout:
    words = f"rows before they are multiplied by {scale:.4g}"
    return Layout(scale * layout.array, layout.known, words, natural=False)


def _unpaired(layout: Layout) -> Layout:
    """Columns 2i and 2i + 1 of every head as columns i and i + d_k/2."""
    width = layout.array.shape[-1]
    order = np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])
    known = None if layout.known is None else layout.known[..., order]
    words = "columns i and i + d_k/2 lie side by side, as in GGUF files"
    assumed = f"{layout.assumed}, {words}" if layout.assumed else words
    return Layout(layout.array[..., order], known, assumed, natural=False)


def _columns(values: Values, axes: Axes, batch: int, columns: Host) -> Values | None:
    """The columns of a fused matrix that are the step's, as batch × tokens × columns."""
    tokens = axes[1].size if len(axes) == 3 else axes[0].size
    width = values.array.size // max(1, batch * tokens)
    if batch * tokens * width != values.array.size or columns.max() >= width:
        return None
    picked = values.array.reshape(batch, tokens, width)[..., columns]
    known = None if values.known is None else values.known.reshape(batch, tokens, width)[..., columns]
    return Values(picked, values.precision, known)


def _in_head(layout: Layout, heads: int, head: int) -> Layout:
    """One head of a step, the others unknown."""
    batch, *rest = layout.array.shape
    array = np.full((batch, heads, *rest), np.nan)
    known = np.zeros(array.shape, dtype=np.bool_)
    array[:, head] = layout.array
    known[:, head] = True if layout.known is None else layout.known
    return Layout(array, known, layout.assumed, layout.natural)


def _whole(values: Values, axes: Axes, batch: int, *, fastest_first: bool) -> Iterator[Layout]:
    sizes: Shape = (batch, *(axis.size for axis in axes))
    shape = _squeezed(values.array.shape)
    fitting = list(_fitting(shape, axes, sizes, fastest_first=fastest_first))
    for order, how, assumed in fitting:
        moved = _moved(values.array, sizes, order, how)
        known = None if values.known is None else _moved(values.known, sizes, order, how)
        yield Layout(moved, known, assumed, natural=how not in ("transposed", "columns"))
    if not fitting and len(axes) == 2 and values.array.size == batch * axes[-1].size and sizes[1] > 1:
        array = np.full(sizes, np.nan)
        known = np.zeros(sizes, dtype=np.bool_)
        array[:, -1], known[:, -1] = values.array.reshape(batch, -1), True
        yield Layout(array, known, "only the last token is in the dump")


def _squeezed(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _orders(axes: Axes) -> Iterator[tuple[int, ...]]:
    """Orders of batch (0) and axes (1, 2, 3) that are found in the wild."""
    count = len(axes) + 1
    yield tuple(range(count))
    if len(axes) == 3:
        yield (0, 2, 1, 3)
        if axes[0].name == "head" and axes[2].name == "head width":
            yield (2, 0, 1, 3)
    if len(axes) == 2:
        yield (1, 0, 2)


def _fitting(
    shape: Shape, axes: Axes, sizes: Shape, *, fastest_first: bool
) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Orders of the axes that give the shape, how the numbers lie, and what that assumes."""
    seen = set()
    if len(shape) == 1 and math.prod(sizes) == shape[0] and len(_squeezed(sizes)) > 1:
        yield from _of_row(axes, sizes)
        return
    for order in _orders(axes):
        ordered = tuple(sizes[i] for i in order)
        for merged in _merged(ordered, axes):
            plain = _squeezed(merged)
            ways = []
            if shape == plain and not fastest_first:
                ways.append("as it is")
            if shape == plain[::-1] and len(plain) > 1:
                ways += ["reversed"] if fastest_first else ["reversed", "transposed"]
            elif shape == plain and fastest_first:
                ways.append("reversed")
            for how in ways:
                key = _key(order, sizes, how)
                if key not in seen:
                    seen.add(key)
                    yield order, how, _assumption(order, how, axes, sizes, fastest_first=fastest_first)


def _of_row(axes: Axes, sizes: Shape) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Orders of the axes of an array whose numbers lie in one row: those of C, then columns below each other."""
    names = ["sentences", *(LETTERS.get(axis.name, axis.name) for axis in axes)]
    seen = set()
    for how in ("as it is", "columns"):
        for order in _orders(axes):
            turned = order if how == "as it is" else (*order[:-2], order[-1], order[-2])
            key = _key(turned, sizes, "")
            if key not in seen:
                seen.add(key)
                words = " × ".join(names[i] for i in turned if sizes[i] != 1)
                yield turned, how, f"its numbers, which have no shape, are {words}"


def _key(order: tuple[int, ...], sizes: Shape, how: str) -> tuple[tuple[int, ...], str]:
    return tuple(i for i in order if sizes[i] != 1), how


def _merged(ordered: Shape, axes: Axes) -> Iterator[Shape]:
    """The sizes, and those with the heads side by side, or with the sentences below each other."""
    yield ordered
    if len(ordered) == 4:
        yield (*ordered[:2], ordered[2] * ordered[3])
        yield (ordered[0], ordered[1] * ordered[2], ordered[3])
    if len(ordered) > 2:
        yield (ordered[0] * ordered[1], *ordered[2:])
    if len(axes) == 2 and axes[-1].name == "heads · width":
        for heads in range(2, ordered[-1]):
            if ordered[-1] % heads == 0:
                yield (*ordered[:-1], heads, ordered[-1] // heads)


def _moved(array: Host, sizes: Shape, order: tuple[int, ...], how: str) -> Host:
    """The array in the order of the step."""
    ordered = tuple(sizes[i] for i in order)
    if how == "transposed":
        array = np.transpose(array)
    moved: Host = np.ascontiguousarray(array).reshape(ordered).transpose(np.argsort(order))
    return moved


def _assumption(order: tuple[int, ...], how: str, axes: Axes, sizes: Shape, *, fastest_first: bool) -> str:
    names = ["sentences", *(LETTERS.get(axis.name, axis.name) for axis in axes)]
    words = " × ".join(names[i] for i in order if sizes[i] != 1 or i)
    said = []
    if order != tuple(range(len(order))) and _key(order, sizes, "") != _key(tuple(range(len(order))), sizes, ""):
        said.append(f"axes are {words}")
    if how == "reversed" and not fastest_first:
        said.append("the shape names the fastest axis first")
    if how == "transposed":
        said.append("the matrix is transposed")
    return ", ".join(said)


def fits_nothing(shape: Shape, axes: Axes) -> str:
    """Two shapes that do not fit, as they are shown."""
    theirs, ours = (" × ".join(map(str, sizes)) or "1" for sizes in (shape, tuple(axis.size for axis in axes)))
    return f"{theirs} does not fit {ours}"


@dataclass(frozen=True, eq=False)
class Entry:
    """An array of a dump in the shape of a step.

    Attributes:
        step: The step.
        theirs: Its name in the dump.
        array: Batch × the axes of the step.
        known: True where a number is there; None where all are.
        precision: Of the numbers.
        assumed: What was taken for granted of its axes and its name.
    """

    step: str
    theirs: str
    array: Host
    known: Host | None
    precision: Precision
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """What an array of a dump was taken for.

    Attributes:
        theirs: Its name.
        shape: Its shape; None where it cannot be read.
        step: The step, the input or the weight that it is; "" where it is none.
        how: What was taken for granted of its name and its axes.
        reason: Why its numbers are not compared; "" where they are.
    """

    theirs: str
    shape: Shape | None
    step: str = ""
    how: str = ""
    reason: str = ""

    def to_json(self, sentence: str = "") -> dict[str, object]:
        """As `diff --matched --format json` writes it."""
        said: dict[str, object] = {"sentence": sentence} if sentence else {}
        shape = None if self.shape is None else list(self.shape)
        return said | {
            "theirs": self.theirs,
            "shape": shape,
            "step": self.step or None,
            "assumed": self.how,
            "reason": self.reason or None,
        }


def counted_cells(*masks: Host | None) -> Host | None:
    """Cells that count in all of these."""
    given = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(given) if given else None


def entry_of(
    tensor: Tensor, target: Target, step: str, layout: Layout, precision: Precision, right: Reference
) -> Entry:
    """An array as a step, with what was taken for granted."""
    said = [f"{tensor.name}: {layout.assumed}"] if layout.assumed else []
    if step != target.steps[0]:
        said.append(f"{tensor.name} is {step}, not {last(target.steps[0])}")
    if target.note:
        said.append(f"{tensor.name}: {target.note}")
    array = layout.array.astype(np.float64, copy=False)
    said += _infinite(tensor.name, array, counted_cells(layout.known, right.counted(step)), right.value(step))
    return Entry(step, tensor.name, array, layout.known, precision, tuple(said))


def _infinite(name: str, theirs: Host, counted: Host | None, ours: Host) -> list[str]:
    hidden = stands_for_infinity(theirs, ours) & np.isfinite(theirs)
    hidden = hidden if counted is None else hidden & counted
    return [f"{name}: {float(np.median(theirs[hidden])):.3g} stands for −∞"] if hidden.any() else []


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that hold one head each, as one entry a step; of several whole ones, all."""
    parts: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.known is None:
            yield entry
        else:
            parts.setdefault(entry.step, []).append(entry)
    for group in parts.values():
        yield from _together(group)


def _together(group: Sequence[Entry]) -> Iterator[Entry]:
    entry = group[0]
    for other in group[1:]:
        if entry.known is None or other.known is None or bool((entry.known & other.known).any()):
            yield other
            continue
        array = np.where(other.known, other.array, entry.array)
        known = entry.known | other.known
        entry = replace(entry, array=array, known=known, assumed=(*entry.assumed, *other.assumed))
    yield replace(entry, known=None) if entry.known is not None and bool(entry.known.all()) else entry


def part_of(tensor: Tensor, i: int) -> Tensor:
    """A part of an array along its first axis."""

    def read() -> Values:
        values = tensor.values
        return values._replace(array=values.array[i], known=None if values.known is None else values.known[i])

    return Tensor(f"{tensor.name}[{i}]", tensor.shape[1:], read)


GRADIENT = "gradient/"
GIVENS = {
    "ids": "input.ids",
    "decoder ids": "decoder.input.ids",
    "segments": "input.segments",
    "mask": "input.visible",
    "decoder mask": "decoder.input.visible",
}
"""What an array is of the input, and the input."""

USED_WITH_LOSS = ("labels", "targets")


class Given(NamedTuple):
    """An array that is no step: what it is, what was taken for granted, and why it is not compared."""

    step: str = ""
    how: str = ""
    reason: str = ""


def given_of(tensor: Tensor, right: Reference) -> Given | None:
    """What an array is besides a step; None where it is neither."""
    if not tensor.numbers:
        return Given(how="holds no numbers")
    if tensor.name.startswith(GRADIENT):
        return Given(reason="a gradient: only what the forward pass computes is compared")
    role = role_of(tensor)
    if tensor.heading is not None and not role:
        alone = tensor.values.array.size == 1
        return Given(how="a setting") if alone and phrase_of(tensor.heading.text) in SETTINGS else None
    if not role or (role == "mask" and len(tensor.shape) > 1 and tensor.shape[-1] == tensor.shape[-2] > 1):
        return _square_mask(tensor, right) if role else None
    if role in USED_WITH_LOSS:
        return Given("loss" if "loss" in right.program.by_name else "", how="what a loss is taken of")
    return _input(tensor, role, right)


def _input(tensor: Tensor, role: str, right: Reference) -> Given | None:
    """An input, which is that of the right values, or says why it is not."""
    theirs, name = tensor.values.array, GIVENS.get(role, "")
    known, ours = tensor.values.known, right.exact.givens.get(name)
    if known is not None and ours is not None and known.size == ours.size:
        theirs = np.where(known.reshape(ours.shape), theirs.reshape(ours.shape), ours)
    whole = theirs.size and np.isfinite(theirs).all() and bool((np.floor(theirs) == theirs).all())
    if not whole:
        return None if tensor.heading is not None else Given(reason="not the whole numbers that its name says")
    if role == "positions":
        right_ones = bool((theirs == np.arange(theirs.shape[-1])).all())
        return Given(how="0, 1, 2, …") if right_ones else Given(reason="positions other than 0, 1, 2, … are not read")
    if ours is None:
        same = (role in ("mask", "decoder mask") and bool(theirs.all())) or not theirs.any()
        return Given(how="has no effect") if same else Given(reason="the model reads no such input")
    if theirs.size == ours.size and bool((theirs.reshape(ours.shape) == ours).all()):
        return Given(name, how="the same")
    if role == "mask" and theirs.size == ours.size and bool((theirs.reshape(ours.shape) != ours).all()):
        return Given(name, how="the same, 1 where a token is hidden")
    return Given(reason="not what the model was given here")


def _square_mask(tensor: Tensor, right: Reference) -> Given | None:
    """A mask of queries × keys, which hides what the right scores hide."""
    theirs = np.squeeze(tensor.values.array)
    for step in right.program.steps:
        if step.name.endswith(".masked") and len(step.axes) == 3 and shape_of(step.axes)[1:] == theirs.shape:
            hidden = np.isneginf(right.value(step.name)[0, 0])
            if any((cells == hidden).all() for cells in (theirs != 0, theirs == 0)):
                return Given("input.visible", how=f"hides what {step.name} hides")
    return Given(reason="hides other cells than the model's mask")


def weight_of(tensor: Tensor, steps: Iterable[str], right: Reference) -> str:
    """The weight of one of these steps that an array holds; "" where it holds none."""
    theirs, program = np.squeeze(tensor.values.array), right.program
    for step in dict.fromkeys(steps):
        for name in (f"{step}.weight", f"{step}.bias"):
            if name not in program.weights or tensor.values.known is not None:
                continue
            ours = np.squeeze(right.exact.weights.get(name, program.shape(name)))
            if any(_same(theirs, each, tensor) for each in (ours, ours.T)):
                return name
    return ""


def _same(theirs: Host, ours: Host, tensor: Tensor) -> bool:
    """A whole weight, or the columns of a head."""
    close = 4.0 * tensor.values.precision.of(theirs) + 1e-7
    if theirs.shape == ours.shape:
        return bool((np.abs(theirs - ours) <= close).all())
    if theirs.ndim != 2 or ours.ndim != 2 or theirs.shape[0] != ours.shape[0] or ours.shape[1] % theirs.shape[1]:
        return False
    parts = np.split(ours, ours.shape[1] // theirs.shape[1], axis=1)
    return any(bool((np.abs(theirs - part) <= close).all()) for part in parts)
