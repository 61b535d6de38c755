"""Screens that are opened and left in one way, whatever comes together and whatever comes late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES
from textual.app import App
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import draw_together
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.dialog import MessageScreen
from tui_transformer.explorer.shell.prompt import PickScreen
from tui_transformer.explorer.tools.lens import LensScreen


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds up work until it is set; set at the end, whatever happens."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_size_that_the_terminal_has_no_more_is_passed_over():
    async with exploring(MEDIUM) as explorer:
        for screen in (explorer.app.screen_stack[0], explorer.main):
            screen.post_message(Resize(Size(*WIDE), Size(*WIDE)))
            await explorer.handled()
            assert screen._compositor.size == Size(*MEDIUM)
        # two among other messages end in the one of the terminal
        with explorer.app.batch_update():
            for size in (Size(*WIDE), Size(*NARROW), Size(*MEDIUM)):
                for screen in explorer.app.screen_stack:
                    screen.post_message(Resize(size, size))
                    screen.call_later(lambda: None)  # else the last of them takes the place of the others
            await explorer.handled()
        assert {screen._compositor.size for screen in explorer.app.screen_stack} == {Size(*MEDIUM)}


async def test_only_the_screen_in_front_opens_another_and_one_that_is_left_twice_gives_one_result():
    async with exploring(MEDIUM) as explorer:
        main, results = explorer.main, list[object]()
        main.open(MessageScreen("First", "text"))
        main.open(MessageScreen("Second", "text"))
        await explorer.handled()
        assert [type(screen).__name__ for screen in explorer.app.screen_stack[1:]] == ["MainScreen", "MessageScreen"]
        assert "First" in explorer.text
        await explorer.press("escape")
        # left several times
        picked = PickScreen("Pick", {"one": "", "two": ""})
        main.open(picked, results.append)
        await explorer.handled()
        for name in ("one", "two", None):
            picked.dismiss(name)
        await explorer.handled()
        assert results == ["one"]
        assert explorer.app.screen is main
        # left twice while another is over it: it is left once that is
        picked, over = PickScreen("Pick", {"one": ""}), MessageScreen("Over", "text")
        main.open(picked, results.append)
        await explorer.handled()
        picked.open(over)
        await explorer.handled()
        picked.dismiss("one")
        picked.dismiss("two")
        await explorer.handled()
        assert explorer.app.screen is over
        await explorer.press("escape")
        await explorer.handled()
        assert results == ["one", "one"]
        assert explorer.app.screen is main


async def test_a_screen_closes_once_and_gives_its_result_when_what_is_on_top_is_closed(open_screen, nothing):
    below = PickScreen("Below", {"first": "", "second": ""})
    async with open_screen(below) as pilot:
        pilot.app.push_screen(MessageScreen("On top", "text"))
        await pilot.pause()
        below.dismiss("first")
        below.dismiss(None)
        await pilot.pause()
        assert isinstance(pilot.app.screen, MessageScreen)
        assert pilot.app.result is nothing
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.result == "first"
        assert pilot.app.screen.id == "_default"


async def test_what_comes_for_a_screen_before_its_widgets_or_after_them_is_dropped():
    called: list[str] = []
    screen = ExplorerScreen[None]()
    function = screen.while_there(called.append)
    function("before")
    async with App[None]().run_test() as pilot:
        await pilot.app.push_screen(screen)
        await pilot.pause()
        function("there")
        screen.dismiss()
        await pilot.pause()
        function("after")
    assert called == ["there"]


async def test_when_a_screen_is_left_a_result_that_comes_is_dropped_and_what_it_has_drawn_is_not_kept(gate):
    async with exploring(MEDIUM, model=str(REFERENCES / "bert")) as explorer:
        await explorer.press("L")
        lens, taken = explorer.screen(LensScreen), list[object]()
        widgets = list(lens.walk_children(Widget))
        assert any(widget._styles_cache._cache for widget in widgets)
        lens.requests.ask("late", lambda _: gate.wait(20), taken.append)
        lens.dismiss()
        await explorer.handled()
        gate.set()
        await explorer.settled()
        assert taken == []
        assert explorer.app.screen is explorer.main
        assert not any(widget._styles_cache._cache for widget in widgets)


async def test_a_result_under_a_dialog_is_shown_and_drawing_goes_on_when_what_held_it_is_left(gate: threading.Event):
    async with exploring(MEDIUM) as explorer:
        taken = list[object]()
        explorer.parts.port.ask("late", lambda _: gate.wait(20), taken.append)
        await explorer.keys("question_mark")
        gate.set()
        await explorer.settled()
        assert taken == [True]
        await explorer.press("escape")
        screen = MessageScreen("Held", "text")
        explorer.main.open(screen)
        await explorer.handled()
        draw_together(screen)
        screen.dismiss()
        await explorer.until(lambda: not explorer.app._batch_count)
        await explorer.press("space")
        assert "quit" in explorer.text


def broken(*_: object, **__: object) -> None:
    raise InputError("model.safetensors: cut short: only 5 of 9 bytes are there")


async def failing(explorer: Explorer) -> None:
    await explorer.until(lambda: any("cut short" in message for message in explorer.messages))
    explorer.app._notifications.clear()
    assert explorer.app.is_running
    assert explorer.app.failure is None


async def test_what_cannot_be_done_as_a_file_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch):
    async with exploring(MEDIUM) as explorer:
        main = explorer.main
        for key, name in (("ctrl+b", "action_bookmark"), ("y", "action_copy")):
            monkeypatch.setattr(type(main), name, broken)
            await explorer.keys(key)
            await failing(explorer)
            before = explorer.stop
            await explorer.press("space")
            assert explorer.stop != before
        # a timer, a message and a result
        main.set_timer(0.001, broken)
        await failing(explorer)
        main.call_later(broken)
        await failing(explorer)
        explorer.app.post(broken)
        await failing(explorer)
        main.parts.port.ask("broken", broken, lambda _: None)
        await failing(explorer)
        await explorer.press("space")
        assert explorer.app.screen is main


async def test_a_dialog_names_the_keys_that_fit_also_once_its_size_is_another():
    async with exploring(WIDE) as explorer:
        await explorer.press("comma")
        fits = {}
        async for size in explorer.sizes(WIDE, SMALL, WIDE):
            fits[size] = next(line for line in explorer.text.splitlines() if "ctrl+s apply" in line)
        assert "choose" in fits[WIDE]
        assert "choose" not in fits[SMALL]
