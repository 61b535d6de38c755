"""Text on the screen: styles of words, ends of a line, texts that are written where they change, lines."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.guard.failures import careful
from tui_transformer.records import dataclass, fields


@dataclass(frozen=True)
class Inks:
    """Names in quiet, values in plain, what counts in accent, where one is in marked; right and wrong answers."""

    plain: Style
    quiet: Style
    accent: Style
    marked: Style
    right: Style
    wrong: Style


INK_CLASSES = {f"ink--{field.name}" for field in fields(Inks)}
"""The component classes of a screen with such lines."""


def inks_of(screen: Widget) -> Inks:
    """The styles that the screen's style sheet gives; but for what is marked they lie on any background."""

    def ink(name: str) -> Style:
        style, given = (screen.get_component_rich_style(name, partial=partial) for partial in (False, True))
        return Style(color=style.color, bgcolor=given.bgcolor, bold=style.bold, reverse=style.reverse)

    return Inks(*(ink(f"ink--{field.name}") for field in fields(Inks)))


def spread(left: Text, right: Text, width: int) -> Text:
    """Left and right of a line; the left one is cut if both do not fit."""
    room = max(width - right.cell_len - 2, 0)
    left = left.copy()
    left.truncate(room, overflow="ellipsis")
    left.append(" " * (width - left.cell_len - right.cell_len))
    line = left.append_text(right)
    line.truncate(width)
    line.no_wrap = True
    return line


def segments_of(text: Text, console: Console, ground: Style | None = None) -> list[Segment]:
    """The parts of a line, on a ground if one is given; Rich's own way takes several times as long."""
    base = console.get_style(text.style) if ground is None else ground + console.get_style(text.style)
    segments, plain, at = list[Segment](), text.plain, 0
    for start, end, style in (*text.spans, (len(plain), len(plain), "")):
        if start < at:  # one over another, which is rare
            text = text.copy()
            text.end = ""
            return list(Segment.apply_style(text.render(console), base))
        if at < start:
            segments.append(Segment(plain[at:start], base))
        if start < end:
            segments.append(Segment(plain[start:end], base + console.get_style(style)))
        at = end
    return segments


Line = Text | Content | str


class Written:
    """The texts under a widget."""

    def __init__(self, around: Widget) -> None:
        self._around = around
        self._lines: dict[str, Line] = {}

    def write(self, name: str, line: Line, *, grows: bool = False) -> None:
        """Write a text, if it is another; one that grows with what it says is given room for it."""
        before = self._lines.get(name)
        if self.is_new(name, line):
            layout = grows and (before is None or len(before) != len(line))
            widget: Any = self._around.query_one(f"#{name}")
            widget.update(line, layout=layout)

    def is_new(self, name: str, line: Line) -> bool:
        """Whether a text is another than the last of its name, in words or looks; from now on it is the last."""
        before, self._lines[name] = self._lines.get(name), line
        if isinstance(before, Content) and isinstance(line, Content):
            return not before.is_same(line)  # == is of the words alone
        return before != line or getattr(before, "style", None) != getattr(line, "style", None)  # nor has == that


@careful
class DrawnWidget(Widget):
    """Lines that are made together by `draw`; those below the last are empty."""

    _strips: list[Strip] | None = None
    _drawn_for = Size()

    def draw(self) -> list[Strip]:
        """The lines for the size of the widget and the theme."""
        raise NotImplementedError

    def redraw(self) -> None:
        self._strips = None
        self.refresh()

    restyled = redraw

    def render_line(self, y: int) -> Strip:
        if self._strips is None or self._drawn_for != self.size:
            self._strips, self._drawn_for = self.draw(), self.size
        strip = self._strips[y] if y < len(self._strips) else Strip([])
        return strip.adjust_cell_length(self.size.width, self.rich_style)


class TextLine(DrawnWidget):
    """A line of text that changes at every key, which a `Static` takes several times as long to draw."""

    _text = Text()

    def update(self, text: Text, *, layout: bool = False) -> None:  # noqa: ARG002 - as of a `Static`
        """Show another text; the line has its room from the style sheet."""
        self._text = text
        self.redraw()

    def draw(self) -> list[Strip]:
        return [Strip(segments_of(self._text, self.app.console, self.rich_style))]
