"""A pass of many tokens at once, of which only the logits of the last are worked out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tui_transformer.engine.backend import Array
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import changed
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.generation.cache import LOGITS, kept_steps


@np.errstate(all="ignore")
def last_logits(trace: Trace, before: Watch | None = None) -> tuple[Array, Mapping[str, Array]]:
    """The logits of the last token (B × 1 × v), and what is kept for the next; `before` is called with every step."""
    steps, head = kept_steps(trace.program), trace.program.step(LOGITS)
    wanted = [trace.program.aliases.get(name, name) for name in (head.inputs[0], *steps.values())]
    trace.keep(wanted)
    trace.compute(trace.plan.names, before)
    states, *arrays = trace.arrays(wanted)
    weights = trace.arrays(head.inputs[1:])
    logits = _edited(trace, head, head.op.forward(trace.backend, states[:, -1:], *weights))  # B × n × d → B × 1 × v
    places = trace.program.places
    for step in trace.program.steps[places[LOGITS] + 1 : places[trace.program.logits] + 1]:
        logits = _edited(trace, step, step.op.forward(trace.backend, logits))  # capped, where the model does so
    return logits, dict(zip(steps, arrays, strict=True))


def _edited(trace: Trace, step: Step, last: Array) -> Array:
    rows, columns = step.shape
    return changed(trace.edits, step.name, trace.backend, last, (range(rows - 1, rows), range(columns)))
