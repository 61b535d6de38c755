"""Arrays of a dump beside the steps that they are: by name, by shape, and where these leave a choice, by value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.diagnosis.axes import Layout, fits_nothing, layouts
from tui_transformer.diagnosis.causes.cause import last
from tui_transformer.diagnosis.comparison import compare, tolerance_of
from tui_transformer.diagnosis.dumps.dump import NOT_STEPS, Dump, Tensor, Values
from tui_transformer.diagnosis.dumps.precision import Precision
from tui_transformer.diagnosis.naming import Names, Target
from tui_transformer.diagnosis.right import Right
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import DistanceBias

GRADIENT = "gradient/"
HUGE = 1e9
"""Scores as large as this stand for −∞."""


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
class Matched:
    """Entries in the order of the program, and why others are none."""

    entries: tuple[Entry, ...]
    unmatched: tuple[str, ...]
    misfits: tuple[tuple[str, str, str], ...] = ()
    """A step, the name in the dump, and both shapes, where they do not fit."""


def match(dump: Dump, names: Names, right: Right) -> Matched:
    """Every array of a dump that is a step."""
    entries: list[Entry] = []
    unmatched, misfits = [], []
    layout_of: Counter[tuple[str, str]] = Counter()
    for tensor in _single(_numbered(dump, names, right), names):
        if tensor.name in NOT_STEPS or tensor.name.startswith(GRADIENT):
            continue
        targets = [each for each in names.find(tensor.name) if each.unless not in dump.tensors]
        if not targets:
            unmatched.append(tensor.name)
            continue
        for target in targets:
            entry = _entry(tensor, target, right, layout_of)
            if entry is not None:
                entries.append(entry)
                continue
            shape = right.program.by_name[target.steps[0]].axes
            reason = fits_nothing(tensor.shape, shape)
            unmatched.append(f"{tensor.name}: {reason}")
            misfits.append((target.steps[0], tensor.name, reason))
    ordered = sorted(_joined(entries), key=lambda entry: right.program.places[entry.step])
    return Matched(tuple(ordered), tuple(unmatched), tuple(misfits))


def _single(tensors: Iterable[Tensor], names: Names) -> Iterator[Tensor]:
    """The arrays, those that hold a layer each along their first axis taken apart."""
    for tensor in tensors:
        parts = tensor.shape[0] if tensor.shape else 0
        if len(tensor.shape) > 2 and parts > 1 and not names.find(tensor.name) and _a_layer_each(tensor, names):
            yield from (_part(tensor, i) for i in range(parts))
        else:
            yield tensor


def _a_layer_each(tensor: Tensor, names: Names) -> bool:
    """Whether every part along the first axis is a step of its own."""
    parts = [names.find(f"{tensor.name}.{i}") for i in range(tensor.shape[0])]
    return all(parts) and len({targets[0].steps for targets in parts}) == len(parts)


def _numbered(dump: Dump, names: Names, right: Right) -> Iterator[Tensor]:
    """The arrays; where one heading comes again and again, with the layer and the head that it is of."""
    bases = Counter(base for name in dump.tensors if (base := _repeated(name)[0]))
    for tensor in dump.tensors.values():
        base, number = _repeated(tensor.name)
        if not base and tensor.name in bases:
            base, number = tensor.name, 1
        targets = names.find(base) if base else ()
        if not targets:
            yield tensor
            continue
        axes = right.program.by_name[targets[0].steps[0]].axes
        heads = axes[0].size if len(axes) == 3 else 1
        each = heads > 1 and sum(size != 1 for size in tensor.shape) < 3 and (bases[base] + 1) % heads == 0
        layer, head = divmod(number - 1, heads if each else 1)
        name = f"layer {layer} {base} head {head}" if each else f"layer {layer} {base}"
        yield replace(tensor, name=name)


def _repeated(name: str) -> tuple[str, int]:
    """A heading and how often it came: "Scores (2)"; "" where it came once."""
    counted = re.fullmatch(r"(.*\S) \((\d+)\)", name)
    return (counted[1], int(counted[2])) if counted else ("", 0)


def _part(tensor: Tensor, i: int) -> Tensor:
    def read() -> Values:
        values = tensor.values
        return values._replace(array=values.array[i], known=None if values.known is None else values.known[i])

    return Tensor(f"{tensor.name}[{i}]", tensor.shape[1:], read)


def _entry(tensor: Tensor, target: Target, right: Right, seen: Counter[tuple[str, str]]) -> Entry | None:
    """The array as the step that it is: of several that it may be, the first whose values are there."""
    values = tensor.values
    candidates: list[tuple[str, Layout]] = []
    for step in target.steps:
        axes = right.program.by_name[step].axes
        fitting = tuple(layouts(values, axes, right.batch, target, fastest_first=tensor.fastest_first))
        for layout in (*fitting, *_moved(step, fitting, right)):
            if _agrees(step, layout, values.precision, right):
                seen[last(step), layout.assumed] += 1
                return _made(tensor, target, step, layout, values.precision, right)
            candidates.append((step, layout))
    natural = [(step, layout) for step, layout in candidates if layout.natural]
    first = target.steps[0]
    usual = sorted(natural, key=lambda each: (each[0] != first, -seen[last(each[0]), each[1].assumed]))
    if not usual:
        return None
    return _made(tensor, target, *usual[0], values.precision, right)


def _moved(step: str, fitting: Iterable[Layout], right: Right) -> Iterator[Layout]:
    """Scores with distances counted as positions of the keys: rows are moved by constants, which softmax takes out."""
    sublayer = step.rpartition(".")[0]
    biased = right.program.by_name.get(f"{sublayer}.biased")
    if last(step) not in ("biased", "masked") or biased is None or not isinstance(biased.op, DistanceBias):
        return
    ours = right.value(step)
    for layout in fitting:
        both = np.isfinite(ours) & np.isfinite(layout.array) & (np.abs(layout.array) < HUGE)
        by = np.where(both, layout.array - np.where(both, ours, 0.0), -np.inf).max(axis=-1, keepdims=True)
        says = "; ".join(filter(None, (layout.assumed, "rows are moved by constants, which softmax takes out")))
        yield replace(layout, array=layout.array - np.where(np.isfinite(by), by, 0.0), assumed=says)


def _agrees(step: str, layout: Layout, precision: Precision, right: Right) -> bool:
    tolerance = tolerance_of(precision, layout.array, right.granted(step, precision))
    counted = counted_cells(right.counted(step), layout.known)
    return not compare(layout.array, right.value(step), counted, tolerance, shares=False).beyond


def counted_cells(*masks: Host | None) -> Host | None:
    """Cells that count in all of these."""
    given = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(given) if given else None


def _made(tensor: Tensor, target: Target, step: str, layout: Layout, precision: Precision, right: Right) -> Entry:
    said = [f"{tensor.name}: {layout.assumed}"] if layout.assumed else []
    if step != target.steps[0]:
        said.append(f"{tensor.name} is {step}, not {last(target.steps[0])}")
    if target.note:
        said.append(f"{tensor.name}: {target.note}")
    array = layout.array.astype(np.float64, copy=False)
    said += _infinite(tensor.name, array, layout.known, right.value(step))
    return Entry(step, tensor.name, array, layout.known, precision, tuple(said))


def _infinite(name: str, theirs: Host, known: Host | None, ours: Host) -> list[str]:
    """The value that stands for −∞."""
    hidden = np.isneginf(ours) & np.isfinite(theirs)
    hidden = hidden if known is None else hidden & known
    if not hidden.any():
        return []
    values = theirs[hidden]
    return [f"{name}: {float(np.median(values)):.3g} stands for −∞"] if float(values.max()) < -1e3 else []


def _joined(entries: Iterable[Entry]) -> Iterator[Entry]:
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
