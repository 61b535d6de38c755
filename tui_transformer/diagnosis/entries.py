"""Arrays of a dump as steps: which of their axes is which, and what those are that are no steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Precision, Tensor, Values, role_of
from tui_transformer.diagnosis.naming import Target
from tui_transformer.diagnosis.naming.words import SETTINGS, last, phrase_of
from tui_transformer.diagnosis.reference_values import Reference, stands_for_infinity
from tui_transformer.engine.axis import Axes, Shape, shape_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.names import DIFFERENCE
from tui_transformer.engine.number_format import spoken
from tui_transformer.records import dataclass, replace

LETTERS = {"batch": "batch", "head": "heads", "token": "tokens", "query": "queries", "key": "keys", "head width": "d_k"}
GIVENS = {
    "ids": "input.ids",
    "decoder ids": "decoder.input.ids",
    "segments": "input.segments",
    "mask": "input.visible",
    "decoder mask": "decoder.input.visible",
}
"""What an array is of the input, and the input."""


@dataclass(frozen=True, eq=False)
class Entry:
    """An array of a dump in the shape of a step.

    Attributes:
        step: The step.
        theirs: Its name in the dump.
        array: Batch × the axes of the step.
        known: True where a number is there; None where all are.
        precision: Of the numbers.
        assumed: What was taken for granted of its axes and its name: each array's name, "" in a sentence of its own.
    """

    step: str
    theirs: str
    array: Host
    known: Host | None
    precision: Precision
    assumed: tuple[tuple[str, str], ...] = ()


Misfit = tuple[str, str, str]
"""A step, the name in the dump, and both shapes, which do not fit."""


@dataclass(frozen=True)
class Planned:
    """What an array of a dump was taken for.

    Attributes:
        theirs: Its name.
        shape: Its shape; None where it cannot be read.
        step: The step, the input or the weight that it is; "" where it is none.
        description: What was taken for granted of its name and its axes.
        reason: Why its numbers are not compared; "" where they are.
        entries: The array as the steps that it is.
        misfits: Steps that it is called, and has not the shape of.
        agrees: Its values are right.
    """

    theirs: str
    shape: Shape | None
    step: str = ""
    description: str = ""
    reason: str = ""
    entries: tuple[Entry, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    agrees: bool = False

    def to_json(self, sentence: str = "") -> dict[str, object]:
        """As `diff --matched --format json` writes it."""
        said: dict[str, object] = {"sentence": sentence} if sentence else {}
        return said | {
            "theirs": self.theirs,
            "shape": None if self.shape is None else list(self.shape),
            "step": self.step or None,
            "assumed": self.description,
            "reason": self.reason or None,
        }


def entry_of(tensor: Tensor, target: Target, step: str, layout: Layout, reference: Reference) -> Entry:
    """An array as a step, with what was taken for granted."""
    name = tensor.name
    said = [(name, layout.assumed)] if layout.assumed else []
    said += [("", f"{name} is {step}, not {last(target.steps[0])}")] if step != target.steps[0] else []
    said += [(name, target.note)] if target.note else []
    array = layout.array.astype(np.float64, copy=False)
    hidden = stands_for_infinity(array, reference.value(step)) & np.isfinite(array)
    counted = reference.counted(step, layout.known)
    hidden = hidden if counted is None else hidden & counted
    said += [(name, f"{spoken(float(np.median(array[hidden])), 3)} stands for −∞")] if hidden.any() else []
    return Entry(step, name, array, layout.known, tensor.values.precision, tuple(said))


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that hold one head each, as one entry a step; of several whole ones, all."""
    parts: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.known is None:
            yield entry
        else:
            parts.setdefault(entry.step, []).append(entry)
    for entry, *others in parts.values():
        for other in others:
            if entry.known is None or other.known is None or bool((entry.known & other.known).any()):
                yield other
                continue
            array, known = np.where(other.known, other.array, entry.array), entry.known | other.known
            entry = replace(entry, array=array, known=known, assumed=(*entry.assumed, *other.assumed))
        yield replace(entry, known=None) if entry.known is not None and bool(entry.known.all()) else entry


# Which axis of an array is which


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


def layouts(values: Values, axes: Axes, batch: int, target: Target, *, fastest_first: bool) -> list[Layout]:
    """The ways in which an array can be that of a step, the plainest first; none where it does not fit."""
    if target.columns is not None:
        tokens = axes[1].size if len(axes) == 3 else axes[0].size
        width = values.array.size // max(1, batch * tokens)
        if batch * tokens * width != values.array.size or target.columns.max() >= width:
            return []
        columns, sizes = target.columns, (batch, tokens, width)
        values = values.mapped(lambda array: array.reshape(sizes)[..., columns])
    if target.head is not None and len(axes) == 3:
        inner = _whole(values, axes[1:], batch, fastest_first=fastest_first)
        return [_placed(each, (batch, *shape_of(axes)), np.s_[:, target.head]) for each in inner]
    ways = list(_whole(values, axes, batch, fastest_first=fastest_first))
    others: list[Layout] = []
    if target.offset is not None:
        words = "before the bias is added"
        others = [replace(each, array=each.array + target.offset, assumed=words, natural=False) for each in ways]
    elif target.scale != 1.0:
        words = f"rows before they are multiplied by {target.scale:.4g}"
        others = [replace(each, array=target.scale * each.array, assumed=words, natural=False) for each in ways]
    elif target.order is not None and target.columns is None:
        words = "columns of a head are in the order of the model's file"
        others = [_ordered(each, target.order, words, natural=each.natural) for each in ways]
    elif target.paired:  # columns 2i and 2i + 1 of every head as columns i and i + d_k/2
        order = np.concatenate([np.arange(0, axes[-1].size, 2), np.arange(1, axes[-1].size, 2)])
        words = "columns i and i + d_k/2 lie side by side, as in GGUF files"
        others = [_ordered(each, order, words, natural=False) for each in ways]
    return [*ways, *others]


def _ordered(layout: Layout, order: Host, words: str, *, natural: bool) -> Layout:
    """The same with its columns in an order."""
    known = None if layout.known is None else layout.known[..., order]
    assumed = ", ".join(filter(None, (layout.assumed, words)))
    return Layout(layout.array[..., order], known, assumed, natural=natural)


def _placed(layout: Layout, sizes: Shape, where: Any) -> Layout:
    array, known = np.full(sizes, np.nan), np.zeros(sizes, dtype=np.bool_)
    array[where], known[where] = layout.array, True if layout.known is None else layout.known
    return replace(layout, array=array, known=known)


def _whole(values: Values, axes: Axes, batch: int, *, fastest_first: bool) -> Iterator[Layout]:
    """An array as all of a step; where it holds as many numbers as one row, as the last row."""
    sizes: Shape = (batch, *shape_of(axes))
    fitting = _fitting(_squeezed(values.array.shape), axes, sizes, fastest_first=fastest_first)
    for order, how, assumed in fitting:
        moved = values.mapped(partial(_moved, sizes=sizes, order=order, how=how))
        yield Layout(moved.array, moved.known, assumed, natural=how not in ("transposed", "columns"))
    if not fitting and len(axes) == 2 and values.array.size == batch * axes[-1].size and sizes[1] > 1:
        row = Layout(values.array.reshape(batch, -1), None, "only the last token is in the dump")
        yield _placed(row, sizes, np.s_[:, -1])


Order = tuple[int, ...]
"""Batch (0) and axes (1, 2, 3) as they follow each other in an array."""


def _squeezed(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _orders(axes: Axes) -> Iterator[Order]:
    """Orders that are found in the wild."""
    yield tuple(range(len(axes) + 1))
    if len(axes) == 3:
        yield (0, 2, 1, 3)
        if axes[0].name == "head" and axes[2].name == "head width":
            yield (2, 0, 1, 3)
    if len(axes) == 2:
        yield (1, 0, 2)


def _fitting(shape: Shape, axes: Axes, sizes: Shape, *, fastest_first: bool) -> Collection[tuple[Order, str, str]]:
    """Orders of the axes that give the shape, how the numbers lie, and what that assumes; alike ones once."""
    found: dict[tuple[Order, str], tuple[Order, str, str]] = {}
    plain_order = _of_many(tuple(range(len(sizes))), sizes)
    if len(shape) == 1 and math.prod(sizes) == shape[0] and len(_squeezed(sizes)) > 1:
        # the numbers lie in one row: in the orders of C, then columns below each other
        for how in ("as it is", "columns"):
            for order in _orders(axes):
                turned = order if how == "as it is" else (*order[:-2], order[-1], order[-2])
                many = _of_many(turned, sizes)
                found.setdefault(
                    (many, ""), (turned, how, f"its numbers, which have no shape, are {_named(many, axes)}")
                )
        return found.values()
    for order in _orders(axes):
        for merged in _merged(tuple(sizes[i] for i in order), axes):
            plain = _squeezed(merged)
            ways = ["as it is"] if shape == plain and not fastest_first else []
            if shape == plain[::-1] and len(plain) > 1:
                ways += ["reversed"] if fastest_first else ["reversed", "transposed"]
            elif shape == plain and fastest_first:
                ways.append("reversed")
            many, kept = _of_many(order, sizes), tuple(i for i in order if sizes[i] != 1 or i)
            for how in ways:
                words = [f"axes are {_named(kept, axes)}"] if many != plain_order else []
                words += [] if fastest_first else HOW.get(how, [])
                found.setdefault((many, how), (order, how, ", ".join(words)))
    return found.values()


HOW = {"transposed": ["the matrix is transposed"], "reversed": ["the shape names the fastest axis first"]}


def _of_many(order: Order, sizes: Shape) -> Order:
    """An order without the axes of one cell, which may stand anywhere."""
    return tuple(i for i in order if sizes[i] != 1)


def _named(order: Order, axes: Axes) -> str:
    names = ["sentences", *(LETTERS.get(axis.name, axis.name) for axis in axes)]
    return " × ".join(names[i] for i in order)


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


def _moved(array: Host, sizes: Shape, order: Order, how: str) -> Host:
    array = np.transpose(array) if how == "transposed" else array
    ordered = tuple(sizes[i] for i in order)
    moved: Host = np.ascontiguousarray(array).reshape(ordered).transpose(np.argsort(order))
    return moved


# What a dump holds besides steps: what went into the model, its weights, and settings


def given_of(tensor: Tensor, reference: Reference) -> Planned | None:
    """What an array is besides a step; None where it is neither."""
    plan = partial(Planned, tensor.name, tensor.shape)
    if not tensor.numbers:
        return plan(description="holds no numbers")
    if tensor.name.startswith(GRADIENT):
        return plan(reason="a gradient: only what the forward pass computes is compared")
    if tensor.name.startswith(DIFFERENCE):
        return plan(reason="a difference of two traces: only what the forward pass computes is compared")
    role = role_of(tensor)
    if not role:
        alone = tensor.heading is not None and tensor.values.array.size == 1
        is_setting = alone and tensor.heading is not None and phrase_of(tensor.heading.text) in SETTINGS
        return plan(description="a setting") if is_setting else None
    if role in ("labels", "targets"):
        return plan("loss" if "loss" in reference.program.by_name else "", "what a loss is taken of")
    if role == "mask" and len(tensor.shape) > 1 and tensor.shape[-1] == tensor.shape[-2] > 1:
        theirs = np.squeeze(tensor.values.array)
        for step in reference.program.steps:
            if step.name.endswith(".masked") and len(step.axes) == 3 and shape_of(step.axes)[1:] == theirs.shape:
                hidden = np.isneginf(reference.value(step.name)[0, 0])
                if any((cells == hidden).all() for cells in (theirs != 0, theirs == 0)):
                    return plan("input.visible", f"hides what {step.name} hides")
        return plan(reason="hides other cells than the model's mask")
    return _input(tensor, role, reference, plan)


def _input(tensor: Tensor, role: str, reference: Reference, plan: Callable[..., Planned]) -> Planned | None:
    """An input, which is that of the right values, or says why it is not."""
    theirs, name = tensor.values.array, GIVENS.get(role, "")
    known, ours = tensor.values.known, reference.exact.givens.get(name)
    if known is not None and ours is not None and known.size == ours.size:
        theirs = np.where(known.reshape(ours.shape), theirs.reshape(ours.shape), ours)
    if not (theirs.size and np.isfinite(theirs).all() and bool((np.floor(theirs) == theirs).all())):
        return None if tensor.heading is not None else plan(reason="not the whole numbers that its name says")
    if role == "positions":
        if (theirs == np.arange(theirs.shape[-1])).all():
            return plan(description="0, 1, 2, …")
        return plan(reason="positions other than 0, 1, 2, … are not read")
    if ours is None:
        same = (role in ("mask", "decoder mask") and bool(theirs.all())) or not theirs.any()
        return plan(description="has no effect") if same else plan(reason="the model reads no such input")
    if theirs.size == ours.size:
        equal = theirs.reshape(ours.shape) == ours
        if equal.all():
            return plan(name, "the same")
        if role == "mask" and not equal.any():
            return plan(name, "the same, 1 where a token is hidden")
    return plan(reason="not what the model was given here")


def weight_of(tensor: Tensor, steps: Iterable[str], reference: Reference) -> str:
    """The weight of one of these steps that an array holds, whole or the columns of a head; "" where it holds none."""
    if tensor.values.known is not None:
        return ""
    theirs, program = np.squeeze(tensor.values.array), reference.program
    close = 4.0 * tensor.values.precision.of(theirs) + 1e-7
    for name in (f"{step}.{part}" for step in dict.fromkeys(steps) for part in ("weight", "bias")):
        if name in program.weights:
            ours = np.squeeze(reference.exact.weights.get(name, program.shape(name)))
            for whole in (ours, ours.T):
                parts = [whole] if theirs.shape == whole.shape else []
                if not parts and theirs.ndim == whole.ndim == 2 and theirs.shape[0] == whole.shape[0]:
                    count, rest = divmod(whole.shape[1], theirs.shape[1])
                    parts = np.split(whole, count, axis=1) if not rest else []
                if any(bool((np.abs(theirs - part) <= close).all()) for part in parts):
                    return name
    return ""
