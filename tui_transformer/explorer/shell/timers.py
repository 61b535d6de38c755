"""Timers that call, however busy the machine is."""

from __future__ import annotations

from textual.timer import Timer


def certain(timer: Timer) -> Timer:
    """A timer that was just set to call once, and will.

    Textual passes over a call whose moment is gone before it is waited for. Of a timer that calls once that is the only
    one: what was put off by a millisecond on a busy machine would never be done.
    """
    timer._skip = False
    return timer
