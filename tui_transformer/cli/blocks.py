"""Steps of a trace as runs of cells, so that a large one is never whole."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace


def full_shape(trace: Trace, name: str) -> Shape:
    """The shape of a step as it is handed out: with a batch axis where there is more than one sentence."""
    shape = trace.program.shape(name)
    return shape if trace.batch == 1 else (trace.batch, *shape)


def cells(trace: Trace, name: str) -> Iterator[Host]:
    """The cells of a step in order, as runs on one axis, each computed when it is asked for."""
    for item in range(trace.batch):
        for _, block in trace.blocks(name, item=item):
            yield block.reshape(-1)
