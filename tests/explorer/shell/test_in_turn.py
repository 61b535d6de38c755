"""Keys that come together: each is handled on the screen that the one before left in front."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
from driving import MEDIUM, NARROW, exploring
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.compositor import compose_leanly
from tui_transformer.explorer.guard.event_queue import Behind, InTurn
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.prompt import PromptScreen


async def test_what_is_typed_right_behind_the_key_that_opens_a_prompt_is_typed_into_it():
    async with exploring(NARROW) as explorer:
        stop = explorer.stop
        explorer.send("slash", *" waves sea")
        await explorer.handled()
        assert isinstance(explorer.app.screen, PromptScreen)
        assert explorer.focused_input.value.endswith(" waves sea")
        assert explorer.stop == stop
        # a key that comes after its line is gone does nothing
        line = explorer.focused_input
        assert isinstance(line, LineInput)
        await explorer.press("escape")
        assert not line.is_attached
        await explorer.app.run_action("complete", line)
        # a screen that was opened over and left gets no key that was meant for what was over it
        explorer.send("question_mark")
        await explorer.handled()
        explorer.send("escape", "q", "q")
        await explorer.handled()
        assert explorer.app.screen is explorer.main
        assert not explorer.app._exit


LEAVES = [(key, leaves) for key in "HKRL" for leaves in ("q", "escape", "enter") if key + leaves != "Renter"]


async def test_two_keys_that_leave_an_overview_leave_it_once_and_two_that_open_screens_open_one():
    async with exploring(MEDIUM) as explorer:
        for key, leaves in LEAVES:
            await explorer.press(key)
            assert isinstance(explorer.app.screen, Overview)
            explorer.send(leaves, leaves, leaves, "space")
            await explorer.handled()
            assert explorer.app.screen is explorer.main
            assert not explorer.app._exit
            before = explorer.stop
            await explorer.press("space")
            assert explorer.stop != before
            assert "quit" in explorer.text
        for keys in ("HH", "HL", "?H", "/H", ",,", "AP"):
            explorer.send(*keys)
            await explorer.handled()
            assert len(explorer.app.screen_stack) == 3, keys
            await explorer.settled()  # where it computes escape ends that first
            await explorer.leave()


async def test_what_is_typed_right_behind_the_escape_that_leaves_a_screen_is_done_below():
    async with exploring(MEDIUM) as explorer:
        stop = explorer.stop
        await explorer.press("space")
        behind = explorer.stop
        for opens in ("H", "question_mark", "slash"):
            await explorer.press("backspace")
            assert explorer.stop == stop
            await explorer.press(opens)
            explorer.send("escape", "space")
            await explorer.handled()
            assert explorer.app.screen is explorer.main
            assert explorer.stop == behind, opens
        await explorer.press("H")
        explorer.send("escape", "slash", "q", "escape", "backspace")
        await explorer.handled()
        assert explorer.app.screen is explorer.main
        assert explorer.stop == stop
        # whoever presses a key that leaves more than once leaves no more than one screen by it
        await explorer.press("H")
        explorer.send("escape", "q", "escape", "q")
        await explorer.handled()
        assert explorer.app.screen is explorer.main
        assert not explorer.app._exit


class Waiting(App[None]):
    """An app whose events come one at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "remove"), Binding("y", "count"), Binding("z", "draw")]
    counted = drawn = 0

    def __init__(self) -> None:
        super().__init__()
        self.in_turn = InTurn(self, super().on_event)

    def compose(self) -> ComposeResult:
        yield Button("one")
        yield Input()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded:
            await self.in_turn.take(event)
        else:
            await super().on_event(event)

    async def on_behind(self, message: Behind) -> None:
        await self.in_turn.back(message)

    async def action_remove(self) -> None:
        await self.query_one(Button).remove()

    def action_count(self) -> None:
        self.counted += 1

    def action_draw(self) -> None:
        if not self.in_turn.put_off(self.action_draw):
            self.drawn += 1
            raise InputError("too large to be drawn")


@pytest.fixture
async def app() -> AsyncIterator[Waiting]:
    async with Waiting().run_test() as pilot:
        pilot.app.pause = pilot.pause
        yield pilot.app


async def idle(app: Waiting) -> None:
    await app.pause()
    async with asyncio.timeout(20):
        while not app.in_turn.idle:
            await asyncio.sleep(0.005)
    await app.pause()


async def test_a_key_whose_widget_goes_away_does_not_hold_up_the_next(app):
    app.query_one(Button).focus()
    await app.pause()
    for key in "xyy":
        app.post_message(events.Key(key, key))
    await idle(app)
    assert not app.query(Button)
    app.screen.set_focus(None)
    app.post_message(events.Key("y", "y"))
    await idle(app)
    assert app.counted >= 1


async def test_a_message_that_is_lost_is_given_up(app):
    button = app.query_one(Button)
    button.focus()
    await app.pause()
    app.in_turn.hold(button)
    app.post_message(events.Key("y", "y"))
    await app.pause()
    assert app.counted == 0
    await button.remove()
    app.screen.set_focus(None)
    await idle(app)
    assert app.counted == 1


async def test_what_was_put_off_and_fails_does_not_hold_up_the_keys_behind_it(app):
    app.screen.set_focus(None)
    await app.pause()
    held = app.in_turn.hold(app.screen)
    await app.in_turn.take(events.Key("z", "z"))
    await app.push_screen(Screen())
    await app.in_turn.take(events.Key("z", "z"))  # dropped, as its screen is left by then
    await app.pop_screen()
    app.screen.set_focus(None)
    for _ in range(3):
        await app.in_turn.take(events.Key("y", "y"))
    app.post_message(held)
    await idle(app)
    assert (app.drawn, app.counted) == (1, 3)


async def test_moves_of_the_mouse_that_wait_are_one_and_what_was_typed_at_a_screen_that_was_left_is_dropped(app):
    held = app.in_turn.hold(app.screen)
    for x in range(50):
        app.post_message(events.MouseMove(None, x, 1, 1, 0, 0, False, False, False, x, 1))
    await app.pause()
    assert app.in_turn.waiting == 1
    app.post_message(held)
    await idle(app)
    # a key
    await app.push_screen(Screen())
    held = app.in_turn.hold(app.screen)
    app.post_message(events.Key("y", "y"))
    await app.pause()
    await app.pop_screen()
    app.post_message(events.Key("y", "y"))
    app.screen.set_focus(None)
    await app.pause()
    app.post_message(held)
    await idle(app)
    assert app.counted == 1


async def test_the_mouse_on_what_was_removed_but_is_still_drawn_does_nothing(app):
    button = app.query_one(Button)
    place = button.region.offset
    with app.batch_update():
        await button.remove()
        for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
            app.post_message(kind(None, *place, 0, 0, 1, False, False, False, *place))
        await asyncio.sleep(0.05)
    await idle(app)
    assert app.is_running


class Opened(Screen[None]):
    """A screen whose key needs what it is composed of, which takes a while, as on a busy machine."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "say")]

    async def _compose(self) -> None:
        await asyncio.sleep(0.05)
        await super()._compose()

    def compose(self) -> ComposeResult:
        yield Static("0")

    def action_say(self) -> None:
        said = self.query_one(Static)
        said.update(str(int(str(said.content)) + 1))


class Opening(GuardedApp):
    """An app that opens a screen while a key is on its way back to it."""

    class First(Screen[None]):
        def on_key(self, _: events.Key) -> None:
            self.app.push_screen(Opened())

    def get_default_screen(self) -> Screen[None]:
        return self.First()


async def test_a_key_that_comes_to_a_screen_before_it_is_composed_is_handed_on_when_it_is():
    app = Opening()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.post_message(events.Key("y", "y"))
        app.post_message(events.Key("y", "y"))
        await pilot.pause()
        async with asyncio.timeout(20):
            while not app.rests:
                await asyncio.sleep(0.005)
        assert not app.messages.text
        assert isinstance(app.screen, Opened)
        assert str(app.screen.query_one(Static).content) == "2"


class Around(Vertical):
    """A container that does nothing with keys, and remembers what came through it."""

    def __init__(self, *children: Widget) -> None:
        super().__init__(*children)
        self.seen: list[Message] = []

    async def _on_message(self, message: Message) -> None:
        self.seen.append(message)
        await super()._on_message(message)


class Nested(App[None]):
    """A list in a container in one that listens to it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "count")]
    counted, marked = 0, -1

    def compose(self) -> ComposeResult:
        yield Around(OptionList("one", "two"))

    @on(OptionList.OptionHighlighted)
    def _mark(self, event: OptionList.OptionHighlighted) -> None:
        self.marked = event.option_index

    def action_count(self) -> None:
        self.counted += 1


async def test_messages_and_keys_go_past_widgets_that_do_nothing_with_them():
    compose_leanly()
    app = Nested()
    async with app.run_test() as pilot:
        app.query_one(OptionList).focus()
        await pilot.press("down")
        app.query_one(Around).seen.clear()
        await pilot.press("down", "x")
        seen = {type(message) for message in app.query_one(Around).seen}
        assert not seen & {events.Key, OptionList.OptionHighlighted}
        assert (app.marked, app.counted) == (app.query_one(OptionList).highlighted, 1)
