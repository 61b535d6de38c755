"""The explorer driven from outside: keys in, text of the screen out."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from textual import events
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.main.screen import MainScreen, Parts
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.guide.lecture import Lecture
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.view_state import Shown, ViewState
from tui_transformer.views.step_view import Place

PATIENCE = float(os.environ.get("PATIENCE", 60.0))
"""Seconds after which a test gives up waiting, however busy the machine is; fewer where tests are to fail."""

TOOLS = (*(name for each in ACTIONS for name in re.findall(r"^open\('([\w-]+)'\)$", each.action)), "vocabulary")
"""What the main screen opens; the vocabulary by the action that shows it."""

WEIGHTS = "encoder.0.self_attention.weights"
WIDE, MEDIUM, NARROW, SMALL = (160, 45), (100, 30), (80, 24), (40, 12)


Kind = TypeVar("Kind", bound=Screen[Any])


@dataclass(eq=False)
class Explorer:
    """A running explorer."""

    pilot: Pilot[None]
    app: ExplorerApp

    @property
    def main(self) -> MainScreen:
        """The main screen, whatever lies over it."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, MainScreen))

    @property
    def parts(self) -> Parts:
        """The parts of the main screen."""
        return self.main.parts

    @property
    def session(self) -> Session:
        return self.parts.explored.session

    @property
    def position(self) -> Position:
        return self.parts.explored.position

    @property
    def stop(self) -> str:
        return self.position.stop

    @property
    def view(self) -> ViewState:
        """How one looks, and the pane that has the keys."""
        return replace(self.parts.explored.view, active=self.parts.panes.arrangement.active)

    @property
    def drawn(self) -> Shown:
        """Which matrices are drawn."""
        return self.parts.panes.shown

    @property
    def scene(self) -> StepScene:
        """The matrix that is shown, and its cell."""
        assert self.parts.explored.step is not None
        return self.parts.explored.step

    @property
    def text(self) -> str:
        """Text of the screen."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    @property
    def place(self) -> tuple[int, int]:
        """How far one is, as the screen says it: `step 3 of 25`, or `3/25`."""
        match = re.search(r"step (\d+) of (\d+)|(\d+)/(\d+) *$", self.text, re.MULTILINE)
        assert match, self.text
        numbers = [int(group) for group in match.groups() if group is not None]
        return numbers[0], numbers[1]

    @property
    def messages(self) -> list[str]:
        """The notices that were given."""
        return [notice.message for notice in self.app._notifications]

    async def keys(self, *keys: str) -> None:
        """Press keys, each after what the one before set off on the screen's thread."""
        for key in keys:
            self.send(key)
            await self.handled()

    def send(self, *keys: str) -> None:
        """Press keys without waiting for anything."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
            self.app.post_message(events.Key(name, " " if key == "space" else key if len(key) == 1 else None))

    async def handled(self) -> None:
        """Wait until every message is handled that is there now, with those that they give rise to; then draw."""
        await self._rest()
        await self._draw()
        for _ in range(3):
            if self.app.is_running and any(map(_is_undrawn, self._seen)):  # bars came, or it scrolled
                await self._draw()
        assert self.app.is_running, self.app._exception

    async def _draw(self) -> None:
        """Draw what is to be drawn, first of the screens behind: a dialog shows them."""
        for screen in self._seen:
            if _is_undrawn(screen) or screen is self.app.screen:
                screen._on_timer_update()
        await self._rest()

    @property
    def _seen(self) -> list[Screen[Any]]:
        return [*self.app._background_screens, self.app.screen]

    async def _rest(self) -> None:
        """Wait until every widget waits for messages: exact, and far cheaper than to send one to each of them."""
        end = time.monotonic() + PATIENCE
        pumps = self._pumps
        while self.app.is_running:
            await asyncio.sleep(0)
            if self.app.in_turn.idle and all(map(_waits, pumps)):
                before, pumps = pumps, self._pumps
                if before == pumps:
                    return
            elif time.monotonic() > end:
                raise AssertionError(f"{[pump for pump in pumps if not _waits(pump)]} do not rest\n{self.text}")

    @property
    def _pumps(self) -> list[MessagePump]:
        """Everything in front that handles messages, and the screens behind."""
        return [self.app, *self.app.screen_stack, *self.app.screen.walk_children()]

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until everything that they set off is done."""
        await self.keys(*keys)
        await self.settled()

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Nothing is computed, until all is that was asked for meanwhile."""
        held = threading.Event()
        self.app.worker.between(lambda: held.wait(20))
        try:
            yield
        finally:
            held.set()
        await self.settled()

    async def settled(self) -> None:
        """Wait until nothing is being computed or about to be, also once all is handled that was said meanwhile."""
        while True:
            await self.until(lambda: self.app.settled)
            await self.handled()
            if self.app.settled:
                return

    async def until(self, condition: Callable[[], object], seconds: float | None = None) -> None:
        """Wait for a condition."""
        end = time.monotonic() + (seconds or PATIENCE)
        while not condition():
            assert time.monotonic() < end, f"waited {seconds or PATIENCE} s in vain\n{self.text}\n{self._going_on}"
            await asyncio.sleep(0.005)

    async def front(self, kind: type[Kind], there: Callable[[Any], object] = lambda _: True) -> Kind:
        """The screen in front, once it is one of a kind on which something is there, and all is settled."""
        await self.until(lambda: isinstance(self.app.screen, kind) and there(self.app.screen))
        await self.settled()
        return self.screen(kind)

    def screen(self, kind: type[Kind]) -> Kind:
        """The screen in front, which is of a kind."""
        screen = self.app.screen
        assert isinstance(screen, kind), screen
        return screen

    @property
    def _going_on(self) -> str:
        """What is not settled."""
        app = self.app
        screens = [screen for screen in app.screen_stack if not getattr(screen, "settled", True)]
        counts = f"{app.message_queue_size} messages, {app._batch_count} batches, {app.in_turn.waiting} events"
        return f"{counts}, worker {app.worker.busy}, behind {app.in_turn.waits_for}, screens {screens}"

    async def shown(self, *texts: str) -> None:
        """Wait until all these texts are on the screen."""
        await self.until(lambda: all(text in self.text for text in texts))

    async def write(self, text: str) -> None:
        """Replace what the input that is focused holds."""
        self.focused_input.value = text
        await self.handled()

    async def fill(self, field: str, text: str) -> None:
        """Replace what a field of a form holds."""
        self.app.screen.query_one(f"#{field}").focus()
        await self.handled()
        await self.write(text)

    async def answer(self, text: str) -> None:
        """Write into the input and press enter."""
        await self.write(text)
        await self.press("enter")

    async def prompt(self, key: str, text: str) -> None:
        """Answer the prompt that a key opens."""
        await self.press(key)
        await self.answer(text)

    async def leave(self, *keys: str) -> None:
        """Go back to the main screen, by escape if no keys are named."""
        await self.press(*(keys or ("escape",)))
        assert self.app.screen is self.main, self.text

    @property
    def focused_input(self) -> Input:
        focused = self.app.focused
        assert isinstance(focused, Input), focused
        return focused

    async def go(self, stop: str, *cell: int) -> None:
        """Go to a stop at once, or to a head, row and column of it; tests of stepping press the keys."""
        if cell:
            self.parts.port.go(Position(stop, Place(*cell)))
        else:
            assert stop in self.session.stops, f"no stop {stop}"
            self.app.call_later(self.parts.navigation.go_to_stop, stop)
        await self.until(lambda: self.stop == stop)
        await self.settled()

    async def change(self, session: Session) -> None:
        """Show another session."""
        self.parts.port.change(session)
        await self.settled()

    async def tour(self, told: str | Lecture) -> None:
        """Begin a tour, of the program by its name; tests of the guide press the keys."""
        tour = self.parts.tour
        tour.begin(told) if isinstance(told, str) else tour.follow(told)
        await self.settled()

    async def click(self, text: str, right: int = 0, down: int = 0, times: int = 1) -> None:
        """Click so many cells from where a text begins, the lowest on the screen."""
        lines = self.text.splitlines()
        y = max(i for i, line in enumerate(lines) if text in line)
        await self.click_at(lines[y].index(text) + right, y + down, times)

    async def click_at(self, x: int, y: int, times: int = 1) -> None:
        await self.pilot.click(offset=(x, y), times=times)
        await self.settled()

    async def open(self, tool: str) -> None:
        """Open a tool by its name; tests of keys press its own."""
        open_tool(tool, self.parts.port)
        await self.settled()

    async def resize(self, width: int, height: int) -> None:
        size = Size(width, height)
        self.app._driver._size = size
        self.app.post_message(events.Resize(size, size))
        await self.until(lambda: self.app.screen._compositor.size == size)
        await self.settled()

    async def sizes(self, *sizes: tuple[int, int]) -> AsyncIterator[tuple[int, int]]:
        """Resize to these, one after the other."""
        for size in sizes:
            await self.resize(*size)
            yield size


@asynccontextmanager
async def exploring(
    size: tuple[int, int] = NARROW,
    *,
    text: str | None = None,
    ids: Iterable[int] | None = None,
    preferences: Preferences | None = None,
    session: Session | None = None,
    budget: int | None = None,
    decoder_text: str | None = None,
    whole: bool | None = False,
    at: str | None = None,
    **options: Any,
) -> AsyncIterator[Explorer]:
    """An explorer of a model, with the options of the command line, at its first stop or another.

    The whole is not shown unless a test wants it, or (None) leaves it to the size; and unless a test brings its own
    preferences, everything has a key, which is one press.
    """
    if session is None:
        more = {} if budget is None else {"budget": budget}
        given = None if ids is None else tuple(ids)
        session = open_session(ModelOptions(**options, **more), text, given, decoder_text=decoder_text)
    app = ExplorerApp(session, preferences or Preferences(classic=True), view=ViewState(whole=whole))
    async with app.run_test(size=size, notifications=True) as pilot:
        explorer = Explorer(pilot, app)
        await explorer.until(lambda: len(app.screen_stack) > 1)
        await explorer.settled()
        if at is not None:
            await explorer.go(at)
        yield explorer
        assert not app.failures.told, list(app.failures.told.values())


def _is_undrawn(screen: Screen[Any]) -> bool:
    """Whether something on it is to be drawn; one that lies behind another says always that it is itself."""
    return bool(screen._dirty_widgets) or screen._layout_required or screen._scroll_required


def _waits(pump: MessagePump) -> bool:
    """Whether something that handles messages waits for the next one, and is in the middle of none; or is no more."""
    queue = pump._message_queue
    return pump._closed or (queue.empty() and bool(queue.ready_event._waiters))
