"""Where one is: the stop, the cell, and how to move between stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_transformer.engine.program import Grain, Program
from tui_transformer.views.step_view import Place

FIRST_CELL = Place()


@dataclass(frozen=True)
class Position:
    """A stop (a step, a weight, `vocabulary` or `text`) and a cell of it. Never changed, only replaced."""

    stop: str
    place: Place = FIRST_CELL

    def at(self, stop: str) -> Position:
        """Another stop; the cell stays as far as the matrix reaches."""
        return replace(self, stop=stop)


def next_stop(stops: Sequence[str], stop: str, program: Program, grain: Grain, direction: int) -> str | None:
    """The stop one operation, sublayer or layer further; None at the end.

    Sublayers and layers are entered at their last step, whose matrix is the one that leaves them.
    """
    place = stops.index(stop) if stop in stops else 0
    if grain == "operation":
        target = place + direction
        return stops[target] if 0 <= target < len(stops) else None
    ends = [i for i, name in enumerate(stops) if _last_of_group(stops, i, program, grain)]
    ahead = [i for i in ends if (i - place) * direction > 0]
    if not ahead:
        return None
    return stops[min(ahead) if direction > 0 else max(ahead)]


def _last_of_group(stops: Sequence[str], place: int, program: Program, grain: Grain) -> bool:
    if place + 1 == len(stops):
        return True
    return _group(stops[place], program, grain) != _group(stops[place + 1], program, grain)


def _group(stop: str, program: Program, grain: Grain) -> str:
    return program.step(stop).group(grain) if stop in program.by_name else stop
