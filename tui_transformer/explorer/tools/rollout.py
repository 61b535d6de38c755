"""Attention rollout: how much of each input token has reached each token after a layer, as a heat map."""

from __future__ import annotations

from tui_transformer.analysis.attentions import SELF, Reader, attentions, groups
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, show_map, value_at
from tui_transformer.explorer.tools.links import ArcsScreen
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.views.step_view import placed, rollout_view
from tui_transformer.views.view import Scale, View

FORMULA = "Ã = (mean of the heads + I) ÷ 2, rows made to sum to 1, multiplied; values and feed-forward are not in it"


class RolloutScreen(Overview, tool="rollout"):
    """The rollout of one stack up to a layer."""

    WIDGETS = (HeatMap, Legend)

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.view: View | None = None
        self.shown = "", 0  # the stack and the layer that the view is of
        own = SELF.replace("_", "-")
        self.stacks = tuple(group for group in groups(self.session.trace.program) if group.endswith(own))
        stack, _, rest = port.position.stop.partition(".")
        here = next((group for group in self.stacks if group.startswith(stack)), None)
        self._use(here or self.stacks[-1])
        layer = rest.partition(".")[0]
        if here and layer.isdigit():
            self.depth = int(layer)

    def _use(self, group: str) -> None:
        trace = self.session.trace
        self.group = group
        self.rollout = Rollout(trace, attentions(trace.program, group), Reader(self.session.model.vocabulary))
        self.depth = len(self.rollout.steps) - 1

    def begin(self) -> None:
        rollout, layer = self.rollout, self.depth
        step = rollout.steps[layer]
        pending = self.session.trace.pending([step.name]) + layer * 2 * step.queries.size**3
        cost = 0 if rollout.holds(layer) else pending
        self.compute(lambda task: rollout.after(layer, task.report), self._take, cost)

    def _take(self, values: Host) -> None:
        self.shown = self.group, self.depth
        self.view = rollout_view(self.rollout.steps[self.depth], values, self.session.labels)
        scale = Scale("sequential", 0.0, float(values.max()))
        show_map(self, self.view, scale, "share of an input token (column) in a token (row) · every row sums to 1")

    def texts(self) -> Texts:
        group, depth = (self.group, self.depth) if self.view is None else self.shown
        stack, last = group.partition(" ")[0], len(attentions(self.session.trace.program, group)) - 1
        detail = "", ""
        if self.view is not None:
            row, column = self.query_one(HeatMap).cursor
            who, whom = placed(self.view.rows.label(row), row), placed(self.view.columns.label(column), column)
            detail = f"{value_at(self.view, row, column):.4f} of {who} comes from the input token {whom}", FORMULA
        return Texts(
            f"Attention rollout · {stack} · after layer {depth} · R_l = Ã_l R_(l−1)",
            f"layers 0 to {depth} of 0 to {last}",
            detail,
            useful={"kind": len(self.stacks) > 1},
        )

    def action_arcs(self) -> None:
        self.open(ArcsScreen(self.port, "rollout"))

    def action_layer(self, by: int) -> None:
        wanted = max(0, min(self.depth + by, len(self.rollout.steps) - 1))
        if wanted != self.depth:
            self.depth = wanted
            self.begin()

    def action_stack(self) -> None:
        self._use(following(self.stacks, self.group))
        self.begin()
