"""Tours in an explorer: a stop at once, and what is explored."""

from __future__ import annotations

from typing import Any

from driving import Explorer

from tui_transformer.guide.texts import tour


def state(explorer: Explorer) -> tuple[Any, ...]:
    """All that a tour gives back."""
    explored = explorer.parts.explored
    return explored.session, explored.position, explored.view, list(explored.history.past), list(explored.trail)


async def lead_to(explorer: Explorer, name: str, stop: str) -> None:
    """Begin a tour, and go to a stop of it."""
    await explorer.tour(name)
    explorer.parts.tour.go([each.name for each in tour(name)].index(stop))
    await explorer.settled()
