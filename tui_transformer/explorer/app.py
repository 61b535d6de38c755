"""The application: themes, the worker, signals, the palette, and what happens when something goes wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, ClassVar, cast

from rich.color import ColorSystem
from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.driver import Driver
from textual.geometry import Offset
from textual.message import Message
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_transformer import crash
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.error_boundary import marked_in
from tui_transformer.explorer.guard.frame import Frame
from tui_transformer.explorer.guard.timers import certain
from tui_transformer.explorer.main.panes.lines import refused_anywhere
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.event_queue import Behind, InTurn
from tui_transformer.explorer.shell.failures import Failures
from tui_transformer.explorer.shell.garbage_collection import Collecting
from tui_transformer.explorer.shell.keymap import without
from tui_transformer.explorer.shell.notifications import Messages, Notice, called, saying_what_fails
from tui_transformer.explorer.shell.palette import commands_of
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.themes import SHORT, THEMES, theme_names
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.guide.lecture import Lecture
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState
from tui_transformer.text.guarded import end_guarded

ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))


class ExplorerApp(App[None]):
    """The explorer around one session."""

    TITLE = "tui-transformer"
    PAUSE_GC_ON_SCROLL = True
    CSS = """
    ToastRack { margin-bottom: 0; overflow: hidden; align: left bottom; }
    ToastHolder { display: none; align-horizontal: left; &:last-child { display: block; } }
    Toast {
        width: 1fr; max-width: 100%; max-height: 4; margin: 0; padding: 0 1;
        background: $panel; color: $foreground;
        &.-information, &.-warning, &.-error { border: none; }
        &.-error { color: $error; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    class Call(Message):
        """Something to be run on the screen's thread."""

        def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
            super().__init__()
            self.function, self.arguments = function, arguments

    def __init__(
        self,
        session: Session,
        preferences: Preferences,
        at: Position | None = None,
        says: str = "",
        told: Lecture | None = None,
        opens: Callable[[Port], None] | None = None,
        *,
        view: ViewState | None = None,
    ) -> None:
        """Explore a session from a position (by default the first).

        Args:
            session: What is explored.
            preferences: Of the user.
            at: Where.
            says: Something about it.
            told: What leads through it.
            opens: Opens a tool over it.
            view: How it is looked at first, instead of as the preferences say.
        """
        super().__init__()
        self.worker = Worker(self.post)
        self.in_turn = InTurn(self, super().on_event)
        self.collecting = Collecting(self, self.in_turn)
        self.failure: str | None = None
        self.background = Background()
        self.messages = Messages()
        self.failures = Failures(self)
        self.frame = Frame(self.console._color_system or ColorSystem.TRUECOLOR)
        self._session, self._preferences = session, preferences
        self._at, self._says, self._told, self._opens = at, says, told, opens
        self._view = view or ViewState(whole=None if preferences.whole and at is None else False)
        for theme in THEMES:
            self.register_theme(theme)
        preferred = SHORT.get(preferences.theme or "", preferences.theme)
        wanted = (preferred, os.environ.get("TEXTUAL_THEME"), THEMES[0].name)
        self.theme = next(name for name in wanted if name in self.available_themes)
        if preferred not in (None, self.theme):
            problem = f"no theme is called {preferred!r}: {', '.join(theme_names(self.available_themes))} are there"
            self._preferences = replace(preferences, problems=(*preferences.problems, problem))
        self.animation_level = "none"

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys that the user gave to actions, by the names of those."""
        return self._preferences.keys

    @property
    def cursor_position(self) -> Offset:
        """Where the terminal's own cursor stands: on the current cell, or in a text that is written.

        Textual asks whenever it has drawn something; screen readers and magnifiers follow it.
        """
        screen = self.screen_stack[-1] if self._screen_stack else None
        if not isinstance(screen, ExplorerScreen) or isinstance(screen.focused, Input | TextArea):
            return self._written_at
        current = next(filter(None, map(marked_in, _current_widgets(screen))), None)
        return self._written_at if current is None else current

    @cursor_position.setter
    def cursor_position(self, place: Offset) -> None:
        self._written_at = place

    @property
    def waiting(self) -> int:
        """How many events wait to be handled."""
        return self.message_queue_size + self.in_turn.waiting

    @property
    def settled(self) -> bool:
        """Whether every key was handled, nothing is computed, and no screen is about to show more."""
        screens = (screen for screen in self.screen_stack if isinstance(screen, ExplorerScreen))
        busy = self.worker.busy or self._batch_count or self.message_queue_size
        return self.in_turn.idle and not busy and all(screen.settled for screen in screens)

    def get_default_screen(self) -> Screen[Any]:
        """The empty screen behind all others, as safe as they are."""
        return ExplorerScreen(id="_default")

    def get_driver_class(self) -> type[Driver]:
        """Our driver for a terminal."""
        driver = super().get_driver_class()
        if sys.platform == "win32" or "web_driver" in driver.__module__:
            return driver
        from tui_transformer.explorer.guard.driver import driver_for

        return driver_for(driver)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write an update to the terminal, as far as it changes anything; nothing at all where it does not."""
        shown = renderable
        if isinstance(renderable, LayoutUpdate | ChopsUpdate) and self._writes:
            changes = self.frame.changes(renderable)
            if not changes.sequences and self._cursor_stays:
                return
            shown = cast("RenderableType", changes)  # as every update of Textual's is taken for
        super()._display(screen, shown)

    @property
    def _cursor_stays(self) -> bool:
        return self.screen.outer_size.clamp_offset(self.cursor_position) == self._previous_cursor_position

    @property
    def _writes(self) -> bool:
        there = self._running and not self._closed and not self.is_headless and self._driver is not None
        return there and not self._batch_count

    async def on_event(self, event: events.Event) -> None:
        """Hand on keys, clicks and pastes one at a time."""
        if isinstance(event, events.Resize):
            self.frame.forget()
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

    def on_explorer_app_call(self, event: Call) -> None:
        """Run what a thread asked for."""
        event.function(*event.arguments)

    async def _dispatch_message(self, message: Message) -> None:
        """Handle a message; what fails is said, and the program goes on."""
        with saying_what_fails(self):
            await super()._dispatch_message(message)

    async def run_action(self, *arguments: Any, **named: Any) -> bool:
        """Do what a key stands for; what cannot be read or does not fit into memory is said."""
        with saying_what_fails(self):
            return await super().run_action(*arguments, **named)
        return True

    def set_timer(self, *arguments: Any, **named: Any) -> Timer:
        """Call a function after so many seconds, or as soon as there is time for it."""
        return certain(super().set_timer(*arguments, **named))

    def call_next(self, callback: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function behind this message; what fails is said."""
        super().call_next(partial(called, self, callback, *arguments, **named))

    def on_mount(self) -> None:
        """Show the main screen; end in order when a signal says so."""
        loop = asyncio.get_running_loop()
        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, self.exit, None, 128 + number)
            signal.signal(number, _wait_no_longer)  # asyncio is told besides, and comes to it soon then
        loop.set_default_executor(ThreadPoolExecutor(1, "background"))  # asyncio's own makes a thread for each work
        self.set_keymap(dict(self.keymap))
        main = MainScreen(self._session, self.worker, self.background, self._view, self._at)
        self.push_screen(main)
        if self._told is not None:
            self.call_after_refresh(main.parts.tour.follow, self._told)
        if self._opens is not None:
            main.call_after_refresh(self._opens, main.parts.port)
        if self._says:
            self.notify(self._says, markup=False)
        for message in self._preferences.problems:
            self.notify(message, severity="warning", markup=False)
        self.app_resume_signal.subscribe(self, lambda _: self.draw_again())
        self.call_after_refresh(self.collecting.begin)

    def say(self, message: str) -> None:
        """Show a message of whoever serves."""
        self.notify(message, markup=False)

    def draw_again(self) -> None:
        """Write all of the screen: the shell wrote to the terminal, or a page shows nothing yet."""
        self.frame.forget()
        self.refresh(layout=True)

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen in front, and soon collect what it was made of."""
        self.collecting.due = True
        return super().pop_screen()

    def on_unmount(self) -> None:
        """Save the run that is being trained, and end what is still computed."""
        self.collecting.end()
        job = self.background.job
        if job is not None:
            job.end()
            self.failure = self.failure or job.lost
        self.worker.stop()
        end_guarded()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action of the screen, and what every Textual program has."""
        yield from commands_of(screen, self.get_key_display, self.keymap, _left_out(screen))
        if isinstance(screen, MainScreen):
            yield from screen.commands()
        for command in super().get_system_commands(screen):
            if command.title not in ("Quit", "Keys"):
                yield command

    def action_command_palette(self) -> None:
        """Open the palette."""
        self._open_palette()

    def search_themes(self) -> None:
        """Open the palette of themes."""
        from textual.theme import ThemeProvider

        self._open_palette(providers=[ThemeProvider], placeholder="Search for themes…")

    def _open_palette(self, **options: Any) -> None:
        """Open a palette, once, where the terminal has room for it."""
        from tui_transformer.explorer.shell.commands import SMALLEST, Commands, has_room

        if not has_room(self.size):
            room = f"{SMALLEST.width} × {SMALLEST.height}"
            self.notify(f"the palette needs a terminal of {room}: make it larger", severity="warning", markup=False)
        elif not any(isinstance(screen, Commands) for screen in self.screen_stack):
            self.push_screen(Commands(**options, id="--command-palette"))

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

    def action_help(self) -> None:
        """Explain the screen that is in front."""
        from tui_transformer.explorer.shell.help import HelpScreen

        screen = self.screen
        if isinstance(screen, ExplorerScreen):
            screen.open(HelpScreen(without(screen.help_page, _left_out(screen)), "Help"))

    def action_messages(self) -> None:
        """Show what was said."""
        from tui_transformer.explorer.shell.message import MessageScreen

        if isinstance(self.screen, ExplorerScreen):
            self.screen.open(MessageScreen("Messages", self.messages.text or "nothing was said yet"))

    def action_next_theme(self) -> None:
        """The other of the two themes of the program."""
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]

    def handle_bindings_clash(self, clashed_bindings: set[Any], node: Any) -> None:  # noqa: ARG002 - Textual's signature
        """Two actions were given the same key; Textual says so, too, of one action that had several keys."""
        given = [(name, key.strip()) for name, keys in self.keymap.items() for key in keys.split(",")]
        names = sorted(
            str(binding.id)
            for binding in clashed_bindings
            if any(name != binding.id and key == binding.key for name, key in given)
        )
        if names:
            said = f"the key of {', '.join(names)} is also given to another action"
            self.notify(said, severity="warning", markup=False)

    def undrawn(self, widget: Widget, error: Exception) -> str:
        """Say that a widget cannot be drawn, and go on."""
        return self.failures.undrawn(widget, error)

    def goes_on(self, error: Exception) -> bool:
        """Say what could not be done, and go on where that is possible."""
        return self.failures.handled(error)

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


def _wait_no_longer(_number: int, _frame: FrameType | None) -> None:
    end_guarded(for_good=True)


def _left_out(screen: Screen[Any]) -> Collection[str]:
    """The actions of the main screen that are of no use at any step of what is explored."""
    return refused_anywhere(screen.parts.explored.session) if isinstance(screen, MainScreen) else ()


def _current_widgets(screen: ExplorerScreen[Any]) -> Iterator[Widget]:
    """Widgets that may show what is current: the one with the keys; on the main screen the matrix as well."""
    if screen.focused is not None:
        yield screen.focused
    if isinstance(screen, MainScreen):
        yield from (screen.parts.panes.heat_map("matrix"), *screen.query(WholePane))
