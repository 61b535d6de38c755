"""All layers as a slim ladder: how long the residual stream of a token is after each, and what its sublayers add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.by_program import by_program
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.views.whole import is_before_layers, layers_of

SLIM, WIDE = 18, 32
"""Columns of the ladder, with its border: with the stream alone, and with what is added."""

FROM, WIDE_FROM, STACKS_FROM = 100, 150, 160
"""Columns of the whole from which there is a ladder, a wide one, and one of two stacks."""

COPIES = ("residual", "norm")
"""Steps at the end of a sublayer that are the stream itself, and not what is added."""


@dataclass(frozen=True)
class Rung:
    """A layer.

    Attributes:
        layer: `encoder.0`; `encoder` for what enters the first layer.
        stream: The last step of it.
        added: What its sublayers add, in order.
    """

    layer: str
    stream: str
    added: tuple[str, ...] = ()

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`."""
        return self.layer.partition(".")[0]

    @property
    def name(self) -> str:
        """The number of the layer, or `x` for what enters the first."""
        return self.layer.partition(".")[2] or "x"


@dataclass(frozen=True)
class Lengths:
    """The Euclidean norms of a token's vectors: of the stream after a layer, and of what its sublayers added."""

    stream: float
    added: tuple[float, ...] = ()


def ladder_columns(program: Program, width: int) -> int:
    """Columns that the ladder takes of so many; none where there is one layer, or no room."""
    if len(layers_of(program)) < 2:
        return 0
    if _has_two_stacks(program):
        return SLIM if width >= STACKS_FROM else 0
    return WIDE if width >= WIDE_FROM else SLIM if width >= FROM else 0


def _has_two_stacks(program: Program) -> bool:
    return len({layer.partition(".")[0] for layer in layers_of(program)}) > 1


@by_program
def rungs(program: Program) -> tuple[Rung, ...]:
    """The input of each stack, and its layers, from the first to the last."""
    ladder: list[Rung] = []
    for layer in layers_of(program):
        stack = layer.partition(".")[0]
        if not ladder or ladder[-1].stack != stack:
            ladder += [Rung(stack, entering)] if (entering := _entering(program, layer)) else []
        steps = [step.name for step in program.steps if step.layer == layer]
        ladder.append(Rung(layer, steps[-1], _added(steps)))
    return tuple(ladder)


def rung_of(program: Program, stop: str) -> str:
    """The layer of the rung of a stop: its own, what enters the stack before the layers; after them "".

    What is neither a step nor a weight, such as the vocabulary, belongs to what enters the first.
    """
    step, ladder = program.by_name.get(program.aliases.get(stop, stop)), rungs(program)
    layer = "" if step is None else step.layer
    if any(rung.layer == layer for rung in ladder):
        return layer
    if step is not None and not is_before_layers(step):
        return ""
    entering = [rung.layer for rung in ladder if rung.name == "x"]
    return next((each for each in entering if stop.startswith(f"{each}.")), entering[0] if entering else "")


def _entering(program: Program, layer: str) -> str | None:
    """The step of the embedding that the first layer of a stack reads."""
    inside = {step.name: step for step in program.steps if step.layer == layer}
    read = [name for step in inside.values() for name in step.inputs if name not in inside]
    own = "decoder.embedding" if any(name.startswith("decoder.embedding") for name in read) else "embedding"
    return next((name for name in read if name.startswith(own) and name in program.by_name), None)


def _added(steps: list[str]) -> tuple[str, ...]:
    """Of each sublayer the last step but for the sum, and the norm of that."""
    last: dict[str, str] = {}
    for name in steps:
        sublayer, part = ".".join(name.split(".")[:3]), name.split(".")[3]
        if part not in COPIES:
            last[sublayer] = name
    return tuple(last.values())


def lengths_of(trace: Trace, rung: Rung, row: int) -> Lengths:
    """The norms of a rung at a row, in float64; what is missing is computed."""
    return Lengths(_length(trace, rung.stream, row), tuple(_length(trace, name, row) for name in rung.added))


def cost_of(trace: Trace, rung: Rung) -> int:
    """About how many operations it takes to have the norms of a rung."""
    return sum(trace.pending_part(name, 1 / trace.program.axes(name)[0].size) for name in (rung.stream, *rung.added))


def _length(trace: Trace, name: str, row: int) -> float:
    rows, columns = (axis.size for axis in trace.program.axes(name))
    at = min(row, rows - 1)
    return float(np.linalg.norm(trace.window(name, (range(at, at + 1), range(columns))).astype(np.float64)))
