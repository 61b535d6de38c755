"""All heads at once: a grid of layers × heads as small pictures, in order of the layers or of a measure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.attentions import Attention, attentions, chosen_group, groups
from tui_transformer.analysis.head_measures import SIDE, LayerMeasures, left_out
from tui_transformer.analysis.measures import HEAD_MEASURES, Measure
from tui_transformer.explorer.shell.actions.tools import HEADS
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, joined, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.heads.measured import MeasuredHeads, written
from tui_transformer.explorer.tools.heads.ordered import in_order
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.explorer.widgets.tile_grid import TileGrid

Layer = tuple[MeasuredHeads, Attention]
"""A layer to be measured, and among which heads."""


def open_from(port: Port) -> None:
    """All heads of the model; says so where it has none."""
    if not groups(port.session.trace.program):
        port.say("this model has no attention")
        return
    port.open(HeadsScreen(port))


class HeadsScreen(Overview):
    """Every head of one stack, small."""

    ACTIONS = HEADS
    HELP_TOPIC, KIND = "all-heads", "all heads"
    pieces: Pieces[Layer, tuple[MeasuredHeads, LayerMeasures]]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        program = self.session.trace.program
        at = next((each for each in attentions(program) if each.name.startswith(_sublayer(port.position.stop))), None)
        self.group = at.group if at is not None else chosen_group(program, None)
        self.measured = MeasuredHeads(self.session.trace, attentions(program, self.group))
        self.measure: Measure | None = None
        self.reverse, self.common = False, True
        self.ordered = in_order(self.measured, None, reverse=False, common=True)
        self.pieces = Pieces(self.requests, self.KIND, self._following, _cost, self._measure, self._take)
        self._start = (at.layer * at.heads + port.position.place.head) if at is not None else 0

    def content(self) -> ComposeResult:
        """Tiles above, what their colours mean below."""
        yield TileGrid(id="tiles")
        yield Legend(id="tiles-legend")

    def on_mount(self) -> None:
        """Show what is there, and measure the rest."""
        self.put_in_order(self._start)
        self.query_one(TileGrid).focus()
        self.call_after_refresh(self.pieces.go_on)

    # Measuring

    def _following(self) -> Layer | None:
        """The layer to be measured next, those on screen first."""
        rows, steps = self.query_one(TileGrid).shown, self.measured.steps
        shown = [steps[row].layer for row in rows if self.measure is None and row < len(steps)]
        missing = self.measured.missing(shown)
        return (self.measured, missing[0]) if missing else None

    def _measure(self, layer: Layer, task: Task) -> tuple[MeasuredHeads, LayerMeasures]:
        measured, step = layer
        return measured, measured.measure(step, self.session.model.vocabulary, task.report)

    def _take(self, made: tuple[MeasuredHeads, LayerMeasures]) -> None:
        """Show a layer that was measured; put everything in order again where it changes that, or the scale."""
        measured, result = made
        measured.keep(result)
        grid = self.query_one(TileGrid)
        if self.measure is not None or measured.largest != self.ordered.high:
            self.put_in_order(self.selected if self.measure is None or grid.index else None)
        else:
            first = list(measured.steps).index(result.attention) * measured.heads
            grid.renew(range(first, first + measured.heads))

    # Order

    @property
    def selected(self) -> int:
        """The head that is selected, counted through all layers."""
        return self.ordered.order[self.query_one(TileGrid).index]

    def put_in_order(self, selected: int | None) -> None:
        """Put the heads in order, with this one selected, or the first."""
        self.ordered = in_order(self.measured, self.measure, reverse=self.reverse, common=self.common)
        self.query_one(TileGrid).show(
            self.ordered.tiles(), 0 if selected is None else self.ordered.order.index(selected)
        )
        self._show_legend()

    # What is said

    def heading(self) -> str:
        """Which attention, and the order of its heads."""
        return f"All heads · {self.group} · {self.ordered.title}"

    def note(self) -> str:
        """The hidden tokens, and the part of the grid that is on screen."""
        parts = (self.measured.hidden.text, self.ordered.part_shown(self.query_one(TileGrid)))
        return " · ".join(part for part in parts if part)

    def progress(self) -> str:
        """How many layers are measured."""
        return f"{len(self.measured.known)} of {len(self.measured.steps)} layers measured"

    def detail(self) -> tuple[str, str]:
        """The selected head and its measures."""
        step, head = self.measured.place(self.selected)
        known = self.measured.of(step)
        name = f"layer {step.layer} · head {head}"
        if known is None:
            return name, "not yet measured"
        counted = f"mean of {known.queries:,}" + (f" of {known.real:,} queries, evenly spaced" if known.sampled else "")
        values = {
            measure.name: written(known.values[measure.name][head], measure, unit=True) for measure in HEAD_MEASURES
        }
        queries = counted if known.sampled else f"{counted} queries"
        without = f" · entropy{left_out(known)}" if known.few else ""
        return f"{name}   {joined(values)}", f"{queries}{without}   {step.name}"

    def left_out(self) -> Collection[str]:
        """Where there is one kind of attention, there is no next one."""
        return () if len(groups(self.session.trace.program)) > 1 else ("kind",)

    def _show_legend(self) -> None:
        grid, step = self.query_one(TileGrid), self.measured.steps[0]
        grouped = max(step.queries.size, step.keys.size) > min(SIDE, grid.side)
        what = "tokens in groups: share of the queries' attention" if grouped else "weight"
        scale = "" if self.common else "each head up to its own largest · "
        note = f"{scale}{what} · rows queries, columns keys"
        self.query_one(Legend).show(self.ordered.scale(grid.index), note=note)

    # What keys do

    def action_order(self) -> None:
        """The next measure that any head has; after the last one the order of the layers."""
        choices: list[Measure | None] = [None, *self.measured.measures]
        at = choices.index(self.measure) if self.measure in choices else 0
        selected, self.measure = self.selected, choices[(at + 1) % len(choices)]
        self.reverse = False
        self._again(selected if self.measure is None else None)

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
        self.measured = replace(self.measured, steps=attentions(self.session.trace.program, self.group))
        self._again(0)
        self.pieces.again()

    def action_hide(self, which: str) -> None:
        """Hide tokens, or show them again: measure without them."""
        selected, self.measured = self.selected, replace(self.measured, hidden=self.measured.hidden.turned(which))
        self._again(selected)
        self.pieces.again()

    def _again(self, selected: int | None) -> None:
        self.put_in_order(selected)
        self.show_lines()

    @on(TileGrid.Moved)
    def _moved(self) -> None:
        self._show_legend()
        self.show_lines()

    @on(TileGrid.Chosen)
    def _chosen(self) -> None:
        step, head = self.measured.place(self.selected)
        leave_to(self, step.name, head)


def _cost(layer: Layer) -> int:
    measured, step = layer
    return measured.cost(step)


def _sublayer(stop: str) -> str:
    """The sublayer of a stop, with a dot behind; something that begins no name where there is none."""
    parts = stop.split(".")
    return ".".join([*parts[:3], ""]) if len(parts) > 3 else "\n"
