"""Patching tables: one sentence with values of another, a place at a time.

After Meng et al. 2022, "Locating and Editing Factual Associations in GPT", §2, and Wang et al. 2022, "Interpretability
in the Wild", §3.

A cell is the metric after the patch. Beside it stand the metric of the sentence itself and of the other one, so that
(cell − own) ÷ (other − own) is the share that the patch brings over. What a patch does not reach is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.metrics import Metric, Positions
from tui_transformer.analysis.passes import in_passes
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.keep import layer_outputs
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError

START = "embedding.output"


@dataclass(frozen=True)
class Place:
    """A cell of a table: what is patched.

    Attributes:
        step: The step that takes the other sentence's values.
        row: Of the table: the layer; −1 is what enters the first.
        column: The position or head; 0 where the whole step is patched.
        rows: The rows of the step that are patched; None for all.
        heads: The heads; None for all.
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


def _stream(program: Program) -> dict[int, str]:
    """The stream that enters the first layer and the streams that leave each, of the last stack."""
    outputs = layer_outputs(program)
    stack = program.steps[program.places[outputs[-1]]].name.partition(".")[0] if outputs else ""
    streams = dict(enumerate(name for name in outputs if name.startswith(f"{stack}.")))
    if not streams:
        raise InputError("the model has no layers whose values could be patched")
    entrance = next((name for name in (f"{stack}.{START}", START) if name in program.names), None)
    return ({} if entrance is None else {-1: program.step(entrance).name}) | streams


def _positions(program: Program) -> Table:
    places = (
        Place(step, layer, row, rows=range(row, row + 1))
        for layer, step in _stream(program).items()
        for row in range(program.shape(step)[0])
    )
    return Table(tuple(places), "layer", "position")


def _layers(program: Program) -> Table:
    return Table(tuple(Place(step, layer, 0) for layer, step in _stream(program).items()), "layer", "whole")


def _heads(program: Program) -> Table:
    steps = [each for each in attentions(program) if f"{each.name.rpartition('.')[0]}.context" in program.by_name]
    group = steps[-1].group if steps else ""
    places = (
        Place(f"{each.name.rpartition('.')[0]}.context", each.layer, head, heads=range(head, head + 1))
        for each in steps
        if each.group == group
        for head in range(each.heads)
    )
    return Table(tuple(places), "layer", "head")


KINDS: Mapping[str, Callable[[Program], Table]] = {"position": _positions, "head": _heads, "layer": _layers}
"""Kinds of places: the residual stream at a position behind each layer, a head's output, all that leaves a layer."""


@dataclass(frozen=True)
class Measured:
    """A place and the metric with it patched."""

    place: Place
    value: float


def table_of(program: Program, kind: str) -> Table:
    """The places of a kind.

    Raises:
        UsageError: There is no such kind.
        InputError: The model has no such places.
    """
    if kind not in KINDS:
        raise UsageError(f"no kind is called {kind[:40]!r}: use {', '.join(KINDS)}")
    table = KINDS[kind](program)
    if not table.places:
        raise InputError(f"the model has no {kind}s whose values could be patched")
    return table


def sweep(
    trace: Trace,
    other: Trace,
    table: Table | str,
    metric: Metric,
    positions: Positions = -1,
    before: Watch | None = None,
) -> Iterator[Measured]:
    """The metric with every place patched alone, one at a time as it is found.

    Args:
        trace: The sentence.
        other: The one that values come from, with as many tokens.
        table: The places, or their kind: "position", "head" or "layer".
        metric: What is measured.
        positions: Where the answer is read; by default at the last token.
        before: As in `Trace.compute`.

    Raises:
        InputError: The sentences have different lengths.
    """
    table = table_of(trace.program, table) if isinstance(table, str) else table
    for each in (trace, other):
        each.compute(before=before)
    for some in measured(trace, other, table.places, metric, positions, before):
        yield from some


def measured(
    trace: Trace,
    other: Trace,
    places: Iterable[Place],
    metric: Metric,
    positions: Positions = -1,
    before: Watch | None = None,
) -> Iterator[list[Measured]]:
    """The metric with each of some places patched alone, as many at a time as share a pass; arguments as of `sweep`.

    Raises:
        InputError: The sentences have different lengths.
    """
    patches = ((place, [Patch.between(trace, other, place.step, place.rows, place.heads)]) for place in places)
    for group, edited, items in in_passes(trace, patches):
        values = metric.measure_each(edited, trace, positions, items, watch=before)
        yield list(map(Measured, group, values))
