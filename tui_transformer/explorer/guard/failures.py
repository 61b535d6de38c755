"""What becomes of mistakes: each is told once, in one line, and reported in a file, and the program goes on.

A widget that cannot be drawn says so in its place. What a key, a message or a result cannot do is left undone. A screen
that cannot be shown, or of which a widget has ended, is left for the one below. Only without the main screen, or where
a widget of that one has ended, the program ends.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from textwrap import wrap
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from rich.segment import Segment
from textual import events
from textual._context import active_message_pump
from textual.app import App
from textual.content import Content
from textual.dom import DOMNode
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Offset, Region
from textual.message import Message
from textual.notifications import Notification, SeverityLevel
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer import crash
from tui_transformer.errors import InputError, reason
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

# Messages that go away by themselves


MOST_KEPT = 200
"""Messages that are kept."""

SHORTEST = 0.05
"""Seconds for which a message is shown at least."""


@dataclass
class Notice(Notification):
    """A message that is shown for a moment even where the program was too busy to show it in time.

    Textual would set a timer to what is left of its time; where that is less than nothing, the timer goes round in a
    circle and the program answers no key any more.
    """

    @property
    def time_left(self) -> float:
        return max(super().time_left, SHORTEST)

    @property
    def has_expired(self) -> bool:
        return super().time_left <= 0


class Messages:
    """The messages, the last first."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=MOST_KEPT)

    def keep(self, message: str, severity: SeverityLevel) -> None:
        kind = "" if severity == "information" else f"{severity}: "
        self._said.appendleft(f"{time.strftime('%H:%M:%S')}  {kind}{message}")

    @property
    def text(self) -> str:
        return "\n".join(self._said)


def say(app: App[Any], message: str, severity: SeverityLevel = "information") -> None:
    """Show a message that goes away by itself."""
    app.notify(visible(message), severity=severity, markup=False)


# Messages, keys and screens that fail


MOST_TOLD = 20
"""Failures that are told; an error that is another one each time is not reported without end."""

NEEDED = 2
"""Screens without which there is no program: Textual's own at the bottom, and the main one."""


class Failures:
    """Mistakes that were told, and the screens that are left for them; of an app that has none, errors are raised.

    Attributes:
        told: What was said of each.
    """

    def __init__(self, app: App[Any], advice: Callable[[], str]) -> None:
        """Mistakes of an app; `advice` says what the user can do where a widget cannot be drawn."""
        self._app, self._advice = app, advice
        self._leaving: Screen[Any] | None = None
        self.told: dict[tuple[str, str, str], str] = {}

    @classmethod
    def of(cls, app: App[Any]) -> Failures | None:
        """Those of an app; None where it has none."""
        failures = getattr(app, "failures", None)
        return failures if isinstance(failures, cls) else None

    def undrawn(self, widget: Widget, error: Exception) -> str:
        """Tell that a widget cannot be drawn, where that was not told; what is to be said in its place."""
        titles = (getattr(each, "border_title", None) for each in widget.ancestors_with_self)
        title = next(filter(None, titles), type(widget).__name__)
        name = title.plain if isinstance(title, Content) else title
        return self._tell(f"{name} cannot be drawn", error, self._advice(), again=False)

    def handled(self, error: Exception) -> bool:
        """Tell what a message or a key could not do, or leave the screen that is not shown yet.

        Returns:
            Whether the program goes on.
        """
        if not self._has_main:
            return False
        if self._leaving in self._app.screen_stack:
            return True
        screen = _screen_of(active_message_pump.get(None))
        if screen is not None and not screen.is_mounted:
            return self.ended(error)
        self._tell("not done", error)
        return True

    def ended(self, error: Exception) -> bool:
        """Leave the screen of the widget that is ending with an error.

        Returns:
            Whether the program goes on.
        """
        widget = active_message_pump.get(None)
        if not self._has_main or not isinstance(widget, Widget):
            return False
        screen = _screen_of(widget)
        if screen in self._app.screen_stack[:NEEDED]:
            return False
        if screen is None or screen not in self._app.screen_stack:
            self._tell("not done", error)
        elif screen is not self._leaving:
            self._leaving = screen
            self._app.call_later(self._leave, screen)  # first: nothing can be said on a screen that cannot be drawn
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(screen).__name__.removesuffix("Screen"))
            self._tell(f"{words.lower()} is closed again", error)
        return True

    @property
    def _has_main(self) -> bool:
        screens = self._app.screen_stack if self._app._screen_stack else []
        return len(screens) >= NEEDED and screens[NEEDED - 1].is_mounted

    def _leave(self, screen: Screen[Any]) -> None:
        screens = self._app.screen_stack
        for each in reversed(screens[screens.index(screen) :] if screen in screens else []):
            each.dismiss()

    def _tell(self, what: str, error: Exception, *more: str, again: bool = True) -> str:
        """Say what failed, and report it where it is new: the message for the user, or the report of a mistake."""
        failure = what, type(error).__name__, str(error)
        is_known = failure in self.told
        if not is_known and len(self.told) >= MOST_TOLD:
            return what
        if not is_known:
            is_of_user = isinstance(error, InputError | MemoryError)
            why = reason(error) if is_of_user else crash.message(error).replace("\n", "; ")
            self.told[failure] = visible("; ".join((f"{what}: {why}", *more)))
        if again or not is_known:
            self._app.call_later(say, self._app, self.told[failure], "error")
        return self.told[failure]


def _screen_of(node: object) -> Screen[Any] | None:
    nodes = node.ancestors_with_self if isinstance(node, DOMNode) else []
    return next((each for each in nodes if isinstance(each, Screen)), None)


@contextmanager
def saying_what_fails(app: App[Any]) -> Iterator[None]:
    """Say that a file could not be read, that memory is short, or that the program made a mistake."""
    try:
        yield
    except (InputError, MemoryError) as error:
        say(app, reason(error), "error")
    except Exception as error:
        failures = Failures.of(app)
        if failures is None or not failures.handled(error):
            raise


async def called(app: App[Any], function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """Call a function, or await what it gives; what fails is said."""
    with saying_what_fails(app):
        result = function(*arguments, **named)
        if isawaitable(result):
            await result


# Widgets that cannot be drawn


SCENE, STYLE, MESSAGE = "scene", "style", "message"
"""Who asks a widget to draw: something else to show, a change of its styles, a message such as another size."""

BEGINNING = (events.Compose, events.Mount)
"""Events without which there is no widget: where they fail its screen is left."""

DISPATCH = "_dispatch_message"
"""The method of everything in Textual that handles messages."""

AnyWidget = TypeVar("AnyWidget", bound=Widget)

_SAID: WeakKeyDictionary[Widget, Mapping[str, str]] = WeakKeyDictionary()
"""The messages in the place of widgets, by who asked to draw."""


def careful(kind: type[AnyWidget]) -> type[AnyWidget]:
    """Let a class of widgets say what failed in their place where they cannot be drawn, whoever asks for it.

    Where such a widget has `restyled`, it is called when the theme or the focus changes; `marked` is the region of what
    is current in it; `mixed_colors = False` says that it draws neither in the terminal's own colours nor in dim ones,
    both of which are looked for in all that is drawn.
    """
    handle, draw, follow_style = kind._dispatch_message, kind.render_lines, kind.notify_style_update
    filters = kind.get_line_filters

    async def dispatch(self: AnyWidget, message: Message) -> None:
        try:
            await handle(self, message)
        except Exception as error:
            failures = Failures.of(self.app)
            if isinstance(message, BEGINNING) or failures is None:
                raise
            _say_instead(self, MESSAGE, failures.undrawn(self, error))
        else:
            if isinstance(message, events.Resize):
                _say_instead(self, MESSAGE, "")

    def render_lines(self: AnyWidget, crop: Region) -> list[Strip]:
        if said := _SAID.get(self):
            return _instead(self, next(iter(said.values())), crop)
        try:
            return draw(self, crop)
        except Exception as error:
            failures = Failures.of(self.app)
            if failures is None:
                raise
            return _instead(self, failures.undrawn(self, error), crop)

    def notify_style_update(self: AnyWidget) -> None:
        follow_style(self)
        if self.is_attached and hasattr(self, "restyled"):
            carefully(self, self.restyled, STYLE)

    def get_line_filters(self: AnyWidget) -> Sequence[LineFilter]:
        every, is_mixed = filters(self), getattr(self, "mixed_colors", True)
        return every if is_mixed else [each for each in every if not isinstance(each, ANSIToTruecolor)]

    setattr(kind, DISPATCH, dispatch)
    for method in (render_lines, notify_style_update, get_line_filters):
        setattr(kind, method.__name__, method)
    return kind


def carefully(widget: Widget, draw: Callable[[], None], source: str = SCENE) -> None:
    """Let a widget draw; what fails is said in its place, and in that of the widgets in it, until it succeeds."""
    said = ""
    try:
        draw()
    except Exception as error:
        failures = Failures.of(widget.app)
        if failures is None:
            raise
        said = failures.undrawn(widget, error)
    for each in widget.walk_children(Widget, with_self=True) if said or _SAID else ():
        _say_instead(each, source, said)


def _say_instead(widget: Widget, source: str, said: str) -> None:
    """Say something in place of a widget, or "" to draw it again; a scene that was drawn heals everything."""
    before = _SAID.get(widget, {})
    now = {} if source == SCENE else {key: text for key, text in before.items() if key != source}
    if said:
        now[source] = said
    if now != before:
        _SAID[widget] = now
        widget.refresh()


def _instead(widget: Widget, said: str, crop: Region) -> list[Strip]:
    """The lines of a widget that says something in place of what it draws."""
    style, lines = widget.rich_style, wrap(said, max(widget.size.width, 1))
    strips = [Strip([Segment(line, style)]) for line in lines[crop.y : crop.bottom]]
    strips += [Strip([])] * (crop.height - len(strips))
    return [strip.adjust_cell_length(crop.right, style).crop(crop.x, crop.right) for strip in strips]


def marked_in(widget: Widget) -> Offset | None:
    """Where on the screen a widget has what is current."""
    marked: Region | None = getattr(widget, "marked", None) if widget.is_on_screen else None
    return None if marked is None else widget.content_region.offset + marked.offset
