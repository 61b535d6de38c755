"""Messages that go away by themselves."""

from __future__ import annotations

from driving import NARROW, exploring
from textual.timer import Timer
from textual.widgets._toast import Toast

from tui_transformer.explorer.guard.failures import Notice


async def test_a_message_whose_time_is_over_before_it_is_shown_goes_away_and_holds_up_no_key(monkeypatch):
    intervals = []
    begin = Timer.__init__

    def recorded(timer: Timer, target: object, interval: float, **options: object) -> None:
        intervals.append(interval)
        begin(timer, target, max(interval, 0.01), **options)

    monkeypatch.setattr(Timer, "__init__", recorded)
    async with exploring(NARROW) as explorer:
        monkeypatch.setattr(Notice, "has_expired", False)  # its time ends between this question and the timer
        explorer.app.notify("late", timeout=-1)
        await explorer.until(lambda: bool(explorer.main.query(Toast)))
        await explorer.until(lambda: not explorer.main.query(Toast))
        await explorer.press("space")
    assert min(intervals) > 0


def test_a_message_is_over_when_its_time_is():
    over = Notice("over", timeout=1)
    over.raised_at -= 2
    assert over.has_expired
    assert over.time_left > 0
    assert not Notice("shown", timeout=60).has_expired
