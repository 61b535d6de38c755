"""A text that is being written: tokens that were given and tokens that were written, one of them looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.widgets.palette import Surface, palette
from tui_transformer.explorer.widgets.token_lines import Line, token_lines
from tui_transformer.text.display import cells

LIKELY, UNLIKELY = 0.5, 0.1
"""Where there is no colour: from here on bold; below underlined."""

NEXT = "_"
"""What is shown where the next token will be."""


@dataclass(frozen=True)
class Written:
    """A token in the text.

    Attributes:
        text: What it adds to the text.
        share: The probability with which it was chosen; None for a token that was given.
    """

    text: str
    share: float | None = None


class TokenText(Widget):
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

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty text."""
        super().__init__(id=id)
        self._tokens: tuple[Written, ...] = ()
        self._cursor = 0
        self._lines: list[Line] | None = None

    def show(self, tokens: Sequence[Written], cursor: int) -> None:
        """Show a text.

        Args:
            tokens: The tokens in order.
            cursor: The token to mark; one past the last for the place of the next.
        """
        self._tokens, self._cursor, self._lines = tuple(tokens), cursor, None
        self.refresh()

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._lines = None

    def on_click(self, event: Click) -> None:
        """Say which token was clicked."""
        place = event.get_content_offset(self)
        lines = self._laid_out()
        if place is None or self._top + place.y >= len(lines):
            return
        at = 0
        for part in lines[self._top + place.y]:
            at += cells(part.text)
            if place.x < at:
                self.post_message(self.Chosen(part.token))
                return

    def render_line(self, y: int) -> Strip:
        """Draw a line; those are shown among which the cursor is."""
        lines, page = self._laid_out(), self.rich_style
        at = self._top + y
        parts = lines[at] if at < len(lines) else []
        segments = [Segment(part.text, self._style(part.token, page)) for part in parts if part.text]
        return Strip(segments).adjust_cell_length(self.size.width, page)

    def _laid_out(self) -> list[Line]:
        if self._lines is None:
            texts = [token.text for token in self._tokens]
            self._lines = token_lines([*texts, NEXT], self.size.width)
        return self._lines

    @property
    def _top(self) -> int:
        """The first line shown: the cursor is on the screen, with a line after it."""
        lines = self._laid_out()
        last = max((at for at, line in enumerate(lines) if any(part.token == self._cursor for part in line)), default=0)
        return max(min(last - self.size.height + 2, len(lines) - self.size.height), 0)

    def _style(self, token: int, page: Style) -> Style:
        if token == self._cursor:
            return self.get_component_rich_style("token-text--cursor")
        if token >= len(self._tokens):
            return self.get_component_rich_style("token-text--quiet")
        share = self._tokens[token].share
        return self.get_component_rich_style("token-text--quiet") if share is None else self._shade(share, page)

    def _shade(self, share: float, page: Style) -> Style:
        colors = palette("sequential", Surface.of(self.app), page)
        if colors.has_color:
            return colors.styles[round(min(share, 1.0) * (len(colors.styles) - 1))]
        return page + Style(bold=share >= LIKELY, underline=share < UNLIKELY)
