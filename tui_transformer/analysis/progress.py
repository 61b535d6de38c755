"""Progress: a measure of a whole model says how far it is, step by step."""

from __future__ import annotations

from collections.abc import Callable

from tui_transformer.engine.trace import Trace

Report = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody wants to know how far the work is."""


def prepared(trace: Trace, name: str, report: Report = silent) -> Trace:
    """The trace, with everything there that windows of a step are made from.

    Args:
        trace: The trace.
        name: The step.
        report: Told of every step that runs; what it raises ends the work, and what is kept stays.
    """
    trace.prepare(name, before=lambda step: report(step.name))
    return trace
