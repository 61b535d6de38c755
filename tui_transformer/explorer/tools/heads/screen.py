"""All heads at once: a grid of layers × heads as small pictures, in order of the layers or of a measure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import ClassVar
from weakref import WeakKeyDictionary

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from tui_transformer.analysis.attention_rows import Reader
from tui_transformer.analysis.attentions import Attention, attentions, chosen_group, groups
from tui_transformer.analysis.head_measures import LayerMeasures, layer_measures
from tui_transformer.analysis.head_pictures import SIDE, largest, smaller
from tui_transformer.analysis.heads import MEASURES, Measure
from tui_transformer.analysis.token_kinds import Hidden
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.actions import HEADS
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.overview import Hiding, joined, part_shown
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles
from tui_transformer.views.view import Scale, Values

COST = 12
"""Operations that it takes to measure and draw a weight."""

Results = dict[tuple[str, Hidden], LayerMeasures]
_RESULTS: WeakKeyDictionary[Trace, Results] = WeakKeyDictionary()
"""What was measured stays as long as the trace does."""


def open_from(port: Port) -> None:
    """All heads of the model; says so where it has none."""
    if not groups(port.session.trace.program):
        port.say("this model has no attention")
        return
    port.open(HeadsScreen(port))


class HeadsScreen(Hiding):
    """Every head of one stack, small."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(HEADS)
    ACTIONS = HEADS
    HELP_TOPIC, KIND = "all-heads", "all heads"

    def __init__(self, port: Port) -> None:
        """Begin with the attention that the main screen shows, at its head."""
        super().__init__(port)
        program = self.session.trace.program
        at = next((each for each in attentions(program) if each.name.startswith(_sublayer(port.position.stop))), None)
        self.group = at.group if at is not None else chosen_group(program, None)
        self.steps: Sequence[Attention] = attentions(program, self.group)
        self.measure: Measure | None = None
        self.reverse, self.common = False, True
        self.high = 1.0
        self.order: list[int] = []
        self._start = (at.layer * at.heads + port.position.place.head) if at is not None else 0

    def content(self) -> ComposeResult:
        """Tiles above, what their colours mean below."""
        yield TileGrid(id="tiles")
        yield Legend(id="tiles-legend")

    def on_mount(self) -> None:
        """Show what is there, and measure the rest."""
        self.put_in_order(self._start)
        self.query_one(TileGrid).focus()
        self.call_after_refresh(self._measure_next)

    # What is known

    @property
    def heads(self) -> int:
        """Heads of a layer."""
        return self.steps[0].heads

    @property
    def results(self) -> Results:
        """What was measured of this trace."""
        return _RESULTS.setdefault(self.session.trace, {})

    def found(self, step: Attention) -> LayerMeasures | None:
        """The measures of a layer, where they are there."""
        return self.results.get((step.name, self.hidden))

    def value(self, head: int, measure: Measure) -> float:
        """A measure of a head, counted through all layers; NaN where it is not known."""
        found = self.found(self.steps[head // self.heads])
        return math.nan if found is None else found.values[measure.name][head % self.heads]

    @property
    def missing(self) -> list[Attention]:
        """The layers that are not measured yet, those on screen first."""
        waiting = [step for step in self.steps if self.found(step) is None]
        shown = self._shown_layers()
        return sorted(waiting, key=lambda step: step.layer not in shown)

    def _shown_layers(self) -> frozenset[int]:
        grid = self.query_one(TileGrid)
        if self.measure is not None:
            return frozenset()
        return frozenset(self.steps[row].layer for row in grid.shown if row < len(self.steps))

    # Measuring

    def _measure_next(self) -> None:
        """Measure the next layer; the screen stays free in between."""
        if not self.is_mounted or not self.missing:
            self.show_lines()
            return
        step, hidden = self.missing[0], self.hidden
        cost = self.session.trace.pending([step.name]) + COST * step.heads * step.queries.size * step.keys.size
        self.ask(self.KIND, cost, partial(self._measure, step, hidden), partial(self._take, hidden))
        self.show_lines()

    def _measure(self, step: Attention, hidden: Hidden, task: Task) -> LayerMeasures:
        reader = Reader(self.session.model.vocabulary, hidden)
        return layer_measures(self.session.trace, step, reader, task.report)

    def _take(self, hidden: Hidden, found: LayerMeasures) -> None:
        self.results[found.attention.name, hidden] = found
        layer = [step.name for step in self.steps].index(found.attention.name)
        if self.measure is not None or self._highest() != self.high:
            self.put_in_order(self.selected if self.measure is None or self.query_one(TileGrid).index else None)
        else:
            self.query_one(TileGrid).renew(range(layer * self.heads, (layer + 1) * self.heads))
        self.show_lines()
        self.call_later(self._measure_next)

    # Order

    @property
    def selected(self) -> int:
        """The head that is selected, counted through all layers."""
        return self.order[self.query_one(TileGrid).index]

    def put_in_order(self, selected: int | None) -> None:
        """Put the heads in order, with this one selected, or the first."""
        self.order, self.high = list(range(len(self.steps) * self.heads)), self._highest()
        if self.measure is not None:
            self.order.sort(key=partial(self._rank, self.measure))
        elif self.reverse:
            self.order.reverse()
        tiles = Tiles(
            count=len(self.order),
            columns=self.heads if self.measure is None and len(self.steps) > 1 else None,
            picture=self._picture,
            labels=self._labels,
            row_label=self._row_label,
            scale=self._scale,
        )
        self.query_one(TileGrid).show(tiles, 0 if selected is None else self.order.index(selected))
        self._show_legend()

    def _rank(self, measure: Measure, head: int) -> tuple[bool, float, int]:
        """The highest first, or the lowest; heads without the measure last."""
        value = self.value(head, measure)
        return math.isnan(value), (value if self.reverse else -value) if not math.isnan(value) else 0.0, head

    def _picture(self, index: int, side: int) -> Values | None:
        layer, head = divmod(self.order[index], self.heads)
        found = self.found(self.steps[layer])
        return None if found is None else smaller(found.pictures[head], side, side)

    def _labels(self, index: int) -> Sequence[str]:
        layer, head = divmod(self.order[index], self.heads)
        if self.measure is None:
            return f"head {head}", f"H{head}", str(head)
        number = self.value(self.order[index], self.measure)
        value = written(number, self.measure)
        at, short = self.steps[layer].layer, value.removeprefix("0")
        rough = short if math.isnan(number) or number < 1 else f"{number:.1f}"
        name, joint = f"L{at} H{head}", f"L{at}H{head}"
        with_value = (f"{name}  {value}", f"{name} {value}", f"{name} {short}", f"{joint} {short}", f"{joint} {rough}")
        return *with_value, name, joint

    def _row_label(self, row: int) -> str:
        first = self.order[min(row * self.heads, len(self.order) - 1)]
        return f"L{self.steps[first // self.heads].layer}"

    def _scale(self, index: int) -> Scale:
        layer, head = divmod(self.order[index], self.heads)
        found = self.found(self.steps[layer])
        return Scale("sequential", 0.0, self.high if self.common or found is None else largest(found.pictures[head]))

    def _highest(self) -> float:
        """The largest cell of all pictures that are there."""
        found = (self.found(step) for step in self.steps)
        return max((each.largest for each in found if each is not None), default=1.0)

    # What is said

    def heading(self) -> str:
        """Which attention, and the order of its heads."""
        order = (
            f"by {self.measure.title}, {'lowest' if self.reverse else 'highest'} first" if self.measure else "by layer"
        )
        return f"All heads · {self.group} · {order}"

    def note(self) -> str:
        """What is hidden, and what part of the grid is on screen."""
        return " · ".join(part for part in (self.hidden.text, self._on_screen()) if part)

    def _on_screen(self) -> str:
        grid = self.query_one(TileGrid)
        if self.measure is None and len(self.steps) > 1:
            layers = part_shown("layer", grid.shown, len(self.steps))
            return f"{layers} · {part_shown('head', grid.shown_columns, self.heads)}"
        first, last = grid.shown.start * grid.columns, min(grid.shown.stop * grid.columns, len(self.order))
        return part_shown("head", range(first, last), len(self.order))

    def progress(self) -> str:
        """How many layers are measured."""
        done = sum(self.found(step) is not None for step in self.steps)
        return f"{done} of {len(self.steps)} layers measured"

    def detail(self) -> tuple[str, str]:
        """The selected head and its measures."""
        layer, head = divmod(self.selected, self.heads)
        step = self.steps[layer]
        found = self.found(step)
        name = f"layer {step.layer} · head {head}"
        if found is None:
            return name, "not yet measured"
        counted = f"mean of {found.queries:,}" + (f" of {found.real:,} queries, evenly spaced" if found.sampled else "")
        values = {measure.name: written(found.values[measure.name][head], measure, unit=True) for measure in MEASURES}
        return f"{name}   {joined(values)}", f"{counted if found.sampled else f'{counted} queries'}   {step.name}"

    def left_out(self) -> Collection[str]:
        """Where there is one kind of attention, there is no next one."""
        return () if len(groups(self.session.trace.program)) > 1 else ("kind",)

    def _show_legend(self) -> None:
        grid, step = self.query_one(TileGrid), self.steps[0]
        grouped = max(step.queries.size, step.keys.size) > min(SIDE, grid.side)
        what = "tokens in groups: share of the queries' attention" if grouped else "weight"
        scale = "" if self.common else "each head up to its own largest · "
        note = f"{scale}{what} · rows queries, columns keys"
        self.query_one(Legend).show(self._scale(grid.index), note=note)

    # What keys do

    def action_order(self) -> None:
        """The next measure that any head has; after the last one the order of the layers."""
        choices: list[Measure | None] = [None, *self._known_measures()]
        at = choices.index(self.measure) if self.measure in choices else 0
        selected, self.measure = self.selected, choices[(at + 1) % len(choices)]
        self.reverse = False
        self._again(selected if self.measure is None else None)

    def _known_measures(self) -> list[Measure]:
        found = [result for step in self.steps if (result := self.found(step)) is not None]
        return [each for each in MEASURES if any(_known(result, each) for result in found)]

    def action_reverse(self) -> None:
        """Lowest first, or the last layer first."""
        self.reverse = not self.reverse
        self._again(None)

    def action_scale(self) -> None:
        """One scale for all heads, or one for each."""
        self.common = not self.common
        self._again(self.selected)

    def action_group(self) -> None:
        """The next stack and kind of attention."""
        known = groups(self.session.trace.program)
        self.group = known[(known.index(self.group) + 1) % len(known)]
        self.steps = attentions(self.session.trace.program, self.group)
        self._again(0)
        self._measure_next()

    def hiding_changed(self) -> None:
        """Measure again, without the hidden tokens."""
        self.worker.cancel(self.KIND)
        self._again(self.selected)
        self._measure_next()

    def _again(self, selected: int | None) -> None:
        self.put_in_order(selected)
        self.show_lines()

    @on(TileGrid.Moved)
    def _moved(self) -> None:
        self._show_legend()
        self.show_lines()

    @on(TileGrid.Chosen)
    def _chosen(self) -> None:
        layer, head = divmod(self.selected, self.heads)
        self.leave_to(self.steps[layer].name, head)


def written(value: float, measure: Measure, *, unit: bool = False) -> str:
    """A measure of a head: two decimals, `–` where it has none."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" + (f" {measure.unit}" if unit and measure.unit else "")


def _known(found: LayerMeasures, measure: Measure) -> bool:
    return not all(map(math.isnan, found.values[measure.name]))


def _sublayer(stop: str) -> str:
    """The sublayer of a stop, with a dot behind; something that begins no name where there is none."""
    parts = stop.split(".")
    return ".".join([*parts[:3], ""]) if len(parts) > 3 else "\n"
