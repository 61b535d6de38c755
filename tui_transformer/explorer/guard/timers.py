"""Timers that call, however busy the machine is."""

from __future__ import annotations

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


def later(owner: MessagePump, seconds: float, function: Callable[[], object]) -> Timer:
    """Call a function once after so many seconds, or as soon as there is time for it; not if its owner is gone."""
    return certain(owner.set_timer(seconds, function))


def certain(timer: Timer) -> Timer:
    """A timer that was just set to call once, and will.

    Textual passes over a call whose moment is gone before it is waited for. Of a timer that calls once that is the only
    one: what was put off by a millisecond on a busy machine would never be done.
    """
    timer._skip = False
    return timer
