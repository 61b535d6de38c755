"""Patching tables: one sentence with values of another, a place at a time.

After Meng et al. 2022, "Locating and Editing Factual Associations in GPT", §2, and Wang et al. 2022, "Interpretability
in the Wild", §3.

A cell is the metric after the patch. Beside it stand the metric of the sentence itself and of the other one, so that
(cell − own) ÷ (other − own) is the share that the patch brings over. What a patch does not reach is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from tui_transformer.analysis.attentions import Attention, attentions, chosen_group
from tui_transformer.analysis.effects import ROWS, in_passes
from tui_transformer.analysis.found import found
from tui_transformer.analysis.logit_lens import Depth, depths_of, stacks_of
from tui_transformer.analysis.measurable import Positions
from tui_transformer.analysis.metrics import AnyMetric, metric_from
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Place:
    """A cell of a table: the step that takes the other sentence's values, and where it stands.

    `row`: the layer, −1 for what enters the first; `column`: the position or head, 0 where the whole step is patched;
    `rows` and `heads` of the step are patched, None for all.
    """

    step: str
    row: int
    column: int
    rows: range | None = None
    heads: range | None = None


@dataclass(frozen=True)
class Table:
    """The places of a kind, and what its rows and columns are."""

    places: tuple[Place, ...]
    rows: str
    columns: str


PlaceKind = Literal["position", "head", "layer"]
KINDS: tuple[PlaceKind, ...] = ("position", "head", "layer")
"""Places that are patched: the residual stream at a position behind each layer, a head's output, a layer's output."""


def table_of(program: Program, kind: PlaceKind, of: str = "") -> Table:
    """The places of a kind.

    Args:
        program: The steps.
        kind: "position", "head" or "layer".
        of: Which stack or attention, as "encoder" or "cross"; by default the last that there is.

    Raises:
        UsageError: There is no such kind.
        InputError: The model has no such places.
    """
    what, _, named = kind.partition(":")  # "head:encoder", as it was before there was `of`
    if what not in KINDS:
        raise UsageError(f"no kind is called {kind[:40]!r}: use {', '.join(KINDS)}")
    own = (of or named).strip()
    if what == "head":
        known = _with_contexts(program)
        group = chosen_group(program, own) if own else next((each.group for each in reversed(known)), "")
        places = [
            Place(f"{each.sublayer}.context", each.layer, head, heads=range(head, head + 1))
            for each in known
            if each.group == group
            for head in range(each.heads)
        ]
    elif what == "layer":
        places = [Place(depth.step, depth.layer, 0) for depth in _stream(program, own)]
    else:
        places = [
            Place(depth.step, depth.layer, row, rows=range(row, row + 1))
            for depth in _stream(program, own)
            for row in range(program.shape(depth.step)[0])
        ]
    if not places:
        raise InputError(f"the model has no {what}s whose values could be patched")
    return Table(tuple(places), "layer", "whole" if what == "layer" else what)


def kinds_of(program: Program) -> tuple[tuple[PlaceKind, str], ...]:
    """The kinds of places that a program has, as `table_of` takes them: of the last stack (""), then of others."""
    stacks, groups = stacks_of(program), tuple(dict.fromkeys(each.group for each in _with_contexts(program)))
    there = {kind: groups if kind == "head" else stacks for kind in KINDS}
    own = [kind for kind, names in there.items() if names]
    return (*((kind, "") for kind in own), *((kind, of) for kind in own for of in there[kind][-2::-1]))


def _stream(program: Program, of: str) -> Sequence[Depth]:
    """The steps that enter the first layer and leave each, of a stack; by default of the last."""
    stacks = stacks_of(program)
    if not stacks:
        raise InputError("the model has no layers whose values could be patched")
    if of and of not in stacks:
        raise InputError(f"there is no {of[:40]} with layers here: choose {' or '.join(stacks)}")
    return depths_of(program, of or stacks[-1])


def _with_contexts(program: Program) -> list[Attention]:
    return [each for each in attentions(program) if f"{each.sublayer}.context" in program.by_name]


@dataclass(frozen=True)
class Measured:
    """A place and the metric with it patched."""

    place: Place
    value: float


def _cells(found: Measured) -> Iterator[dict[str, Any]]:
    place = found.place
    yield {"step": place.step, "layer": place.row, "column": place.column, "value": found.value}


@found(_cells)
def sweep(
    trace: Trace,
    other: Trace,
    table: Table | PlaceKind,
    metric: AnyMetric,
    positions: Positions | None = None,
    before: Watch | None = None,
    rows: int = ROWS,
) -> Iterator[Measured]:
    """The metric with every place patched alone, one at a time as it is found.

    Args:
        trace: The sentence.
        other: The one that values come from, with as many tokens.
        table: The places, or their kind, as in `table_of`.
        metric: What is measured; any function of a trace will do.
        positions: Where the answer is read; by default at the last token that is no padding.
        before: As in `Trace.compute`.
        rows: How many rows are computed at a time, at most.

    Raises:
        InputError: The sentences have different lengths.
    """
    if max(trace.batch, other.batch) > 1:
        raise UsageError("a table of patches is of one sentence and another: trace each alone")
    table = table_of(trace.program, table) if isinstance(table, str) else table
    lengths = [each.program.shape(table.places[0].step)[-2] for each in (trace, other)] if table.places else [0, 0]
    if lengths[0] != lengths[1]:
        raise InputError(f"the sentences have {lengths[0]} and {lengths[1]} tokens: a table of patches needs as many")
    for each in (trace, other):
        each.compute(before=before)
    for some in measured(trace, other, table.places, metric, positions, before, rows):
        yield from some


def measured(
    trace: Trace,
    other: Trace,
    places: Iterable[Place],
    metric: AnyMetric,
    positions: Positions | None = None,
    before: Watch | None = None,
    rows: int = ROWS,
) -> Iterator[list[Measured]]:
    """The metric with each of some places patched alone, as many at a time as share a pass; else as `sweep`."""
    patches = ((place, [Patch.between(trace, other, place.step, place.rows, place.heads)]) for place in places)
    measurable = metric_from(metric)
    for group, edited, items in in_passes(trace, patches, rows=rows, keep=measurable.reads_any):
        values = measurable.measure_each(edited, trace, positions, items, watch=before)
        yield list(map(Measured, group, values))
