"""Garbage of long lives is collected while keys rest, and seldom while they do not."""

from __future__ import annotations

import gc
import time
import weakref

from driving import exploring
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App
from textual.widgets import Static

from tui_transformer.explorer.guard.event_queue import RARE, Collecting, InTurn


class Circle:
    """An object that nothing but a collection ends."""

    def __init__(self) -> None:
        self.itself = self


class Small(App[None]):
    """An app that collects."""

    def __init__(self) -> None:
        super().__init__()
        self.in_turn = InTurn(self, super().on_event)
        self.collecting = Collecting(self, self.in_turn, 0.01)

    def on_mount(self) -> None:
        self.collecting.begin()

    def on_unmount(self) -> None:
        self.collecting.end()


def old() -> weakref.ref[Circle]:
    """A circle that only a look through all objects finds."""
    circle = Circle()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(circle)


async def test_what_is_left_over_goes_while_keys_rest_and_while_they_come_again_and_again() -> None:
    usual = gc.get_threshold()
    async with (app := Small()).run_test() as pilot:
        assert gc.get_threshold() == RARE
        left = old()
        while left() is not None:
            await pilot.pause(0.01)
        # while keys come
        left = old()
        app.collecting.due = True
        while left() is not None:
            await app.in_turn.take(events.Key("a", "a"))
            await pilot.pause(0.001)
        # the lines of widgets that are gone go with them
        await app.mount(words := Static("words"))
        words.styles.padding = 1  # such lines are Textual's own
        await pilot.pause()
        kept = StylesCache.get_inner_outer.cache_info
        assert kept().currsize
        app.collecting.due = True
        end = time.monotonic() + 20
        while kept().currsize:
            assert time.monotonic() < end
            await pilot.pause(0.01)
    assert gc.get_threshold() == usual, "collecting is as before in the end"


async def test_leaving_a_screen_says_that_there_is_something_to_collect() -> None:
    async with exploring() as explorer:
        await explorer.press("?")
        explorer.app.collecting.due = False
        await explorer.keys("escape")
        assert explorer.app.collecting.due
