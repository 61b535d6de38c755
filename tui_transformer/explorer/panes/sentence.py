"""The sentence and its tokens, the one under the cursor marked."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from tui_transformer.text.display import visible
from tui_transformer.text.tokenizer import Encoding, Token

MOST_SHOWN = 400
"""Tokens that are drawn at most; a terminal line holds fewer."""


class SentencePane(Widget, can_focus=True):
    """Two lines: the sentence as it was written, and its tokens with their IDs."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sentence--quiet",
        "sentence--chip",
        "sentence--row",
        "sentence--column",
        "sentence--unknown",
    }
    DEFAULT_CSS = """
    SentencePane {
        height: 2;
        & > .sentence--quiet { color: $foreground 55%; }
        & > .sentence--chip { background: $primary 40%; color: $foreground; }
        & > .sentence--row { background: $accent; color: $background; text-style: bold; }
        & > .sentence--column { background: $secondary; color: $background; text-style: bold; }
        & > .sentence--unknown { color: $error; text-style: bold; }
        &:nocolor > .sentence--row { text-style: bold reverse; }
        &:nocolor > .sentence--column { text-style: underline; }
        &:ansi > .sentence--row { text-style: bold reverse; }
        &:ansi > .sentence--column { text-style: underline; }
    }
    """

    class Opened(Message):
        """The user wants to write another sentence."""

    def __init__(self, *, id: str | None = None) -> None:
        """Make a pane without a sentence."""
        super().__init__(id=id)
        self._encoding = Encoding("", ())
        self._row: int | None = None
        self._column: int | None = None

    def show(self, encoding: Encoding, row: int | None, column: int | None) -> None:
        """Show a sentence; `row` and `column` are the tokens that the cursor's row and column stand for."""
        self._encoding, self._row, self._column = encoding, row, column
        self.refresh()

    def on_click(self, _: Click) -> None:
        """Open the sentence for editing."""
        self.post_message(self.Opened())

    def render(self) -> Text:
        """The two lines, beginning so that the current token is in view."""
        if not self._encoding.tokens:
            return Text("This model reads no sentence: its matrices are given.", self.rich_style, no_wrap=True)
        first = self._first_shown()
        lines = Text("\n", no_wrap=True, overflow="crop", end="").join([self._written(first), self._chips(first)])
        lines.no_wrap, lines.overflow = True, "crop"
        return lines

    def _written(self, first: int) -> Text:
        quiet, text = self.get_component_rich_style("sentence--quiet"), self._encoding.text
        shown = Text("… " if first else "", quiet)
        at = self._encoding.tokens[first].start if first else 0
        for place in range(first, min(first + MOST_SHOWN, len(self._encoding.tokens))):
            token = self._encoding.tokens[place]
            shown.append(visible(text[at : token.start]), self.rich_style)
            shown.append(visible(text[token.start : token.end]), self.rich_style + self._mark(place, token))
            at = max(at, token.end)
        return shown.append(visible(text[at : at + MOST_SHOWN]), self.rich_style)

    def _mark(self, place: int, token: Token) -> Style:
        if token.unknown:
            return self.get_component_rich_style("sentence--unknown", partial=True) + Style(underline=True)
        if place == self._row:
            return Style(bold=True, underline=True)
        return Style(underline=place == self._column)

    def _chips(self, first: int) -> Text:
        quiet = self.get_component_rich_style("sentence--quiet")
        shown = Text("… " if first else "", quiet)
        for place in range(first, min(first + MOST_SHOWN, len(self._encoding.tokens))):
            token = self._encoding.tokens[place]
            shown.append(f" {_written_token(token)} ", self._chip_style(place, token))
            shown.append(f"{token.id}  ", quiet)
        return shown

    def _chip_style(self, place: int, token: Token) -> Style:
        if place == self._row:
            return self.get_component_rich_style("sentence--row")
        if place == self._column:
            return self.get_component_rich_style("sentence--column")
        chip = self.get_component_rich_style("sentence--chip")
        return chip + self.get_component_rich_style("sentence--unknown", partial=True) if token.unknown else chip

    def _first_shown(self) -> int:
        """The first token to draw, so that the current one fits in the width."""
        current = self._row if self._row is not None else self._column or 0
        first, room = min(current, max(len(self._encoding.tokens) - 1, 0)), self.size.width - 6
        while first > 0:
            token = self._encoding.tokens[first]
            room -= cell_len(_written_token(token)) + len(str(token.id)) + 4
            if room < 0:
                return min(first + 1, current)
            first -= 1
        return 0


def _written_token(token: Token) -> str:
    return f"{visible(token.text)}?" if token.unknown else visible(token.text)
