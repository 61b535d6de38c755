"""A step on its way: what there is of its values while they are made, from the very numbers that they are made of.

`flow_of` gives a function of the progress from 0 to 1: products run into their cells, a row becomes shares, the rows of
V fall into one. Only the rows and columns that are looked at are worked out. At 1 it is the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np

from tui_transformer.engine import ops
from tui_transformer.engine.axis import Region, cells, whole
from tui_transformer.engine.explanation import Floats
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops.norms import Norm
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass
from tui_transformer.views.inside import ACTIVATIONS
from tui_transformer.views.step_view import Labels, Place, region_of
from tui_transformer.views.view import Frame, Meeting, Tile, View

MOST_CELLS, MOST_PRODUCTS = 1 << 19, 1 << 24
"""Cells that are read, and products that are made for all that is looked at, a few milliseconds: more does not move."""


Flow = Callable[[float], Frame]
"""What there is at a progress from 0 to 1."""

Act = tuple[int, Callable[[int], Frame]]
"""A part of the way: how many moments it has, and each of them by its number."""


def flow_of(trace: Trace, view: View, labels: Labels, rows: range, columns: range, place: Place) -> Flow | None:
    """The way of some rows and columns of a step, with the cell at a place among them.

    None where the step does not move: it is given, set, no longer in memory or elsewhere, or too much.
    """
    name = trace.program.aliases.get(view.name, view.name)
    step = trace.program.by_name.get(name)
    acts_of = None if step is None else FLOWS.get(type(step.op))
    if step is None or acts_of is None or view.edited or not (rows and columns):
        return None
    needed = {name, *step.inputs} - trace.program.weights.keys() - trace.program.givens.keys()
    if trace.backend.device != "cpu" or any(trace.held_value(each) is None for each in needed):
        return None
    looked_at = _Part(trace, step, view, labels, rows, columns, place)
    if looked_at.is_large:
        return None
    acts = tuple(acts_of(looked_at))
    if not acts:
        return None

    def at(progress: float) -> Frame:
        which, within = divmod(min(max(progress, 0.0), 1.0) * len(acts), 1.0)
        if which == len(acts):
            which, within = which - 1.0, 1.0
        count, moment = acts[int(which)]
        return moment(min(int(within * count), count - 1))

    return at


@dataclass(frozen=True, eq=False)
class _Part:
    """The part of a step that is looked at, and what it is made of, in float64."""

    trace: Trace
    step: Step
    view: View
    labels: Labels
    rows: range
    columns: range
    place: Place

    @cached_property
    def region(self) -> Region:
        return region_of(self.step.axes, self.view.head or 0, self.rows, self.columns)

    @cached_property
    def read(self) -> tuple[Region, ...]:
        """The cells of each input that it is made of, as far as whole rows are not needed."""
        shapes = tuple(map(self.trace.program.shape, self.step.inputs))
        return self.step.op.reads(self.region, shapes)

    @property
    def is_large(self) -> bool:
        inner = self.read[0][-1] if self.step.op.__class__ in SUMMED else range(1)
        products = len(self.rows) * len(self.columns) * len(inner)
        whole_rows = len(self.rows) * self.step.shape[-1] if self.step.op.whole_rows else 0
        read = () if self.step.op.is_lookup else self.read
        return sum(map(cells, read)) + whole_rows > MOST_CELLS or products > MOST_PRODUCTS

    def input(self, which: int, region: Region | None = None) -> Floats:
        """Cells of an input, by default those that this part is made of."""
        name = self.step.inputs[which]
        window = self.trace.window(name, self.read[which] if region is None else region)
        return np.atleast_2d(np.asarray(window, dtype=np.float64))

    @cached_property
    def result(self) -> Floats:
        return np.asarray(self.view.window(self.rows, self.columns), dtype=np.float64)

    def frame(self, values: Floats, so_far: str, of: str, **how: Any) -> Frame:
        return Frame(Tile(self.rows.start, self.columns.start, values), f"so far {so_far} · {of}", **how)

    def swept(self, before: Floats, after: Floats, of: str) -> Act:
        """One value after another becomes the next: row by row, of a single row column by column."""
        across = len(self.rows) == 1
        count, what = (len(self.columns), "columns") if across else (len(self.rows), "rows")
        before, after = (each.reshape(len(self.rows), len(self.columns)) for each in (before, after))

        def moment(number: int) -> Frame:
            changed = np.s_[:, : number + 1] if across else np.s_[: number + 1]
            values = before.copy()
            values[changed] = after[changed]
            front = None if across else self.rows[number]
            return self.frame(values, f"{number + 1} of {count} {what}", of, front=front)

        return count, moment


# Products that run into their cells


SUMMED: Mapping[type[ops.Op], tuple[str, str, str]] = {
    ops.Scores: ("products", "q", "k"),
    ops.DistanceScores: ("products", "x", "distance"),
    ops.Context: ("rows of V", "weights", "V"),
    ops.Linear: ("products", "x", "W"),
    ops.Project: ("products", "x", "W"),
    ops.Unembed: ("products", "x", "E"),
    ops.Pool: ("tokens", "shares", "x"),
}
"""The operations that are sums of products: what each is over, and its two lines, that of the row and of the column."""


def _summed(part: _Part) -> Iterator[Act]:
    """The products run into every cell, and with them what is added to their sum."""
    left, right, shift, scale = _factors(part)
    (terms, first, second), place, count = SUMMED[type(part.step.op)], part.place, left.shape[1]
    row, column = place.row - part.rows.start, place.column - part.columns.start
    is_seen = 0 <= row < len(part.rows) and 0 <= column < len(part.columns)
    sides = (first, part.view.rows, place.row), (second, part.view.columns, place.column)
    first, second = (f"{name} {axis.label(at)}" if axis.name else name for name, axis, at in sides)
    axis = part.trace.program.axes(part.step.inputs[0])[-1]
    word = part.labels.of(axis) if isinstance(part.step.op, ops.Context) else None

    def moment(number: int) -> Frame:
        values = left[:, : number + 1] @ right[: number + 1] * scale + shift
        meets = None
        if is_seen:
            numbers = np.stack([left[row], right[:, column]])
            meets = Meeting(first, second, numbers, number + 1, float(values[row, column]))
        last = "" if word is None else f" ({word(number)})"
        return part.frame(values, f"{number + 1} of {count} {terms}{last}", part.step.op.formula, meeting=meets)

    yield count, moment


def _factors(part: _Part) -> tuple[Floats, Floats, Floats | float, float]:
    """Rows × terms, terms × columns, and what is added to the sum of their products, once that is scaled."""
    op = part.step.op
    if isinstance(op, ops.Pool):
        x = part.input(0)
        shares = op.shares(np, x[None], part.input(1))[0]
        if shares.shape[1] == 1:
            return shares.T, x, 0.0, 1.0
        return np.ones((1, len(x))), shares * x, 0.0, 1.0  # of every column another row
    if isinstance(op, ops.Scores | ops.Context):
        first, second = part.input(0)[0], part.input(1)[0]
        return first, second if isinstance(op, ops.Context) else second.T, 0.0, 1.0
    first, second = part.input(0), part.input(1)
    shift: Floats | float = part.input(2)[0] if len(part.step.inputs) > 2 else 0.0
    if isinstance(op, ops.Unembed):
        return first, second.T, shift, op.scale
    if isinstance(op, ops.Project):  # reads whole heads
        own = slice(part.columns.start, part.columns.stop)
        return first, second[:, own], shift[own] if isinstance(shift, np.ndarray) else shift, 1.0
    return first, second, shift, 1.0


# Rows that become shares, or one size


def _shared(part: _Part) -> Iterator[Act]:
    """Every row becomes bars e^(s − max), key by key; then each is divided by its sum. Parts of rows arrive."""
    if len(part.columns) < part.step.shape[-1]:
        yield from _arriving(part) if part.step.square else ()
        return
    size, rows, row = part.step.shape[-1], len(part.rows), min(max(part.place.row, part.rows[0]), part.rows[-1])
    scores = part.input(0, (*part.region[:-1], range(size))).reshape(rows, size)
    sinks = part.input(1).reshape(-1) if len(part.step.inputs) > 1 else np.array([-np.inf])
    top = np.maximum(scores.max(axis=1, keepdims=True), sinks)
    top = np.where(np.isneginf(top), 0.0, top)
    powers = np.where(np.isneginf(scores), np.nan, np.exp(scores - top))
    total = np.nansum(powers, axis=1, keepdims=True) + np.exp(sinks - top)
    shares = powers / np.where(total > 0, total, 1.0)
    keys = "keys" if part.step.square else "columns"

    def bars(values: Floats, so_far: str, of: str, front: int | None = None) -> Frame:
        summed = spoken(float(np.nansum(values[row - part.rows.start])), 3)
        said = f"a full bar is 1 · {part.view.rows.label(row)}: sum {summed}"
        return part.frame(values, so_far, of, front=front, bars=said)

    def arrived(number: int) -> Frame:
        return bars(powers[:, : number + 1], f"{number + 1} of {size} {keys}", "e^(s − max)")

    def divided(number: int) -> Frame:
        values = np.concatenate([shares[: number + 1], powers[number + 1 :]])
        return bars(values, f"{number + 1} of {rows} rows", "÷ the row's sum", part.rows[number])

    yield size, arrived
    yield rows, divided


def _normalised(part: _Part) -> Iterator[Act]:
    """Every row is brought to its middle, where the norm does that, and to one size; then it is weighed."""
    op = cast(Norm, part.step.op)
    own, size = slice(part.columns.start, part.columns.stop), part.step.shape[-1]
    x = part.input(0, (*part.region[:-1], range(size))).reshape(len(part.rows), size)
    centred = x - x.mean(axis=1, keepdims=True) if op.centred else x
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + op.epsilon)
    if op.centred:
        yield part.swept(x[:, own], centred[:, own], "x − μ")
    yield part.swept(centred[:, own], normal[:, own], op.normal_text)
    yield part.swept(normal[:, own], part.result, op.formula)


# Cell by cell, and rows that arrive


def _added(part: _Part) -> Iterator[Act]:
    """One addend after the other falls on what is there; where the sum is normalised, every row is then."""
    op, before = part.step.op, part.input(0)
    count, of = (op.parts, "the sum") if isinstance(op, ops.NormOfSum) else (len(part.step.inputs), op.formula)
    for which in range(1, count):
        after = before + part.input(which)
        yield part.swept(before, after, of)
        before = after
    if isinstance(op, ops.NormOfSum):
        yield part.swept(before, part.result, op.formula)


def _turned(part: _Part) -> Iterator[Act]:
    yield part.swept(part.input(0, part.region), part.result, part.step.op.formula)


def _arriving(part: _Part) -> Iterator[Act]:
    """One row after the other is there."""
    count = len(part.rows)

    def moment(number: int) -> Frame:
        arrived, so_far = part.result[: number + 1], f"{number + 1} of {count} rows"
        return part.frame(arrived, so_far, part.step.op.formula, front=part.rows[number])

    yield count, moment


def _merged(part: _Part) -> Iterator[Act]:
    """One head after the other stands beside those before."""
    heads, _, width = whole(part.trace.program.shape(part.step.inputs[0]))
    first, last = part.columns.start // len(width), (part.columns.stop - 1) // len(width)

    def moment(number: int) -> Frame:
        stop = (first + number + 1) * len(width) - part.columns.start
        return part.frame(part.result[:, :stop], f"{first + number + 1} of {len(heads)} heads", part.step.op.formula)

    yield last - first + 1, moment


FLOWS: Mapping[type[ops.Op], Callable[[_Part], Iterator[Act]]] = {
    **dict.fromkeys(SUMMED, _summed),
    **dict.fromkeys((ops.Softmax, ops.SoftmaxWithSink), _shared),
    **dict.fromkeys((ops.LayerNorm, ops.LayerNormByHead, ops.RmsNorm), _normalised),
    **dict.fromkeys((ops.Add, ops.NormOfSum), _added),
    **dict.fromkeys((ops.Scale, ops.Gate, ops.ClampedGate, ops.Mask, ops.Rotate, ops.UnitLength), _turned),
    **dict.fromkeys((ops.Subtract, ops.Jump, ops.JumpRelu, ops.GatedRelu, ops.Largest), _turned),
    **dict.fromkeys((ops.ToSize, ops.FromSize, ops.RmsNormOfHeads), _turned),
    **dict.fromkeys((ops.RelativeBias, ops.DistanceBias, ops.Disentangle), _turned),
    **dict.fromkeys(ACTIVATIONS, _turned),
    **dict.fromkeys((ops.Embed, ops.Sinusoid), _arriving),
    ops.MergeHeads: _merged,
}
"""How each operation moves; the others do not."""
