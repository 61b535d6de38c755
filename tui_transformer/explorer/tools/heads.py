"""All heads at once: a grid of layers × heads as small pictures, in order of the layers or of a measure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tui_transformer.analysis.attentions import Attention, Reader, attentions, chosen_group, groups
from tui_transformer.analysis.head_measures import SIDE, LayerMeasures, largest, layer_measures, left_out, smaller
from tui_transformer.analysis.measures import HEAD_MEASURES, Measure
from tui_transformer.analysis.tokens import NOTHING, Hidden
from tui_transformer.engine.number_format import minus
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to, part_shown, work_on
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.links import attention_at
from tui_transformer.explorer.tools.sentence import edit_in, show_as_new
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.records import dataclass, replace
from tui_transformer.session.session import Session
from tui_transformer.views.view import Scale, Values

_RESULTS: WeakKeyDictionary[Trace, dict[tuple[str, Hidden], LayerMeasures]] = WeakKeyDictionary()
"""Measures of each trace, which stay as long as it does."""


class HeadsScreen(Overview, tool="all heads", topic="all-heads"):
    """Every head of one stack, small."""

    WIDGETS = (TileGrid, Legend)

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        program = self.session.trace.program
        at = attention_at(port.position.stop, attentions(program))
        self.group = at.group if at is not None else chosen_group(program, None)
        self.measured = MeasuredHeads(self.session.trace, attentions(program, self.group))
        self.ordered = OrderedHeads(self.measured)

        def measure(step: Attention, task: Task) -> LayerMeasures:
            reader = Reader(self.session.model.vocabulary, self.measured.hidden)
            return layer_measures(self.measured.trace, step, reader, task.report)

        work_on(self, self._following, measure, self._take, lambda step: self.measured.cost(step))
        self._start = (at.layer * at.heads + port.position.place.head) if at is not None else 0

    @property
    def grid(self) -> TileGrid:
        return self.query_one(TileGrid)

    def begin(self) -> None:
        self.put_in_order(self._start)
        self.call_after_refresh(self.pieces.go_on)

    def _following(self) -> Attention | None:
        """The layer to be measured next, those on screen first."""
        steps = self.measured.steps
        rows = self.grid.shown[0] if self.ordered.measure is None else ()
        shown = [steps[row].layer for row in rows if row < len(steps)]
        return next(iter(self.measured.missing(shown)), None)

    def _take(self, _: Attention, result: LayerMeasures) -> None:
        """Show a layer that was measured; put everything in order again where it changes that, or the scale."""
        measured, grid, by_layer = self.measured, self.grid, self.ordered.measure is None
        _RESULTS.setdefault(measured.trace, {})[result.attention.name, measured.hidden] = result
        if self.ordered.measured.trace is not measured.trace:
            if not measured.missing():  # of a sentence that is typed all layers are shown at once
                self.put_in_order(self.selected)
            return
        if not by_layer or measured.largest != self.ordered.high:
            self.put_in_order(self.selected if by_layer or grid.index else None)
        else:
            first = list(measured.steps).index(result.attention) * measured.heads
            grid.renew(range(first, first + measured.heads))

    def action_sentence(self) -> None:
        """Edit the sentence; its heads are shown once all are measured."""

        def follow(session: Session) -> None:
            steps = attentions(session.trace.program, self.group)
            self.measured = replace(self.measured, trace=session.trace, steps=steps)
            self.pieces.again()
            if not self.measured.missing():
                self.put_in_order(self.selected)

        edit_in(self, follow)

    # Order

    @property
    def selected(self) -> int:
        return self.ordered.order[self.grid.index]

    def put_in_order(self, selected: int | None, **changes: Any) -> None:
        """Put the heads in order, another one where that changes, with this one selected, or the first."""
        self.ordered = replace(self.ordered, measured=self.measured, **changes)
        self.grid.show(self.ordered.tiles(), 0 if selected is None else self.ordered.order.index(selected))
        show_as_new(self)
        self.moved()

    def texts(self) -> Texts:
        step, head = self.measured.place(self.selected)
        known, kinds = self.measured.of(step), groups(self.session.trace.program)
        useful = {"kind": len(kinds) > 1, "sentence.edit": bool(self.session.model.config.vocab_size)}
        first, second = f"layer {step.layer} · head {head}", "not yet measured"
        if known is not None:
            values = ((each, known.values[each.name][head]) for each in HEAD_MEASURES)
            of = " query" if known.real == 1 else " queries"
            of = f" of {known.real:,} queries, evenly spaced" if known.sampled else of
            without = f" · entropy{left_out(known)}" if known.few else ""
            first += "".join(f"   {each.name} {written(value, each, unit=True)}" for each, value in values)
            second = f"mean of {known.queries:,}{of}{without}   {step.name}"
        return Texts(
            f"All heads · {self.group} · {self.ordered.title}",
            " · ".join(filter(None, (self.measured.hidden.text, self.ordered.part_shown(self.grid)))),
            (first, second),
            f"{len(self.measured.known)} of {len(self.measured.steps)} layers measured",
            useful=useful,
        )

    # What keys do

    def action_order(self) -> None:
        choices: list[Measure | None] = [None, *self.measured.measures]
        now = self.ordered.measure
        measure = following(choices, now if now in choices else None)
        self.put_in_order(self.selected if measure is None else None, measure=measure, reverse=False)

    def action_reverse(self) -> None:
        self.put_in_order(None, reverse=not self.ordered.reverse)

    def action_scale(self) -> None:
        self.put_in_order(self.selected, common=not self.ordered.common)

    def action_group(self) -> None:
        program = self.session.trace.program
        self.group = following(groups(program), self.group)
        self.measured = replace(self.measured, steps=attentions(program, self.group))
        self.put_in_order(0)
        self.pieces.again()

    def action_hide(self, which: str = "") -> None:
        selected, self.measured = self.selected, replace(self.measured, hidden=self.measured.hidden.turned(which))
        self.put_in_order(selected)
        self.pieces.again()

    def moved(self) -> None:
        grid, step = self.grid, self.measured.steps[0]
        grouped = max(step.queries.size, step.keys.size) > min(SIDE, grid.side)
        what = "tokens in groups: share of the queries' attention" if grouped else "weight"
        scale = "" if self.ordered.common else "each head up to its own largest · "
        note = f"{scale}{what} · rows queries, columns keys"
        self.query_one(Legend).show(self.ordered.scale(grid.index), note=note)
        self.show_lines()

    def chosen(self) -> None:
        step, head = self.measured.place(self.selected)
        leave_to(self, step.name, head)


@dataclass(frozen=True, eq=False)
class MeasuredHeads:
    """Heads, counted through the attentions of all layers, and what was measured of them without hidden tokens."""

    trace: Trace
    steps: Sequence[Attention]
    hidden: Hidden = NOTHING

    @property
    def heads(self) -> int:
        return self.steps[0].heads

    def place(self, head: int) -> tuple[Attention, int]:
        layer, number = divmod(head, self.heads)
        return self.steps[layer], number

    def of(self, step: Attention) -> LayerMeasures | None:
        return _RESULTS.get(self.trace, {}).get((step.name, self.hidden))

    def value(self, head: int, measure: Measure) -> float:
        """A measure of a head; NaN where it is not known."""
        step, number = self.place(head)
        known = self.of(step)
        return math.nan if known is None else known.values[measure.name][number]

    @property
    def known(self) -> list[LayerMeasures]:
        return [result for step in self.steps if (result := self.of(step)) is not None]

    @property
    def largest(self) -> float:
        return max((each.largest for each in self.known), default=1.0)

    @property
    def measures(self) -> list[Measure]:
        known = self.known
        return [each for each in HEAD_MEASURES if any(not math.isnan(v) for of in known for v in of.values[each.name])]

    def missing(self, first: Collection[int] = ()) -> list[Attention]:
        waiting = [step for step in self.steps if self.of(step) is None]
        return sorted(waiting, key=lambda step: step.layer not in first)

    def cost(self, step: Attention) -> int:
        """Operations of a layer: those until its weights are there, and twelve to measure and draw each of them."""
        return self.trace.pending([step.name]) + 12 * step.heads * step.queries.size * step.keys.size


def written(value: float, measure: Measure, *, unit: bool = False) -> str:
    """A measure of a head: two decimals, `–` where it has none."""
    if math.isnan(value):
        return "–"
    return minus(f"{value:.2f}") + (f" {measure.unit}" if unit and measure.unit else "")


@dataclass(eq=False)
class OrderedHeads:
    """Heads in order of their layers, or of a measure as far as it was known then, as tiles.

    Attributes:
        measure: None for the order of the layers.
        reverse: The lowest first, or the last layer.
        common: One scale for all, up to `high`, instead of one for each.
        order: The heads, counted through all layers; by a measure those without it are last.
    """

    measured: MeasuredHeads
    measure: Measure | None = None
    reverse: bool = False
    common: bool = True

    def __post_init__(self) -> None:
        self.high, heads = self.measured.largest, range(self.measured.heads * len(self.measured.steps))
        self.order: Sequence[int] = heads[::-1] if self.reverse else heads
        if self.measure is not None:
            values, sign = [self.measured.value(head, self.measure) for head in heads], 1 if self.reverse else -1
            known = sorted((at for at in heads if not math.isnan(values[at])), key=lambda at: sign * values[at])
            self.order = [*known, *(at for at in heads if math.isnan(values[at]))]

    @property
    def in_rows(self) -> bool:
        return self.measure is None and len(self.measured.steps) > 1

    @property
    def title(self) -> str:
        if self.measure is None:
            return "by layer"
        return f"by {self.measure.title}, {'lowest' if self.reverse else 'highest'} first"

    def tiles(self) -> Tiles:
        def picture(index: int, side: int) -> Values | None:
            step, head = self.measured.place(self.order[index])
            known = self.measured.of(step)
            return None if known is None else smaller(known.pictures[head], side, side)

        def row_label(row: int) -> str:
            first = self.order[min(row * self.measured.heads, len(self.order) - 1)]
            return f"L{self.measured.place(first)[0].layer}"

        columns = self.measured.heads if self.in_rows else None
        return Tiles(len(self.order), columns, picture, self._labels, row_label, self.scale)

    def scale(self, index: int) -> Scale:
        step, head = self.measured.place(self.order[index])
        known = self.measured.of(step)
        return Scale("sequential", 0.0, self.high if self.common or known is None else largest(known.pictures[head]))

    def part_shown(self, grid: TileGrid) -> str:
        rows, columns = grid.shown
        if self.in_rows:
            layers = part_shown("layer", rows, len(self.measured.steps))
            return f"{layers} · {part_shown('head', columns, self.measured.heads)}"
        first, last = rows.start * grid.columns, min(rows.stop * grid.columns, len(self.order))
        return part_shown("head", range(first, last), len(self.order))

    def _labels(self, index: int) -> Sequence[str]:
        step, head = self.measured.place(self.order[index])
        if self.measure is None:  # with the largest of its measures that are shares, where one is known
            name, short, at = f"head {head}", f"H{head}", self.order[index]
            shares = [(self.measured.value(at, each), each.name) for each in self.measured.measures if not each.unit]
            share, most = max((each for each in shares if not math.isnan(each[0])), default=(math.nan, ""))
            said = f"{share:.2f}".removeprefix("0")
            telling = f"{name}  {most} {said}", f"{short} {most} {said}", f"{short} {most[:4]} {said}"
            return *(telling if most else ()), name, short, str(head)
        number = self.measured.value(self.order[index], self.measure)
        value = written(number, self.measure)
        short = value.removeprefix("0")
        rough = short if math.isnan(number) or number < 1 else minus(f"{number:.1f}")
        name, joint = f"L{step.layer} H{head}", f"L{step.layer}H{head}"
        with_value = (f"{name}  {value}", f"{name} {value}", f"{name} {short}", f"{joint} {short}", f"{joint} {rough}")
        return *with_value, name, joint
