"""Views of steps and weights, of rolled-out layers, of circuits and of paths: rows, columns, and the labels on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tui_transformer.engine.axis import Axes, Region
from tui_transformer.engine.axis import Axis as ArrayAxis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.ops import Softmax, SoftmaxWithSink
from tui_transformer.engine.program import FEATURE, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.display import token_label
from tui_transformer.views.view import Axis, Scale, ScaleKind, Values, View, window_of

if TYPE_CHECKING:
    from tui_transformer.analysis.attentions import Attention
    from tui_transformer.analysis.circuits import Circuit, Path
    from tui_transformer.analysis.nodes import Node
    from tui_transformer.analysis.paths import By

ONE = ArrayAxis("", 1)

AT_A_TIME = 1 << 18
"""Cells that are read at a time where a small picture is made of many."""


@dataclass(frozen=True)
class Place:
    """A cell of a view: the head (0 where there are none), row and column."""

    head: int = 0
    row: int = 0
    column: int = 0

    def within(self, view: View) -> Place:
        """The same place, or the nearest row and column that a view has."""
        rows, columns = view.shape
        return replace(self, row=min(self.row, rows - 1), column=min(self.column, columns - 1))


@dataclass(frozen=True, eq=False)
class Labels:
    """The words beside rows and columns: of each token sequence, and of IDs of the vocabulary that the model writes.

    What its encoder reads has a `source_word`, where these are others.
    """

    sequences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    word: Callable[[int], str] = str
    source_word: Callable[[int], str] = str

    def of(self, axis: ArrayAxis) -> Callable[[int], str]:
        """The text of an axis's indices, safe to show. A word that occurs again has its position."""
        words = axis.words or self.sequences.get(axis.sequence)
        if words is not None and len(words) == axis.size:
            return _distinct(words).__getitem__
        if axis.name == FEATURE:
            return "f{}".format
        word = {"vocabulary": self.word, "source vocabulary": self.source_word}.get(axis.name)
        return str if word is None else lambda index: token_label(word(index))


@lru_cache(64)
def _distinct(words: tuple[str, ...]) -> tuple[str, ...]:
    """Labels of words that follow one another: they are asked for again with every step that is shown."""
    times = Counter(words)
    return tuple(token_label(word) + f" @{at}" * (times[word] > 1) for at, word in enumerate(words))


def view_of(trace: Trace, name: str, labels: Labels, *, head: int = 0, item: int = 0) -> View:
    """One step or weight as a matrix: of one head where it has heads, a column where it has one number a token.

    InputError where there is no such step or weight, or no such head.
    """
    axes = trace.program.axes(name)
    heads = axes[0].size if len(axes) == 3 else 0
    if not 0 <= head < max(heads, 1):
        raise InputError(f"{name} has no head {head}: " + (f"use 0 to {heads - 1}" if heads > 1 else "use 0"))
    sides = dict(zip(_sides(axes), axes, strict=True))
    rows, columns = sides.get("row", ONE), sides.get("column", ONE)
    step = trace.program.by_name.get(trace.program.aliases.get(name, name))
    is_names = step is not None and step.op.integer
    single = "ID" if is_names else "value"

    def window(wanted_rows: range, wanted_columns: range) -> Values:
        values = trace.window(name, region_of(axes, head, wanted_rows, wanted_columns), item)
        return values.reshape(len(wanted_rows), len(wanted_columns))

    across = (lambda _: single) if columns is ONE else labels.of(columns)
    return View(
        name=name,
        title=name,
        rows=Axis(rows.name, rows.size, labels.of(rows), rows.sequence),
        columns=Axis(columns.name, columns.size, across, columns.sequence),
        kind="diverging" if step is None or step.op.signed else "sequential",
        window=window,
        formula="" if step is None else step.op.formula,
        head=head if heads else None,
        heads=heads,
        integer=is_names,
        edited=_edited(trace, name, axes, head) if trace.edits else (),
        shares=_of_shares(step),
    )


def _of_shares(step: Step | None) -> bool:
    return step is not None and (step.op.integer or isinstance(step.op, Softmax | SoftmaxWithSink))


def _edited(trace: Trace, name: str, axes: Axes, head: int) -> tuple[tuple[range, range], ...]:
    own = trace.program.named(name)
    regions = (dict(zip(_sides(axes), edit.region, strict=True)) for edit in trace.edits if edit.name == own)
    here = (sides for sides in regions if head in sides.get("head", (head,)))
    return tuple((sides.get("row", range(1)), sides.get("column", range(1))) for sides in here)


def placed(label: str, index: int) -> str:
    """A label with its position: `the @2`; a number alone stands for itself."""
    return label if label in (str(index), f"f{index}") or label.endswith(f" @{index}") else f"{label} @{index}"


def gradient_of(view: View, axes: Axes, gradient: Host, of: str = "loss") -> View:
    """The gradient of what a view shows: ∂loss/∂value of every cell, from the whole array of one sentence."""

    def window(rows: range, columns: range) -> Values:
        region = region_of(axes, view.head or 0, rows, columns)
        part: Values = gradient[tuple(slice(each.start, each.stop) for each in region)]
        return part.reshape(len(rows), len(columns))

    return replace(
        view,
        title=f"∂{of}/∂{view.name}",
        kind="diverging",
        window=window,
        formula="",
        integer=False,
        edited=(),
        shares=False,
    )


def difference_of(first: View, second: View) -> View:
    """First less second, cell by cell, of the rows and columns that both have."""

    def window(rows: range, columns: range) -> Values:
        a, b = (view.window(rows, columns).astype(np.float64) for view in (first, second))
        with np.errstate(invalid="ignore"):
            return np.where(a == b, 0.0, a - b)

    rows, columns = _in_common(first.rows, second.rows), _in_common(first.columns, second.columns)
    return replace(
        first,
        title=f"difference in {first.name}",
        rows=rows,
        columns=columns,
        kind="diverging",
        window=window,
        formula="",
        integer=first.integer and second.integer,
        shares=False,
    )


def _in_common(first: Axis, second: Axis) -> Axis:
    """The part of an axis that both have; labels that differ are both named."""

    def label(index: int) -> str:
        one, other = first.label(index), second.label(index)
        return one if one == other else f"{one}/{other}"

    return replace(first, size=min(first.size, second.size), label=label)


def index_of(axes: Axes, place: Place) -> Index:
    """The cell of an array that a place in its view shows."""
    return tuple(getattr(place, side) for side in _sides(axes))


def place_of(axes: Axes, index: Index) -> Place:
    """The place in a view that shows a cell of an array."""
    return Place(**dict(zip(_sides(axes), index, strict=True)))


def _sides(axes: Axes) -> tuple[str, ...]:
    """The part that each axis has in a view: a number a token stands upright, a vector of the model's width lies."""
    if len(axes) == 1:
        return ("row",) if axes[0].sequence else ("column",)
    return ("head", "row", "column")[-len(axes) :]


def region_of(axes: Axes, head: int, rows: range, columns: range) -> Region:
    """The part of an array that rows and columns of its view show."""
    parts = {"head": range(head, head + 1), "row": rows, "column": columns}
    return tuple(parts[side] for side in _sides(axes))


USUAL = 0.995
"""The share of a matrix's cells whose colours outliers must not flatten."""

OUTLIER = 3.0
"""How many times that share's largest magnitude a value has to have to be an outlier."""


class Limits(NamedTuple):
    """The smallest and the largest of some values; where that is an outlier, the magnitude that most stay within."""

    low: float
    high: float
    usual: float = math.inf


def joined(*parts: Limits) -> Limits:
    """The limits of what has these, at least one, so that the colours of none are flattened."""
    low, high = min(each.low for each in parts), max(each.high for each in parts)
    usual = max(min(each.usual, max(-each.low, each.high)) for each in parts)
    return Limits(low, high, usual if max(-low, high) > OUTLIER * usual else math.inf)


def scale_for(kind: ScaleKind, low: float, high: float, usual: float = math.inf) -> Scale:
    """A scale over the values from low to high, as far as most of them reach.

    A diverging one reaches equally far on both sides of 0.
    """
    farthest = low if -low > high else high
    if kind == "diverging":
        reach = min(abs(farthest), usual) or 1.0
        return Scale(kind, -reach, reach, farthest if abs(farthest) > reach else 0.0)
    if abs(farthest) > usual:
        return Scale(kind, max(low, -usual), min(high, usual), farthest)
    return Scale(kind, low, high) if high > low else Scale(kind, min(low, 0.0), max(high, 0.0) or 1.0)


def extremes(trace: Trace, name: str) -> Limits | None:
    """The limits of a step in all heads, masked cells aside; None where it is not kept whole.

    Shares, which sum to 1, have no outliers.
    """
    name = trace.program.aliases.get(name, name)
    step = trace.program.by_name.get(name)
    if step is not None and name not in trace.plan.names:
        return None
    return tile_extremes(trace.array(name), trace.backend.xp, shares=_of_shares(step))


def tile_extremes(values: Any, xp: Any = np, *, shares: bool = False) -> Limits:
    """The limits of the finite ones of some values, an array of the module `xp`."""
    low, high = (float(values.min()), float(values.max())) if values.size else (math.nan, math.nan)
    if not (math.isfinite(low) and math.isfinite(high)):
        values = values[xp.isfinite(values)]
        if not values.size:
            return Limits(0.0, 0.0)
        low, high = float(values.min()), float(values.max())
    if shares:
        return Limits(low, high)
    flat, outlying, many = values.ravel(), max(-low, high) / OUTLIER, 0
    at = int(USUAL * (flat.size - 1))
    for start in range(0, flat.size, AT_A_TIME):  # mostly some tell that too many are large; else all are ordered
        many += int((abs(flat[start : start + AT_A_TIME]) > outlying).sum())
        if many >= flat.size - at:
            return Limits(low, high)
    return Limits(low, high, float(xp.partition(abs(flat), at)[at]) or math.inf)


def thumbnail(
    view: View,
    rows: int,
    columns: int,
    drawn: Callable[[Host], Host] = lambda cells: cells,
    before: Callable[[], None] = lambda: None,
    at_a_time: int = AT_A_TIME,
) -> Host:
    """A view as at most rows × columns numbers, each the largest by size of all cells that it stands for.

    It is read some rows at a time, so many cells together; `drawn` makes of them what is shown, and `before` is called
    before each, and may raise to end it.
    """
    height, width = view.shape
    if height * width <= at_a_time:
        return small(drawn(view.window(range(height), range(width))), rows, columns)
    count, together = min(rows, height), max(at_a_time // max(width, 1), 1)
    groups = []
    for start, stop in pairwise(height * group // count for group in range(count + 1)):
        parts = []  # one row for many: of each column the value farthest from 0
        for first in range(start, stop, together):
            before()
            part = view.window(range(first, min(first + together, stop)), range(width))
            parts.append(pooled(drawn(part), 1, axis=0))
        groups.append(pooled(np.concatenate(parts), 1, axis=0))
    return small(np.concatenate(groups), rows, columns)


def small(cells: Host, rows: int, columns: int) -> Host:
    """A matrix as at most rows × columns numbers, each the largest by size of the cells that it stands for."""
    return pooled(pooled(cells, rows, axis=0), columns, axis=1)


def pooled(cells: Host, size: int, axis: int) -> Host:
    """At most `size` groups along an axis; the value farthest from 0 stands for a group, masked cells last."""
    length = cells.shape[axis]
    if length <= size:
        return cells
    starts = [length * i // size for i in range(size)]
    finite = np.where(np.isfinite(cells), cells, 0.0).astype(cells.dtype)
    high = np.maximum.reduceat(finite, starts, axis=axis)
    low = np.minimum.reduceat(finite, starts, axis=axis)
    hidden = np.logical_and.reduceat(~np.isfinite(cells), starts, axis=axis)
    return np.where(hidden, -np.inf, np.where(high >= -low, high, low)).astype(cells.dtype)


def rollout_view(step: Attention, rolled: Host, labels: Labels) -> View:
    """The rollout after the layer of an attention step, tokens × input tokens, with the words of its tokens."""
    word, queries = labels.of(step.queries), step.queries
    name = f"rollout.{step.stack}.{step.layer}"
    formula = "R_l = Ã_l R_(l−1), Ã = (mean of heads + I) ÷ 2, rows made to sum to 1"
    rows, columns = (Axis(name, queries.size, word, queries.sequence) for name in ("token", "input"))
    return View(name, name, rows, columns, "sequential", window_of(rolled), formula)


HEAD_MATRICES: Mapping[str, tuple[str, Callable[[Circuit], Host]]] = {
    "OV": ("W_V W_O: what a token that is attended to writes", lambda head: head.ov),
    "QK": ("W_Q W_Kᵀ: which tokens attend to which", lambda head: head.qk),
    "Q": ("W_Q", lambda head: head.query),
    "K": ("W_K", lambda head: head.key),
    "V": ("W_V", lambda head: head.value),
    "O": ("W_O", lambda head: head.output),
}
"""The matrices of a head, with what they are."""


def circuit_view(head: Circuit, which: str) -> View:
    """A matrix of a head."""
    formula, matrix = HEAD_MATRICES[which]
    values = matrix(head)
    rows, columns = Axis("row", values.shape[0], str), Axis("column", values.shape[1], str)
    name = f"circuits.{head.attention.stack}.{_head_name(head)}.{which}"
    return View(name, name, rows, columns, "diverging", window_of(values), formula)


def composition_view(heads: Sequence[Circuit], paths: Sequence[Path], reads: str) -> View:
    """The scores, earlier heads × later heads; NaN where the one does not come before the other."""
    places = {id(head): place for place, head in enumerate(heads)}
    values = np.full((len(heads), len(heads)), np.nan)
    for path in paths:
        values[places[id(path.source)], places[id(path.target)]] = path.score
    label = [_head_name(head) for head in heads].__getitem__
    name, formula = f"composition.{reads}", f"how much of what a head reads as {reads} an earlier one writes"
    rows, columns = Axis("from", len(heads), label), Axis("to", len(heads), label)
    return View(name, name, rows, columns, "sequential", window_of(values), formula)


def path_view(senders: Sequence[Node], receivers: Sequence[Node], changes: Host, by: By, metric: str) -> View:
    """Changes of a metric, senders × receivers, NaN where there is no path."""
    several = len({part.place.partition(".")[0] for node in senders for part in node.parts}) > 1

    def label(node: Node) -> str:
        """As short as a heat map needs, what tells most in front: `1.3 head`, `0.2 cross key`."""
        if len(node.parts) > 1 or node.layer is None:
            return node.name
        place, layer = node.parts[0].place, "" if node.layer < 0 else str(node.layer)
        number = layer if node.head is None else f"{layer}.{node.head}"
        which = "cross" if "cross" in place else place[:3] if several else ""
        return " ".join(filter(None, (number, which, node.parts[0].kind)))

    return View(
        f"paths by {by}",
        f"change of {metric} by each path",
        Axis("sender", len(senders), lambda i: label(senders[i])),
        Axis("receiver", len(receivers), lambda j: label(receivers[j])),
        "diverging",
        window_of(changes),
        absent="no path",
    )


def _head_name(head: Circuit) -> str:
    """`0.3`, of layer 0 the head 3; with the kind where it is no self-attention."""
    return f"{head.attention.layer}.{head.head}" + ("" if head.attention.own else "×")
