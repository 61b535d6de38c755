"""One more token with kept keys and values, without a record: as fast as the weights can be read.

A `Trace` plans, names and keeps what may be looked at; for a single row that takes longer than computing it. Here the
same steps run in the same order, once worked out for a model, whatever the length. `Writer.trace` gives the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.engine.axis import shape_of, whole
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.changes import Place, of_pass, places
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Change, changed
from tui_transformer.engine.ops import Extend
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.weights import Weights
from tui_transformer.generation.cache import is_cross, kept_steps

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
        edits: What is changed in every pass, by step; of weights it is done.
    """

    backend: Backend
    steps: tuple[Step, ...]
    kept: Mapping[str, str]
    weights: Mapping[str, Array]
    logits: str
    edits: Mapping[str, Sequence[tuple[Change, Place]]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, weights: Weights, edits: tuple[Change, ...] = ()) -> OneToken:
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
        here = of_pass(edits, program, 1)
        changes: dict[str, list[tuple[Change, Place]]] = {}
        for change, place in places(edits, program):
            changes.setdefault(place.name, []).append((change, place))
        read = {
            name: changed(here, name, weights.backend, weights.get(name, shape), whole(shape))
            for name, shape in shapes.items()
        }
        return cls(weights.backend, tuple(reversed(steps)), kept, read, program.logits, changes)

    @np.errstate(all="ignore")
    def run(
        self, givens: Mapping[str, Host], kept: Mapping[str, Array], rooms: Rooms, before: Watch | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """The logits (B × 1 × v) and what is kept, from the inputs for one token and what was kept before it.

        `before` is called with every step that is about to run, and may raise to end it.
        """
        values = {**self.weights, **kept, **{name: self._on_device(given) for name, given in givens.items()}}
        past = next(array.shape[2] for name, array in kept.items() if not is_cross(name))
        for step in self.steps:
            if before is not None:
                before(step)
            operands = [values[name] for name in step.inputs]
            if type(step.op) is Extend:
                values[step.name] = rooms.extended(step.name, *operands)
            else:
                values[step.name] = step.op.forward(self.backend, *operands)
            if step.name in self.edits:
                values[step.name] = self._edited(step.name, values[step.name], past)
        return values[self.logits], {name: values[place] for name, place in self.kept.items()}

    def _edited(self, name: str, value: Array, past: int) -> Array:
        """A step with its edits."""
        shape = value.shape[1:]
        moved = (place.changed(change, shape, past) for change, place in self.edits[name])
        return changed([each for each in moved if each is not None], name, self.backend, value, whole(shape))

    def _on_device(self, given: Host) -> Array:
        convert = {"b": self.backend.booleans, "f": self.backend.floats}.get(given.dtype.kind, self.backend.integers)
        return convert(given)
