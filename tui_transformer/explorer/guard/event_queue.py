"""Keys, clicks and pastes, handed on one at a time; timers that call for certain; garbage while nobody waits.

A key goes to the widget that has the focus, from there to those around it, and comes back to the app, whose bindings
act on the screen that is in front by then. Where a second key is on its way meanwhile, the first may have opened or
left a screen: the second is asked of widgets that are gone, or acts on a screen that it was not meant for. So the next
event waits until everything that has seen the one before has also seen a message that was sent behind it, twice: what a
widget says because of a key comes behind the first. What was typed at a screen that was opened over is typed into that
one; what was typed at a screen that was left by then is dropped, as nobody means it for what is below: but at a menu,
whose letter is half of what is typed, it is meant for what the menu opens, and behind an escape for where that leads.

While a key is held, what one press shows is stale before it is drawn: it may be put off until the last of them. What
an event changes is drawn at once when all have seen it, and not before: Textual draws what changes first at once, and
what follows from it a sixtieth of a second later.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, cast

from textual import events
from textual._styles_cache import StylesCache
from textual.app import App, ScreenStackError
from textual.dom import NoScreen
from textual.errors import NoWidget
from textual.message import Message
from textual.message_pump import MessagePump
from textual.messages import Prompt
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from tui_transformer.explorer.guard.failures import saying_what_fails
from tui_transformer.text.guarded import ask_again

Handle = Callable[[events.Event], Awaitable[None]]

ROUNDS = 8
"""Messages behind one event at most: focus that never comes to rest holds up no key."""

HOLDS = 0.03
"""Seconds for which nothing is drawn until all have seen an event: a frame or two."""

TOGETHER = 0.001
"""Seconds in which every pane has said that it has to be drawn again."""

LOST = 0.25
"""Seconds after which a message that is not back is looked for: a widget that is removed takes it with it."""


class Behind(Message, bubble=True):
    """A message behind an event, on the way from a widget to the app."""

    def __init__(self, widget: Widget, number: int) -> None:
        super().__init__()
        self.widget, self.number = widget, number

    def _bubble_to(self, widget: MessagePump) -> None:
        _first_above(widget).post_message(self)


def bubble_to_who_listens(message: Message, widget: MessagePump) -> None:
    """Let a message go up to the first that does anything with it, or still has something to do before it.

    Of Textual 8.2: it goes through the queue of every container around the focus, each for a tenth of a millisecond.
    """
    kind: Any = type(message)
    sender = message._sender
    message._no_default_action = False
    up = _first_above(widget, lambda above: above is not sender and not _listens(type(above), kind))
    up.post_message(message)


def forward_to_who_listens(widget: Widget, event: events.Event) -> None:
    """Hand an event to a widget, and a key straight to the first around it that does anything with keys."""
    event._set_forwarded()
    if isinstance(event, events.Key):
        bubble_to_who_listens(event, widget)
    else:
        widget.post_message(event)


def _first_above(widget: MessagePump, is_passed: Callable[[MessagePump], bool] = lambda _: True) -> MessagePump:
    """The first widget, going up, that is not passed by, or in whose queue a message would not be taken at once."""
    while isinstance(widget, Widget) and widget._parent is not None and widget.is_parent_active:
        queue: Any = widget._message_queue
        if not queue.empty() or not queue.ready_event._waiters or not is_passed(widget):
            break
        widget = widget._parent
    return widget


@cache
def _listens(kind: type[MessagePump], message: Any) -> bool:
    """Whether a kind of widget has a handler of its own for a kind of message."""
    if issubclass(message, events.Key):
        own = [vars(each) for each in kind.__mro__ if each is not Widget]
        return any(name in ("on_key", "_on_key") or name.startswith("key_") for names in own for name in names)
    return handlers(kind, message.handler_name, message) != []


@cache
def handlers(kind: type[Any], name: str, message: type[Any]) -> list[tuple[type, Any]] | None:
    """The classes of a kind of widget that handle a message by a method's name; None where `on` chooses methods."""
    kinds, own = set(message.__mro__), [(each, vars(each)) for each in kind.__mro__]
    if any(kinds & {*names.get("_decorated_handlers", ())} for _, names in own):
        return None
    found = ((each, names.get(f"_{name}") or names.get(name)) for each, names in own)
    return [(each, method) for each, method in found if method is not None and not hasattr(method, "_textual_on")]


class InTurn:
    """The events that wait, and the one that is being handled.

    Attributes:
        taken: How many events came.
    """

    def __init__(self, app: App[None], handle: Handle) -> None:
        self._app, self._handle = app, handle
        self.taken, self._holds_until = 0, 0.0
        self._waiting: deque[tuple[events.Event, Screen[Any] | None]] = deque()
        self._behind: Behind | None = None
        self._lost: asyncio.TimerHandle | None = None
        self._now: events.Event | None = None
        self._put_off: Callable[[], None] | None = None
        self._ends: Callable[[], None] = lambda: None

    def put_off(self, function: Callable[[], None]) -> bool:
        """Whether something may wait, as the same key follows; it is done before anything else is handled.

        What was put off before is dropped: this is done in its place.
        """
        repeats = bool(self._waiting and _key(self._now)) and _key(self._now) == _key(self._waiting[0][0])
        self._put_off = function if repeats else None
        return repeats

    def until_next(self, end: Callable[[], None]) -> None:
        """Call a function before the next key, click or paste is handled."""
        self._ends = end

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def waits_for(self) -> Behind | None:
        """The message that has to come back before the next event is handed on."""
        return self._behind

    @property
    def idle(self) -> bool:
        return self._behind is None and not self._waiting

    async def take(self, event: events.Event) -> None:
        self.taken += 1
        if isinstance(event, events.MouseMove) and self._waiting and isinstance(self._waiting[-1][0], events.MouseMove):
            self._waiting.pop()
        before, screen = self._waiting[-1] if self._waiting else (self._behind and self._now, self._screen())
        if _key(before) == "escape" and _key(event) not in ("escape", "q"):  # pressed again to leave
            screen = None  # whichever the escape leads to; so it is of all that is typed behind this
        self._waiting.append((event, screen and self._screen()))
        if self._behind is None:
            if not isinstance(event, events.MouseMove):  # nothing follows it that says that all have seen it
                self._holds_until = time.monotonic() + HOLDS
            await self._next()

    @property
    def holds(self) -> bool:
        """Whether an event is on its way, and what it changes is drawn together as soon as all have seen it."""
        return time.monotonic() < self._holds_until

    def again(self) -> None:
        """Hand on the key that is being handled once more, before all others: it came too early for what it is for."""
        if isinstance(self._now, events.Key):
            self._waiting.appendleft((events.Key(self._now.key, self._now.character), self._screen()))

    async def back(self, behind: Behind) -> None:
        """Something has been through all widgets: send another where the focus is now, or hand on the next event."""
        if behind is not self._behind:
            return
        front = self._front()
        if behind.widget is front and not self._waiting and _only_draws(front.screen):
            self.draw()
        settled = (
            behind.number > 1
            and behind.widget is front
            and not any(each.message_queue_size for each in front.ancestors_with_self if isinstance(each, Widget))
        )  # no message of the widget, as one that follows a message of its own, is still on its way to the screen
        if front is None or settled or behind.number >= ROUNDS or not self._send(front, behind.number + 1):
            self._forget()
            if front is not None and not self._waiting:
                front.screen.call_later(self.draw)  # behind what widgets told their screen before
            await self._next()

    def draw(self) -> None:
        """Draw what an event changed, at once: what is to be drawn a sixtieth of a second after it waits no longer."""
        self._holds_until = 0.0
        front = None if self._app._batch_count else self._screen()  # who holds it draws it
        for screen in () if front is None else (*self._app._background_screens, front):
            told = [
                each for each in screen._compositor.visible_widgets if each._repaint_required and each is not screen
            ]
            screen._dirty_widgets.update(told)
            for widget in told:  # they need not tell their screen any more
                widget._repaint_required = False
            if screen is front or screen._dirty_widgets or screen._layout_required or screen._scroll_required:
                screen._on_timer_update()

    async def _next(self) -> None:
        while self._waiting and self._behind is None:
            event, screen = self._waiting.popleft()
            if _key(event) == "escape":
                ask_again()  # what was typed before it had no answer either
            if not _key(event) or _key(event) != _key(self._now):
                self._catch_up()
            self._now = event
            if screen is None or screen in self._app.screen_stack or getattr(screen, "passes_on", False):
                with saying_what_fails(self._app):  # the events behind it wait for nobody else
                    follows = not isinstance(event, events.MouseMove)
                    if follows:
                        self._ends()
                    target = self._front()
                    if isinstance(event, events.MouseEvent):
                        with suppress(NoWidget, NoScreen, ScreenStackError):
                            target = self._app.get_widget_at(event.x, event.y)[0]
                    if target is None or not target.is_attached:
                        continue  # a notice that went away is still drawn where the mouse is
                    await self._handle(event)
                    if follows:
                        self._send(target, 1)
        if self._behind is None:
            self._catch_up()

    def _catch_up(self) -> None:
        late, self._put_off = self._put_off, None
        if late is not None:
            with saying_what_fails(self._app):
                late()

    def hold(self, widget: Widget, number: int = 1) -> Behind:
        """Hand on no event until the message that this gives is back, or its widget is gone; it is to be sent."""
        self._forget()
        self._behind = Behind(widget, number)
        self._lost = asyncio.get_running_loop().call_later(LOST, self._look_for, self._behind)
        return self._behind

    def _send(self, widget: Widget, number: int) -> bool:
        if not (sent := _first_above(widget).post_message(self.hold(widget, number))):
            self._forget()
        return sent

    def _look_for(self, behind: Behind) -> None:
        if behind is self._behind and behind.widget.is_running and behind.widget.is_attached:
            self._lost = asyncio.get_running_loop().call_later(LOST, self._look_for, behind)
        elif behind is self._behind:
            self._app.post_message(behind)

    def _forget(self) -> None:
        self._behind = None
        if self._lost is not None:
            self._lost.cancel()

    def _front(self) -> Widget | None:
        screen = self._screen()
        return None if screen is None else screen.focused or screen

    def _screen(self) -> Screen[Any] | None:
        return self._app._screen_stack[-1] if self._app._screen_stack else None


def _key(event: object) -> str:
    """The key that an event is; "" for any other."""
    return event.key if isinstance(event, events.Key) else ""


def _only_draws(screen: Screen[Any]) -> bool:
    """Whether nothing that is seen, or has the focus, has more to do than to be drawn; and the screen hides others."""
    app: App[Any] = screen.app
    if screen is not app.screen or screen.styles.background.a < 1 or screen._callbacks or app.message_queue_size:
        return False
    return not any(
        widget._layout_required
        or widget._scroll_required
        or widget._recompose_required
        or widget._next_callbacks
        or not all(isinstance(message, Prompt) for message in cast("Any", widget._message_queue).values)
        for widget in (screen, screen.focused or screen, *screen._compositor.visible_widgets)
    )


def draw_together(screen: Screen[Any]) -> None:
    """Let the panes that change now be drawn at once: else the first is drawn alone, and the rest a frame later."""
    in_turn: InTurn | None = getattr(screen.app, "in_turn", None)
    if in_turn is not None and in_turn.holds:
        return  # they are
    held = ExitStack()
    held.callback(screen.check_idle if in_turn is None else in_turn.draw)
    held.enter_context(screen.app.batch_update())
    later(screen.app, TOGETHER, held.close)  # a timer of the screen would end with it, and hold for good


# Threads and timers


def call_from_thread(app: App[Any], function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Run a function on the screen's thread and wait for it; Textual 8.2 waits for good where the app ends before."""
    if app._thread_id == threading.get_ident():
        raise RuntimeError("the screen's thread would wait for itself")
    said = Future[Any]()

    def call() -> None:
        try:
            said.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - it is the thread's
            said.set_exception(error)

    app.call_later(call)
    while not said.done() and app._running:
        wait([said], 0.1)
    return said.result() if said.done() else None


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


# Garbage


EVERY = 1.0
"""Seconds after which it is seen whether keys rest."""

RARE = 1_000, 10, 10
"""Thresholds of collections while they do not: while a key is held all objects are looked through once a second."""


class Collecting:
    """Collections of an app, from the first screen on until its end.

    A look through all objects takes as long as a repaint, so Python must not choose its moment.

    Attributes:
        due: Whether much was left behind, by a screen, so that no more is waited until keys rest.
    """

    def __init__(self, app: App[None], in_turn: InTurn, every: float = EVERY) -> None:
        """Collect nothing by itself yet; then look every so many seconds whether keys rest."""
        self._app, self._in_turn, self._every = app, in_turn, every
        self._usual = gc.get_threshold()
        self._taken = 0
        self.due = False

    def begin(self) -> None:
        """Leave out the objects of start-up, which stay for good, and collect whenever keys rest."""
        gc.freeze()
        gc.set_threshold(*RARE)
        gc.enable()
        later(self._app, self._every, self._look)

    def end(self) -> None:
        gc.set_threshold(*self._usual)

    def _look(self) -> None:
        """Collect where no event came for a while or much was left behind, and something was made since then."""
        rests = self._in_turn.idle and self._in_turn.taken == self._taken
        self._taken = self._in_turn.taken
        if self.due or (rests and gc.get_count()[2]):
            self.due = False
            StylesCache.get_inner_outer.cache_clear()  # it keeps 1,024 widgets' lines, gone ones too (textual 8.2)
            gc.collect()
        later(self._app, self._every, self._look)
