"""One more token with kept keys and values, without a record: as fast as the weights can be read.

A `Trace` plans, names and keeps what may be looked at; for a single row that takes longer than computing it. Here the
same steps run in the same order, once worked out for a model, whatever the length. `Writer.trace` gives the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.ops import Extend
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Watch
from tui_transformer.engine.weights import Weights
from tui_transformer.generation.cache import kept_steps

SMALLEST_ROOM = 64


@dataclass(eq=False)
class Room:
    """Memory for rows of keys or values, with space for more behind them. A row that was written never changes.

    Attributes:
        memory: B × g × space × d_k.
        rows: The part of it that is in use.
    """

    memory: Array
    rows: Array

    def add(self, new: Array) -> Array | None:
        """All rows, with new ones behind; None where there is not enough space."""
        used, end = self.rows.shape[2], self.rows.shape[2] + new.shape[2]
        if end > self.memory.shape[2]:
            return None
        self.memory[:, :, used:end] = new
        self.rows = self.memory[:, :, :end]
        return self.rows


@dataclass(eq=False)
class Rooms:
    """The memory of a cache that grows: copied when it is full, or when one has gone back.

    Attributes:
        most: Tokens that the model reads; there is space for more only where a prompt is longer.
    """

    backend: Backend
    most: int
    rooms: dict[str, Room] = field(default_factory=dict)

    def extended(self, name: str, kept: Array, new: Array) -> Array:
        """Kept rows and new ones behind them: B × g × (p + n) × d_k."""
        room = self.rooms.get(name)
        longer = room.add(new) if room is not None and room.rows is kept else None
        return self._moved(name, kept, new) if longer is None else longer

    def _moved(self, name: str, kept: Array, new: Array) -> Array:
        """The same in twice the space."""
        batch, heads, past, width = kept.shape
        end = past + new.shape[2]
        size = max(min(max(SMALLEST_ROOM, 2 * end), self.most), end)
        memory = self.backend.xp.empty((batch, heads, size, width), dtype=new.dtype)
        memory[:, :, :past], memory[:, :, past:end] = kept, new
        self.rooms[name] = Room(memory, memory[:, :, :end])
        return self.rooms[name].rows


@dataclass(frozen=True, eq=False)
class OneToken:
    """The steps from a token to its logits, with what they read that is the same for every token.

    Attributes:
        steps: In order.
        kept: What is kept for the next token → the step or input that it is in.
        weights: By name, on the device.
        logits: The step that the choice of a token reads.
    """

    backend: Backend
    steps: tuple[Step, ...]
    kept: Mapping[str, str]
    weights: Mapping[str, Array]
    logits: str

    @classmethod
    def of(cls, program: Program, weights: Weights) -> OneToken:
        """From the program of any length with tokens before."""
        kept = kept_steps(program)
        wanted = {program.logits, *kept.values()}
        steps = []
        for step in reversed(program.steps):
            if step.name in wanted:
                steps.append(step)
                wanted.update(step.inputs)
        shapes = {name: shape_of(axes) for name, axes in program.weights.items() if name in wanted}
        weights.check_room(shapes)
        read = {name: weights.get(name, shape) for name, shape in shapes.items()}
        return cls(weights.backend, tuple(reversed(steps)), kept, read, program.logits)

    @np.errstate(all="ignore")
    def run(
        self, givens: Mapping[str, Host], kept: Mapping[str, Array], rooms: Rooms, before: Watch | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """The logits (B × 1 × v) and what is kept, from the inputs for one token and what was kept before it.

        `before` is called with every step that is about to run, and may raise to end it.
        """
        values = {**self.weights, **kept, **{name: self._on_device(given) for name, given in givens.items()}}
        for step in self.steps:
            if before is not None:
                before(step)
            operands = [values[name] for name in step.inputs]
            if type(step.op) is Extend:
                values[step.name] = rooms.extended(step.name, *operands)
            else:
                values[step.name] = step.op.forward(self.backend, *operands)
        return values[self.logits], {name: values[place] for name, place in self.kept.items()}

    def _on_device(self, given: Host) -> Array:
        convert = {"b": self.backend.booleans, "f": self.backend.floats}.get(given.dtype.kind, self.backend.integers)
        return convert(given)
