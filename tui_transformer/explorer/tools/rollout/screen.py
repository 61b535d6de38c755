"""Attention rollout: how much of each input token has reached each token after a layer, as a heat map."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.attentions import SELF, Reader, attentions, groups
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.actions.tools import ROLLOUT
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.views.step_view import placed, rollout_view
from tui_transformer.views.view import Scale, View


def stacks(port: Port) -> tuple[str, ...]:
    """The kinds of self-attention of the model."""
    kind = SELF.replace("_", "-")
    return tuple(group for group in groups(port.session.trace.program) if group.endswith(kind))


def open_from(port: Port) -> None:
    """The rollout up to the layer that is shown, or the last; says so where the model has no self-attention."""
    if not stacks(port):
        port.say("this model has no self-attention")
        return
    port.open(RolloutScreen(port))


class RolloutScreen(Overview):
    """The rollout of one stack up to a layer."""

    ACTIONS = ROLLOUT
    HELP_TOPIC, KIND = "rollout", "rollout"

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.view: View | None = None
        stack, _, rest = port.position.stop.partition(".")
        groups = [group for group in stacks(port) if group.startswith(stack)]
        self._use(groups[0] if groups else stacks(port)[-1])
        layer = rest.partition(".")[0]
        self.depth = int(layer) if groups and layer.isdigit() else len(self.rollout.steps) - 1

    def _use(self, group: str) -> None:
        trace = self.session.trace
        self.group = group
        self.rollout = Rollout(trace, attentions(trace.program, group), Reader(self.session.model.vocabulary))
        self.depth = len(self.rollout.steps) - 1

    def content(self) -> ComposeResult:
        """The map, and what its colours mean."""
        yield HeatMap(id="rollout")
        yield Legend(id="rollout-legend")

    def on_mount(self) -> None:
        """Show the layer."""
        self.query_one(HeatMap).focus()
        self.compute()

    def compute(self) -> None:
        """Roll out up to the layer, on the worker where it is much."""
        layer, steps = self.depth, self.rollout.steps
        pending = 0 if self.rollout.holds(layer) else self.session.trace.pending([steps[layer].name])
        size = steps[layer].queries.size
        cost = 0 if self.rollout.holds(layer) else pending + layer * 2 * size**3
        self.requests.ask(self.KIND, cost, partial(self._roll, self.rollout, layer), self._take)
        self.show_lines()

    @staticmethod
    def _roll(rollout: Rollout, layer: int, task: Task) -> tuple[Rollout, int, Host]:
        return rollout, layer, rollout.after(layer, task.report)

    def _take(self, rolled: tuple[Rollout, int, Host]) -> None:
        rollout, layer, values = rolled
        if rollout is not self.rollout:
            return
        self.depth = layer
        self.view = rollout_view(rollout.steps[layer], values, self.session.labels)
        scale = Scale("sequential", 0.0, float(values.max()))
        heat_map = self.query_one(HeatMap)
        cursor = heat_map.cursor
        heat_map.show(self.view, scale, self.view.tile(range(values.shape[0]), range(values.shape[1])))
        heat_map.cursor = cursor
        self.query_one(Legend).show(
            scale, note="share of an input token (column) in a token (row) · every row sums to 1"
        )
        self.show_lines()

    # What is said

    def heading(self) -> str:
        """Of what."""
        stack = self.group.partition(" ")[0]
        return f"Attention rollout · {stack} · after layer {self.depth} · R_l = Ã_l R_(l−1)"

    def note(self) -> str:
        """How many layers there are."""
        return f"layers 0 to {self.depth} of 0 to {len(self.rollout.steps) - 1}"

    def detail(self) -> tuple[str, str]:
        """The cell under the cursor."""
        if self.view is None:
            return "", ""
        row, column = self.query_one(HeatMap).cursor
        value = float(self.view.window(range(row, row + 1), range(column, column + 1))[0, 0])
        who, whom = self.view.rows.label(row), self.view.columns.label(column)
        return (
            f"{value:.4f} of {placed(who, row)} comes from the input token {placed(whom, column)}",
            "Ã = (mean of the heads + I) ÷ 2, multiplied from layer to layer; values and feed-forward are not in it",
        )

    def left_out(self) -> Collection[str]:
        """A model with one stack has no other."""
        return () if len(stacks(self.port)) > 1 else ("kind",)

    # What keys do

    def action_arcs(self) -> None:
        """The same as lines between words."""
        from tui_transformer.explorer.tools.arcs.screen import screen_of

        screen = screen_of(self.port, "rollout")
        if screen is not None:
            self.open(screen)

    def action_layer(self, direction: int) -> None:
        """Up to the next layer, or the one before."""
        wanted = max(0, min(self.depth + direction, len(self.rollout.steps) - 1))
        if wanted != self.depth:
            self.depth = wanted
            self.compute()

    def action_stack(self) -> None:
        """The other stack."""
        known = stacks(self.port)
        self._use(known[(known.index(self.group) + 1) % len(known)])
        self.compute()

    @on(HeatMap.Moved)
    def _moved(self) -> None:
        self.show_lines()
