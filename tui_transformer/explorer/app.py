"""The application: themes, the worker, the main screen and the palette."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.command import Provider
from textual.events import Click, Key
from textual.geometry import Offset
from textual.keys import key_to_character
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tui_transformer.explorer.guard.app import SMALLEST, Commands, GuardedApp, has_room
from tui_transformer.explorer.guard.failures import marked_in
from tui_transformer.explorer.main.enabled_actions import refused_anywhere
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.shell.base import ExplorerScreen, Port
from tui_transformer.explorer.shell.keymap import CLICKED, CommandLines, commands_of, hint, without
from tui_transformer.explorer.shell.keys import UNBOUND, spelled
from tui_transformer.explorer.shell.preferences import Preferences, preferences_path
from tui_transformer.explorer.shell.themes import SHORT, THEMES, readable, theme_names
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.guide.lecture import Lecture
from tui_transformer.records import replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState
from tui_transformer.text.guarded import end_guarded


class ExplorerApp(GuardedApp):
    """The explorer around one session.

    Attributes:
        keymap: The keys that the user gave to actions, by the names of those, or that the classic table has.
    """

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
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {CommandLines}

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
        self.background = Background()
        self._session, self._preferences, self.keymap = session, preferences, preferences.keymap
        self._at, self._says, self._told, self._opens = at, says, told, opens
        self._view = view or ViewState(whole=None if preferences.whole and at is None else False)
        for theme in (*map(readable, self.available_themes.values()), *THEMES):
            self.register_theme(theme)
        preferred = SHORT.get(preferences.theme or "", preferences.theme)
        wanted = (preferred, os.environ.get("TEXTUAL_THEME"), THEMES[0].name)
        self.theme = next(name for name in wanted if name in self.available_themes)
        if preferred not in (None, self.theme):
            problem = f"no theme is called {preferred!r}: {', '.join(theme_names(self.available_themes))} are there"
            self._preferences = replace(preferences, problems=(*preferences.problems, problem))

    @property
    def cursor_position(self) -> Offset:
        """Where the terminal's own cursor stands: on the current cell, or in a text that is written.

        Textual asks whenever it has drawn something; screen readers and magnifiers follow it.
        """
        screen = self.front
        if not isinstance(screen, ExplorerScreen) or isinstance(screen.focused, Input):
            return self._written_at
        asked = [screen.focused] if screen.focused is not None else list[Widget]()
        if isinstance(screen, MainScreen):  # where the matrix may have what is current, whoever has the keys
            asked += (screen.parts.panes.heat_map("matrix"), *screen.query(WholePane))
        current = next(filter(None, map(marked_in, asked)), None)
        return self._written_at if current is None else current

    @cursor_position.setter
    def cursor_position(self, place: Offset) -> None:
        self._written_at = place

    @property
    def settled(self) -> bool:
        """Whether every key was handled, nothing is computed, and no screen is about to show more."""
        screens = (screen for screen in self.screen_stack if isinstance(screen, ExplorerScreen))
        return self.rests and not self.worker.busy and all(screen.settled for screen in screens)

    def advice(self) -> str:
        """What the user can do where a widget cannot be drawn."""
        return hint(self, "the rest goes on: go to another step, or leave with {back} or {quit}")

    def get_default_screen(self) -> Screen[Any]:
        """The empty screen behind all others, as safe as they are."""
        return ExplorerScreen(id="_default")

    def on_mount(self) -> None:
        self.begin()
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
        self.call_after_refresh(self.collecting.begin)
        if self._view.motion and self.line is not None:
            self.call_after_refresh(self.line.measure)

    async def on_click(self, event: Click) -> None:
        if action := event.style.meta.get(CLICKED):
            await self.screen.run_action(action)

    def action_press(self, key: str) -> None:
        self.post_message(Key(key, key_to_character(key)))

    def on_unmount(self) -> None:
        """Save the run that is being trained, and end what is still computed."""
        self.collecting.end()
        self.worker.cancel()  # whose turn the job may wait for
        if (job := self.background.job) is not None:
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

    def search_themes(self) -> None:
        """Open the palette of themes."""
        from textual.theme import ThemeProvider

        self.action_command_palette(providers=[ThemeProvider], placeholder="Search for themes…")

    def action_command_palette(self, **options: Any) -> None:
        """Open a palette, once, where the terminal has room for it."""
        if not has_room(self.size):
            room = f"{SMALLEST.width} × {SMALLEST.height}"
            self.notify(f"the palette needs a terminal of {room}: make it larger", severity="warning", markup=False)
        elif not any(isinstance(screen, Commands) for screen in self.screen_stack):
            self.push_screen(Commands(**options, id="--command-palette"))

    def action_help(self) -> None:
        """Show the card of keys of the main screen, and behind it, and of all other screens, what they are about."""
        screen = self.screen
        if not isinstance(screen, ExplorerScreen):
            return

        def explain() -> None:
            from tui_transformer.explorer.shell.help_page import HelpScreen  # what draws Markdown takes a while

            page = without(screen.help_page, _left_out(screen))
            screen.open(HelpScreen(page, "Help", direct=not isinstance(screen, MainScreen)))

        if isinstance(screen, MainScreen):
            from tui_transformer.explorer.shell.dialog import CardScreen

            screen.open(CardScreen(), lambda wanted: explain() if wanted else None)
        else:
            explain()

    def action_help_quit(self) -> None:
        """Say which key ends the program, where ctrl+c is pressed."""
        quits = [key for key, active in self.active_bindings.items() if active.binding.action in ("quit", "app.quit")]
        if keys := [spelled(key) for key in quits if not key.startswith(UNBOUND)]:
            self.notify(f"{keys[0]} quits the program", markup=False)

    def action_messages(self) -> None:
        from tui_transformer.explorer.shell.dialog import MessageScreen

        if isinstance(self.screen, ExplorerScreen):
            self.screen.open(MessageScreen("Messages", self.messages.text or "nothing was said yet"))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]

    def action_choose_keys(self) -> None:
        """Ask for menus or the classic keys, until the program ends."""
        from tui_transformer.explorer.shell.prompt import PickScreen

        offers = {
            "menus": "few keys, and menus that show themselves",
            "classic": "a key for everything, as it was before there were menus",
        }
        note = f"Until the program ends; `classic = true` in {preferences_path()} keeps it."

        def take(name: str | None) -> None:
            if name is not None:
                self._preferences = replace(self._preferences, classic=name == "classic")
                self.keymap = self._preferences.keymap
                self.set_keymap(dict(self.keymap))

        if isinstance(self.screen, ExplorerScreen):
            self.screen.open(PickScreen("Keys", offers, note), take)

    def handle_bindings_clash(self, clashed_bindings: set[Any], node: Any) -> None:  # noqa: ARG002 - Textual's signature
        """Two actions were given the same key; Textual says so, too, of one action that had several keys."""
        given = [(name, key.strip()) for name, keys in self._preferences.keys.items() for key in keys.split(",")]
        names = sorted(
            str(binding.id)
            for binding in clashed_bindings
            if any(name != binding.id and key == binding.key for name, key in given)
        )
        if names:
            said = f"the key of {', '.join(names)} is also given to another action"
            self.notify(said, severity="warning", markup=False)


def _left_out(screen: Screen[Any]) -> Collection[str]:
    """The actions of the main screen that are of no use at any step of what is explored."""
    return refused_anywhere(screen.parts.explored.session) if isinstance(screen, MainScreen) else ()
