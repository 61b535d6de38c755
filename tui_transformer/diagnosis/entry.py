"""Arrays of a dump as steps, in the shape of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.diagnosis.axes import Layout
from tui_transformer.diagnosis.causes.cause import last
from tui_transformer.diagnosis.comparison import stands_for_infinity
from tui_transformer.diagnosis.dumps.dump import Tensor, Values
from tui_transformer.diagnosis.dumps.precision import Precision
from tui_transformer.diagnosis.naming import Target
from tui_transformer.diagnosis.right import Right
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host


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


def entry_of(tensor: Tensor, target: Target, step: str, layout: Layout, precision: Precision, right: Right) -> Entry:
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
