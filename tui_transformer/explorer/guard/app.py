"""An app that goes on after mistakes, follows the terminal's size, writes few bytes, and ends in order.

Of Textual 8.2: an error ends the program and prints every local variable, timers may never call, every line of a widget
that is drawn again is written, a palette that is closed searches on, and a screen answers two sizes of the terminal by
laying out for each in turn for good.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from rich.color import ColorSystem
from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import BindingsMap, Keymap
from textual.command import Command, CommandList, CommandPalette
from textual.dom import DOMNode
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker as TextualWorker
from textual.worker import WorkerState

from tui_transformer import crash
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.compositor import compose_leanly
from tui_transformer.explorer.guard.event_queue import Behind, Collecting, InTurn, certain
from tui_transformer.explorer.guard.failures import DISPATCH, Failures, Messages, Notice, called, saying_what_fails
from tui_transformer.explorer.guard.frame import Changes, Frame
from tui_transformer.explorer.guard.line import MeasuringDriver
from tui_transformer.machine import ENDING
from tui_transformer.text.guarded import end_guarded

A_MOMENT = 0.0001
"""Seconds for which one thread lets another go on, hardly more than it takes that one to be called."""

SMALLEST = Size(20, 10)
"""The smallest terminal whose palette has a line for a command."""

AnyScreen = TypeVar("AnyScreen", bound=Screen[Any])

compose_leanly()


class GuardedApp(App[None]):
    """An app whose keys, clicks and mistakes are handled one at a time.

    Attributes:
        in_turn: Keys, clicks and pastes that wait.
        failure: Why the program ends; None where nothing is wrong.
        messages: What was said.
    """

    class Call(Message):
        """Something to be run on the screen's thread."""

        def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
            super().__init__()
            self.function, self.arguments = function, arguments

    def __init__(self) -> None:
        super().__init__()
        self.in_turn = InTurn(self, super().on_event)
        self.collecting = Collecting(self, self.in_turn)
        self.failure: str | None = None
        self.messages = Messages()
        self.failures = Failures(self, self.advice)
        self._frame = Frame(self.console._color_system or ColorSystem.TRUECOLOR)
        self.animation_level = "none"

    def advice(self) -> str:
        """What the user can do where a widget cannot be drawn."""
        return ""

    @property
    def waiting(self) -> int:
        return self.message_queue_size + self.in_turn.waiting

    @property
    def rests(self) -> bool:
        """Whether every event and message was handled, and what is drawn together is drawn."""
        return self.in_turn.idle and not self._batch_count and not self.message_queue_size

    @property
    def front(self) -> Screen[Any] | None:
        return self._screen_stack[-1] if self._screen_stack else None

    # The terminal

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if sys.platform == "win32" or "web_driver" in driver.__module__:
            return driver
        from tui_transformer.explorer.guard.driver import driver_for

        return driver_for(driver)

    @property
    def line(self) -> MeasuringDriver | None:
        """The line to the terminal; None where its quickness is not known, and without a terminal."""
        return self._driver if isinstance(self._driver, MeasuringDriver) else None

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write an update to the terminal, as far as it changes anything; nothing at all where it does not."""
        shown, is_there = renderable, self._running and not self._closed and self._driver is not None
        writes = is_there and not self.is_headless and not self._batch_count
        if isinstance(renderable, LayoutUpdate | ChopsUpdate) and writes:
            changes = Changes(self._frame.write(renderable))
            cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
            if not changes.sequences and cursor == self._previous_cursor_position:
                return
            shown = cast("RenderableType", changes)  # as every update of Textual's is taken for
        super()._display(screen, shown)
        if writes:
            time.sleep(A_MOMENT)  # else the thread that writes waits until this one rests
            if screen._compositor.size != self.size:
                self._frame.forget()  # the terminal has put what was drawn for its last size somewhere else

    def draw_again(self) -> None:
        """Write all of the screen: the shell wrote to the terminal, or a page shows nothing yet."""
        self._frame.forget()
        self.refresh(layout=True)

    # Events, messages and timers

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Resize):
            self._frame.forget()
        if isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded:
            await self.in_turn.take(event)
        else:
            await super().on_event(event)

    async def on_behind(self, message: Behind) -> None:
        """Every widget has handled what is before this."""
        await self.in_turn.back(message)

    def post(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a function on the screen's thread; called from any thread."""
        self.post_message(self.Call(function, arguments))

    def on_guarded_app_call(self, event: Call) -> None:
        event.function(*event.arguments)

    async def _dispatch_message(self, message: Message) -> None:
        """Handle a message; what fails is said, and the program goes on."""
        with saying_what_fails(self):
            await super()._dispatch_message(message)

    async def run_action(self, action: Any, default_namespace: DOMNode | None = None, *more: Any, **named: Any) -> bool:
        """Do what a key stands for, on a screen that was opened meanwhile once it is composed; what fails is said.

        What it was meant for may be gone meanwhile, or be about to end with the program: then it does nothing.
        """
        if isinstance(default_namespace, Screen) and not default_namespace.is_mounted:
            self.in_turn.again()
            return True
        if isinstance(default_namespace, Widget) and not is_there(default_namespace):
            return True
        with saying_what_fails(self):
            return await super().run_action(action, default_namespace, *more, **named)
        return True

    def set_timer(self, *arguments: Any, **named: Any) -> Timer:
        return certain(super().set_timer(*arguments, **named))

    def call_next(self, callback: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function behind this message; what fails is said."""
        super().call_next(partial(called, self, callback, *arguments, **named))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a message in the status line, in place of the one before, and keep it."""
        self.messages.keep(message, severity)
        shown = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, shown, markup)))

    # Beginning and end

    def run(self, *arguments: Any, **named: Any) -> Any:
        """Run until the end; signals do afterwards what they did before, which asyncio would not have them do."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
        try:
            return super().run(*arguments, **named)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def begin(self) -> None:
        """End in order when a signal says so, unless none is to, as behind nohup; draw all again after a stop."""
        loop = asyncio.get_running_loop()
        for number in (each for each in (signal.SIGINT, *ENDING) if signal.getsignal(each) is not signal.SIG_IGN):
            loop.add_signal_handler(number, self.exit, None, 128 + number)
            # asyncio is told besides, and comes to it soon then
            signal.signal(number, lambda *_: end_guarded(for_good=True))
        loop.set_default_executor(ThreadPoolExecutor(1, "background"))  # asyncio's own makes a thread for each work
        self.app_resume_signal.subscribe(self, lambda _: self.draw_again())

    def pop_screen(self) -> AwaitComplete:
        self.collecting.due = True
        return super().pop_screen()

    def _handle_exception(self, error: Exception) -> None:
        """Leave the screen that has ended, or end with a line and a report.

        Textual would print every local variable, which may hold the user's text.
        """
        if self.failures.ended(error):
            return
        if self.failure is None:
            self.failure = str(error) if isinstance(error, InputError) else crash.message(error)
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

    def panic(self, *renderables: Any) -> None:  # noqa: ARG002 - Textual's signature
        """End; what is said is `failure`."""
        self._return_code = 1
        self._close_messages_no_wait()


def guards_messages(screen: type[AnyScreen]) -> type[AnyScreen]:
    """Let a class of screens go on where a message of a widget or the terminal cannot be handled, which is said.

    A size that the terminal has no more is passed over: where two sizes wait among other messages, Textual answers
    each by laying out for it and sending itself the size again, in turn for good.
    """

    async def dispatch(self: AnyScreen, message: Message) -> None:
        if isinstance(message, events.Resize) and message.size != self.app.size:
            return
        with saying_what_fails(self.app):
            await super(screen, self)._dispatch_message(message)

    setattr(screen, DISPATCH, dispatch)
    return screen


CHAIN = "_binding_chain"
"""The keys of the focused widget and of all that it is in, as Textual asks for them."""

Mapped = tuple[Keymap | None, BindingsMap | None, int, BindingsMap]
"""A keymap, what it was applied to and how many keys that had, and what came of it."""


class KeptKeys:
    """Which keys each widget has, worked out once: Textual does so at every key.

    That copies all keys, and takes as many looks as the product of them and those of the keymap: several milliseconds.
    """

    def __init__(self) -> None:
        self._usual: Callable[[Screen[Any]], list[tuple[DOMNode, BindingsMap]]] = vars(Screen)[CHAIN].fget
        self._kept: WeakKeyDictionary[DOMNode, Mapped] = WeakKeyDictionary()

    def __get__(self, screen: Screen[Any], _: type[Screen[Any]]) -> list[tuple[DOMNode, BindingsMap]]:
        app, focused = screen.app, screen.focused
        if focused is None or focused.loading or type(focused).check_consume_key is not Widget.check_consume_key:
            return self._usual(screen)
        if not app._keymap:
            return [(node, node._bindings) for node in focused.ancestors_with_self]
        pairs = list[tuple[DOMNode, BindingsMap]]()
        for node in focused.ancestors_with_self:
            own, before = node._bindings, self._kept.get(node, (None, None, 0, BindingsMap()))
            keymap, bindings, count, mapped = before
            if keymap is not app._keymap or bindings is not own or count != len(own.key_to_bindings):
                mapped = own.copy()
                if clashed := mapped.apply_keymap(app._keymap).clashed_bindings:
                    app.handle_bindings_clash(clashed, node)
                self._kept[node] = app._keymap, own, len(own.key_to_bindings), mapped
            pairs.append((node, mapped))
        return pairs


def keeps_keys(screen: type[AnyScreen]) -> type[AnyScreen]:
    """Let a class of screens keep its keys."""
    setattr(screen, CHAIN, KeptKeys())
    return screen


def is_there(widget: Widget) -> bool:
    """Whether a widget was composed, and is not being removed."""
    return widget.is_mounted and widget.is_attached and not (widget._pruning or widget._closing or widget._closed)


def forget_drawn(screen: Screen[Any]) -> None:
    """Drop what the widgets of a screen drew: Textual keeps the caches of 1,024 removed widgets with all of it."""
    for widget in screen.walk_children(Widget):
        widget._styles_cache.clear()


class Commands(CommandPalette):
    """Textual's palette, which cannot be used where none of its lines is seen; without a picture before its line."""

    DEFAULT_CSS = """
    Commands SearchIcon { display: none; }
    """

    _width = 0
    _chosen: object = None

    def on_resize(self, event: events.Resize) -> None:
        """Write the lines for as many columns as there are now; leave where the terminal has become too small."""
        if not has_room(event.size):
            self.dismiss()
        elif self._width not in (0, event.size.width):
            self._chosen = _text_of(self.query_one(CommandList).highlighted_option)
            self._gather_commands(self.query_one(Input).value.strip())
        self._width = event.size.width

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search no more where it is closed: what was typed may come behind the end of its list."""
        self._chosen = None
        if not self.is_active:
            event.prevent_default()

    def _refresh_command_list(self, command_list: CommandList, *given: Any, **more: Any) -> None:
        """Show the lines; where they are the same ones, the cursor stays."""
        super()._refresh_command_list(command_list, *given, **more)
        texts = [*map(_text_of, command_list.options)]
        if self._chosen is not None and self._chosen in texts:
            command_list.highlighted = texts.index(self._chosen)

    def dismiss(self, result: None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def run_worker(self, *work: Any, **options: Any) -> TextualWorker[Any]:
        """Search; what fails while it is closed, whose list is gone, ends nothing."""
        return super().run_worker(*work, **{**options, "exit_on_error": False})

    def on_worker_state_changed(self, event: TextualWorker.StateChanged) -> None:
        """Say what failed while it is there."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and isinstance(error, Exception) and self.is_active:
            self.app._handle_exception(error)

    def _action_command_list(self, action: str) -> None:
        """Do what a key stands for in the list, once that has a place on the screen: Textual counts its lines by it."""
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


def _text_of(option: object) -> object:
    """What a line of the palette is for; None where it is none."""
    return option.hit.text if isinstance(option, Command) else None


def has_room(size: Size) -> bool:
    """Whether the palette's list has a line."""
    return size.width >= SMALLEST.width and size.height >= SMALLEST.height
