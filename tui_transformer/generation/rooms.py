"""The memory of a cache that grows: rows are added in place while there is space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Backend

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
        alike: How many arrays grow together. Those of one shape are taken from the system in one piece, whose large
            pages are read faster than many small ones.
    """

    backend: Backend
    most: int
    alike: int = 1
    rooms: dict[str, Room] = field(default_factory=dict)
    _free: dict[Shape, list[Array]] = field(default_factory=dict)

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
        memory = self._memory((batch, heads, size, width), new.dtype)
        memory[:, :, :past], memory[:, :, past:end] = kept, new
        self.rooms[name] = Room(memory, memory[:, :, :end])
        return self.rooms[name].rows

    def _memory(self, shape: Shape, dtype: Any) -> Array:
        if not self._free.get(shape):
            piece = self.backend.xp.empty((self.alike, *shape), dtype=dtype)
            self._free = {shape: [piece[i] for i in range(self.alike)]}
        return self._free[shape].pop()
