"""Widgets that say what failed where they cannot be drawn, while everything else goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType
from typing import ClassVar, Protocol, runtime_checkable

from rich.segment import Segment
from textual import events
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Offset, Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget


@runtime_checkable
class Tells(Protocol):
    """An app that goes on where a widget cannot be drawn; in others the error is raised."""

    def undrawn(self, widget: Widget, error: Exception) -> str:
        """Tell the user, and give what is to be said in place of the widget."""


def marked_in(widget: Widget) -> Offset | None:
    """Where on the screen a widget has what is current."""
    marked = widget.marked if isinstance(widget, CarefulWidget) and widget.is_on_screen else None
    return None if marked is None else widget.content_region.offset + marked.offset


SCENE, STYLE, MESSAGE = "scene", "style", "message"
"""Who asks a widget to draw: something else to show, a change of its styles, a message such as another size."""

BEGINNING = (events.Compose, events.Mount)
"""Events without which there is no widget: where they fail its screen is left."""


class CarefulWidget(Widget):
    """A widget in whose place a message is drawn where its own drawing fails, whoever asks for it."""

    mixed_colors: ClassVar[bool] = True
    """Whether it may draw in the terminal's own colours, or in dim ones; both are looked for in all that is drawn."""

    instead: Mapping[str, str] = MappingProxyType({})
    """The messages in its place, by who asked it to draw."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Filters of lines, but for those that find nothing to do."""
        filters = super().get_line_filters()
        return filters if self.mixed_colors else [each for each in filters if not isinstance(each, ANSIToTruecolor)]

    @property
    def marked(self) -> Region | None:
        """Where what is current is drawn in the widget; None where nothing is, or it is not in view."""
        return None

    def restyled(self) -> None:
        """Draw anew: the theme has changed, or the focus."""

    def notify_style_update(self) -> None:
        """Follow a change of styles."""
        super().notify_style_update()
        if self.is_attached:
            carefully(self, self.restyled, STYLE)

    async def _dispatch_message(self, message: Message) -> None:
        """Handle a message; where that fails it is said in the place of the widget, which stays."""
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if isinstance(message, BEGINNING) or not isinstance(self.app, Tells):
                raise
            say_instead(self, MESSAGE, self.app.undrawn(self, error))
        else:
            if isinstance(message, events.Resize):
                say_instead(self, MESSAGE, "")

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines of the widget, or of what is said in its place."""
        said = next(iter(self.instead.values()), None)
        if said is not None:
            return self._instead(said, crop)
        try:
            return super().render_lines(crop)
        except Exception as error:
            if not isinstance(self.app, Tells):
                raise
            return self._instead(self.app.undrawn(self, error), crop)

    def _instead(self, said: str, crop: Region) -> list[Strip]:
        lines = wrap(said, max(self.size.width, 1))
        strips = [Strip([Segment(line, self.rich_style)]) for line in lines[crop.y : crop.bottom]]
        strips += [Strip([])] * (crop.height - len(strips))
        return [strip.adjust_cell_length(crop.right, self.rich_style).crop(crop.x, crop.right) for strip in strips]


def carefully(widget: Widget, draw: Callable[[], None], source: str = SCENE) -> None:
    """Let a widget draw; what fails is said in its place, and in that of the widgets in it, until it succeeds."""
    said = ""
    try:
        draw()
    except Exception as error:
        if not isinstance(widget.app, Tells):
            raise
        said = widget.app.undrawn(widget, error)
    for each in widget.walk_children(CarefulWidget, with_self=True):
        say_instead(each, source, said)


def say_instead(widget: CarefulWidget, source: str, said: str) -> None:
    """Say something in place of a widget, or "" to draw it again; a scene that was drawn heals everything."""
    others = {} if source == SCENE else {key: text for key, text in widget.instead.items() if key != source}
    now = others | ({source: said} if said else {})
    if now != widget.instead:
        widget.instead = now
        widget.refresh()


class DrawnWidget(CarefulWidget):
    """Lines that are made together by `draw`; those below the last are empty."""

    _strips: list[Strip] | None = None

    def draw(self) -> list[Strip]:
        """The lines for the size of the widget and the theme."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw anew: something else is shown."""
        self._strips = None
        self.refresh()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.redraw()

    def restyled(self) -> None:
        """Follow a change of theme."""
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """One line of the widget."""
        if self._strips is None:
            self._strips = self.draw()
        strip = self._strips[y] if y < len(self._strips) else Strip([])
        return strip.adjust_cell_length(self.size.width, self.rich_style)
