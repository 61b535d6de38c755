"""Timers that call, however busy the machine is."""

from __future__ import annotations

from functools import partial
from itertools import count

from driving import exploring

from tui_transformer.explorer.guard.event_queue import later


async def test_a_call_whose_moment_is_gone_before_it_is_waited_for_still_comes(monkeypatch):
    called: list[str] = []
    async with exploring() as explorer:
        looks = count()
        monkeypatch.setattr("textual.timer._time.get_time", lambda: 0.002 * next(looks))  # it takes long to look
        later(explorer.main, 0.001, partial(called.append, "screen"))
        explorer.app.set_timer(0.001, partial(called.append, "app"))
        await explorer.until(lambda: len(called) == 2)
        monkeypatch.undo()
