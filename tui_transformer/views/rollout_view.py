"""A rolled-out layer as a view: tokens × input tokens."""

from __future__ import annotations

from tui_transformer.analysis.attentions import Attention
from tui_transformer.engine.backend import Host
from tui_transformer.views.step_view import Labels
from tui_transformer.views.view import Axis, View, window_of

FORMULA = "R_l = Ã_l R_(l−1), Ã = (mean of heads + I) ÷ 2"


def rollout_view(step: Attention, rolled: Host, labels: Labels) -> View:
    """The rollout after the layer of an attention step, with the words of its tokens."""
    word = labels.of(step.queries)
    name = f"rollout.{step.stack}.{step.layer}"
    rows = Axis("token", step.queries.size, word, step.queries.sequence)
    columns = Axis("input", step.queries.size, word, step.queries.sequence)
    return View(name, name, rows, columns, "sequential", window_of(rolled), FORMULA)
