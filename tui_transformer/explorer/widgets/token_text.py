"""A text that is being written: tokens that were given and tokens that were written, one of them looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from tui_transformer.explorer.guard.error_boundary import DrawnWidget
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.text.display import cells, visible

LIKELY, UNLIKELY = 0.5, 0.1
"""Where there is no colour: from here on bold; below underlined."""

NEXT = "_"
"""Sign at the place of the next token."""

_SPACES = (" ", "\t", "\n")


@dataclass(frozen=True)
class WrittenToken:
    """A token in the text.

    Attributes:
        text: What it adds to the text.
        share: The probability with which it was chosen; None for a token that was given.
    """

    text: str
    share: float | None = None


class TokenText(DrawnWidget):
    """Running text with a cursor; tokens that were given are quiet, the others as strong as they were probable."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"token-text--quiet", "token-text--cursor"}
    DEFAULT_CSS = """
    TokenText {
        background: $background;
        color: $foreground;
        & > .token-text--quiet { color: $foreground 60%; }
        & > .token-text--cursor { background: $accent; color: $background; text-style: bold; }
        &:nocolor > .token-text--cursor { text-style: bold reverse; background: $background; color: $foreground; }
        &:ansi > .token-text--cursor { text-style: bold reverse; }
    }
    """

    class Chosen(Message):
        """The user clicked a token."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    _tokens: tuple[WrittenToken, ...] = ()
    _cursor = 0
    _lines: Sequence[Line] = ()

    def show(self, tokens: Sequence[WrittenToken], cursor: int) -> None:
        """Show a text.

        Args:
            tokens: The tokens in order.
            cursor: The token to mark; one past the last for the place of the next.
        """
        self._tokens, self._cursor = tuple(tokens), cursor
        self.redraw()

    def on_click(self, event: Click) -> None:
        """Say which token was clicked."""
        place = event.get_content_offset(self)
        at = 0
        for part in self._lines[place.y] if place is not None and place.y < len(self._lines) else ():
            at += cells(part.text)
            if place is not None and place.x < at:
                self.post_message(self.Chosen(part.token))
                return

    def draw(self) -> list[Strip]:
        """The lines that there is room for: the one with the cursor, one after it, and as many as fit before."""
        page, height = self.rich_style, self.size.height
        lines = token_lines([*(token.text for token in self._tokens), NEXT], self.size.width)
        last = max((at for at, line in enumerate(lines) if any(part.token == self._cursor for part in line)), default=0)
        top = max(min(last - height + 2, len(lines) - height), 0)
        self._lines = lines[top : top + height]
        quiet, cursor = (self.get_component_rich_style(f"token-text--{name}") for name in ("quiet", "cursor"))
        colors = palette("sequential", Surface.of(self.app), page)

        def style(token: int) -> Style:
            if token == self._cursor:
                return cursor
            share = self._tokens[token].share if token < len(self._tokens) else None
            return quiet if share is None else _shade(share, colors, page)

        return [Strip([Segment(part.text, style(part.token)) for part in line if part.text]) for line in self._lines]


def _shade(share: float, colors: Palette, page: Style) -> Style:
    if colors.has_color:
        return colors.styles[round(min(share, 1.0) * (len(colors.styles) - 1))]
    return page + Style(bold=share >= LIKELY, underline=share < UNLIKELY)


@dataclass(frozen=True)
class Part:
    """The part of a token that is shown on one line."""

    token: int
    text: str


Line = list[Part]


def token_lines(tokens: Sequence[str], width: int) -> list[Line]:
    """Lay out tokens one after another; a token keeps the spaces that it begins with, and ends its line at a newline.

    Args:
        tokens: What each token adds to the text, of any origin.
        width: Cells of a line, at least 1.

    Returns:
        The lines; every token has a part on one of them, or several where it is wider than a line.
    """
    lines: list[Line] = [[]]
    room = width = max(width, 1)
    for word in _words(tokens):
        if room < sum(cells(part.text) for part in word) <= width:
            lines.append([])
            room = width
        for part in word:
            text, taken = part.text, _fitting(part.text, room)
            while taken < len(text):
                lines[-1].append(Part(part.token, text[:taken]))
                lines.append([])
                room, text = width, text[taken:]
                taken = max(_fitting(text, room), 1)
            lines[-1].append(Part(part.token, text))
            room -= cells(text)
        if tokens[word[-1].token].endswith("\n"):
            lines.append([])
            room = width
    return lines


def _fitting(text: str, room: int) -> int:
    return sum(1 for end in accumulate(map(cells, text)) if end <= room)


def _words(tokens: Sequence[str]) -> Iterator[Line]:
    """Tokens that belong together: up to the next that begins with a space, or follows one."""
    word: Line = []
    for index, token in enumerate(tokens):
        if word and (token.startswith(_SPACES) or tokens[index - 1].endswith(_SPACES)):
            yield word
            word = []
        word.append(Part(index, visible(token)))
    if word:
        yield word
