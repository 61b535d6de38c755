"""Keys that come together: each is handled on the screen that the one before left in front."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from driving import MEDIUM, NARROW, WIDE, exploring
from textual import events, messages
from textual._compositor import ChopsUpdate
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard import event_queue
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.event_queue import ROUNDS, Behind, InTurn, _only_draws
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


async def test_two_keys_that_leave_an_overview_leave_it_once_and_do_not_reach_the_screen_below():
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


async def test_two_keys_that_open_screens_open_one():
    async with exploring(MEDIUM) as explorer:
        for keys in ("HH", "HL", "?H", "/H", ",,", "AP"):
            explorer.send(*keys)
            await explorer.handled()
            assert len(explorer.app.screen_stack) == 3, keys
            await explorer.settled()  # where it computes escape ends that first
            await explorer.press("escape")
            assert explorer.app.screen is explorer.main


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


async def idle(app: Waiting) -> None:
    async with asyncio.timeout(20):
        while not app.in_turn.idle:
            await asyncio.sleep(0.005)


async def test_a_key_whose_widget_goes_away_does_not_hold_up_the_next():
    app = Waiting()
    async with app.run_test() as pilot:
        app.query_one(Button).focus()
        await pilot.pause()
        for key in "xyy":
            app.post_message(events.Key(key, key))
        await pilot.pause()
        await idle(app)
        assert not app.query(Button)
        app.screen.set_focus(None)
        app.post_message(events.Key("y", "y"))
        await pilot.pause()
        await idle(app)
        assert app.counted >= 1


async def test_a_message_that_is_lost_is_given_up():
    app = Waiting()
    async with app.run_test() as pilot:
        button = app.query_one(Button)
        button.focus()
        await pilot.pause()
        app.in_turn.hold(button)
        app.post_message(events.Key("y", "y"))
        await pilot.pause()
        assert app.counted == 0
        await button.remove()
        app.screen.set_focus(None)
        await idle(app)
        await pilot.pause()
        assert app.counted == 1


async def test_what_was_put_off_and_fails_does_not_hold_up_the_keys_behind_it():
    app = Waiting()
    async with app.run_test() as pilot:
        app.screen.set_focus(None)
        await pilot.pause()
        held = app.in_turn.hold(app.screen)
        await app.in_turn.take(events.Key("z", "z"))
        await app.push_screen(Screen())
        await app.in_turn.take(events.Key("z", "z"))  # dropped, as its screen is left by then
        await app.pop_screen()
        app.screen.set_focus(None)
        for _ in range(3):
            await app.in_turn.take(events.Key("y", "y"))
        app.post_message(held)
        await pilot.pause()
        await idle(app)
        assert (app.drawn, app.counted) == (1, 3)


async def test_moves_of_the_mouse_that_wait_are_one_and_what_was_typed_at_a_screen_that_was_left_is_dropped():
    app = Waiting()
    async with app.run_test() as pilot:
        held = app.in_turn.hold(app.screen)
        for x in range(50):
            app.post_message(events.MouseMove(None, x, 1, 1, 0, 0, False, False, False, x, 1))
        await pilot.pause()
        assert app.in_turn.waiting == 1
        app.post_message(held)
        await idle(app)
        # a key
        await app.push_screen(Screen())
        held = app.in_turn.hold(app.screen)
        app.post_message(events.Key("y", "y"))
        await pilot.pause()
        await app.pop_screen()
        app.post_message(events.Key("y", "y"))
        app.screen.set_focus(None)
        await pilot.pause()
        app.post_message(held)
        await pilot.pause()
        await idle(app)
        assert app.counted == 1


async def test_the_mouse_on_what_was_removed_but_is_still_drawn_does_nothing():
    app = Waiting()
    async with app.run_test() as pilot:
        button = app.query_one(Button)
        place = button.region.offset
        with app.batch_update():
            await button.remove()
            for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
                app.post_message(kind(None, *place, 0, 0, 1, False, False, False, *place))
            await asyncio.sleep(0.05)
        await idle(app)
        await pilot.pause()
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


async def test_what_a_key_changes_is_drawn_once_and_as_soon_as_all_have_seen_it(monkeypatch):
    drawn: list[object] = []
    usual = GuardedApp._display

    def display(app: GuardedApp, screen: Screen, update: object) -> None:
        drawn.extend([update] if isinstance(update, ChopsUpdate) else [])
        usual(app, screen, update)

    async with exploring(WIDE, model="question", whole=None) as explorer:
        # a mouse that moves on and on holds no drawing
        move = events.MouseMove(None, 5, 5, 1, 0, 0, False, False, False, screen_x=5, screen_y=5, style=None)
        before = explorer.app.in_turn.taken
        explorer.app.post_message(move)
        await explorer.until(lambda: explorer.app.in_turn.taken > before)
        assert not explorer.app.in_turn.holds
        # keys
        monkeypatch.setattr(event_queue, "HOLDS", 60.0)
        monkeypatch.setattr(GuardedApp, "_display", display)
        await explorer.press("tab", "down")
        for key in ("down", "up", "down"):
            drawn.clear()
            explorer.send(key)
            await explorer.until(lambda: drawn and explorer.app.settled)
            await asyncio.sleep(0.1)  # several times as long as Textual waits
            assert len(drawn) == 1, key


async def test_the_step_that_is_drawn_at_once_is_the_one_that_a_key_goes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a list tells that its cursor moved, and what is around it that another step is gone to."""
    drawn, draw = list[str](), InTurn.draw
    async with exploring((120, 40), whole=None) as explorer:
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.press("0", "1", "left", "tab")
        monkeypatch.setattr(InTurn, "draw", lambda in_turn: (draw(in_turn), drawn.append(explorer.text)))
        for key in ("space", "right_square_bracket", "pagedown", "pageup", "tab", "down"):
            drawn.clear()
            await explorer.press(key)
            assert drawn[0].splitlines()[0] == explorer.text.splitlines()[0], key


async def test_a_screen_only_draws_where_nothing_that_is_seen_has_more_to_do(monkeypatch):
    async with exploring(NARROW) as explorer:
        main = explorer.main
        widget = explorer.app.focused
        assert _only_draws(main)
        for owner in (main, widget):
            for name in ("_layout_required", "_scroll_required", "_recompose_required", "_next_callbacks"):
                with monkeypatch.context() as patched:
                    patched.setattr(owner, name, [print])
                    assert not _only_draws(main), (owner, name)
            for message, only in ((messages.Prompt(), True), (messages.Update(widget), False)):
                owner._message_queue.values.append(message)
                assert _only_draws(main) == only, (owner, message)
                owner._message_queue.values.pop()
        monkeypatch.setattr(main, "_callbacks", [print])
        assert not _only_draws(main)
        monkeypatch.undo()
        # what is below another screen is drawn with it
        await explorer.press("question_mark")
        help_screen = explorer.app.screen
        assert not _only_draws(main)
        assert help_screen.styles.background.a < 1
        assert not _only_draws(help_screen)


class Going(InTurn):
    """Messages that go to the widgets that have the focus, one after the other; nothing is sent for real."""

    def __init__(self, app: App[None], fronts: list[Widget | None]) -> None:
        super().__init__(app, self._handled)
        self.fronts, self.sent, self.drawn = iter(fronts), list[int](), list[int]()

    async def _handled(self, event: events.Event) -> None: ...

    def _front(self) -> Widget | None:
        return next(self.fronts)

    def _send(self, widget: Widget, number: int) -> bool:
        self.sent.append(number)
        self.hold(widget, number)
        return True

    def draw(self) -> None:
        self.drawn.append(self.waits_for.number if self.waits_for else 0)

    async def go(self, widget: Widget) -> list[int]:
        self._send(widget, 1)
        while not self.idle:
            await self.back(self.waits_for)
        return self.sent


async def test_a_message_goes_behind_the_focus_until_that_is_at_rest(monkeypatch):
    async with exploring(NARROW) as explorer:
        app, one, other = explorer.app, explorer.app.focused, explorer.main
        for fronts, sent, drawn in (
            ([one, one], [1, 2], [1, 2]),
            ([other, other], [1, 2], [2]),
            ([other, one, one], [1, 2, 3], [3]),
            ([one, None], [1, 2], [1]),
            ([None], [1], []),
            ([other, one] * ROUNDS, [*range(1, ROUNDS + 1)], []),
        ):
            going = Going(app, fronts)
            assert (await going.go(one), going.drawn) == (sent, drawn), fronts
            await explorer.settled()
            assert going.drawn == [*drawn, *([0] if fronts[-1] else [])], "behind what the screen was told before"
        # one that was given up for another says nothing any more
        going = Going(app, [one, one])
        lost = going.hold(one)
        assert await going.go(one) == [1, 2]
        going._send(one, 1)
        await going.back(lost)
        assert going.sent == [1, 2, 1]
        going._forget()
        await explorer.settled()
        # of two events the last is drawn
        going = Going(app, [one] * 5)
        going._waiting.append((events.Key("x", "x"), None))
        assert await going.go(one) == [1, 2, 1, 2]
        assert going.drawn == [1, 2]
        await explorer.settled()
        assert going.drawn == [1, 2, 0]
        # nothing is drawn before the rest that there is to do
        monkeypatch.setattr(event_queue, "_only_draws", lambda screen: screen is not one.screen)
        going = Going(app, [one, one])
        await going.go(one)
        assert going.drawn == []
