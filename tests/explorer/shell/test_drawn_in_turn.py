"""When what an event changes is drawn: at once, once, and not before all have seen it."""

from __future__ import annotations

import asyncio

import pytest
from driving import NARROW, WIDE, exploring
from textual import events, messages
from textual._compositor import ChopsUpdate
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer.explorer.guard import event_queue
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.event_queue import ROUNDS, InTurn, _only_draws


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
    async with exploring((120, 40), whole=None, at="encoder.0.self_attention.weights") as explorer:
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
