"""The sentence and its tokens, the one under the cursor marked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from tui_transformer.text.display import visible
from tui_transformer.text.tokenizer import Encoding, Token


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
        &:nocolor > .sentence--row { text-style: bold underline; }
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
        first, plain = self._first_shown(), self.rich_style
        quiet = self.get_component_rich_style("sentence--quiet")
        start = Text("… " if first else "", quiet)
        lines = Text("\n", plain).join([self._written(first, start, plain), self._chips(first, start, quiet)])
        lines.no_wrap, lines.overflow = True, "crop"
        return lines

    def _written(self, first: int, start: Text, plain: Style) -> Text:
        """The sentence as it was written, as far as the line goes."""
        text, shown = self._encoding.text, start.copy()
        unknown = plain + self.get_component_rich_style("sentence--unknown", partial=True) + Style(underline=True)
        at = self._encoding.tokens[first].start if first else 0
        for place, token in self._from(first):
            style = unknown if token.unknown else plain + self._mark(place)
            shown.append(visible(text[at : token.start]), plain)
            shown.append(visible(text[token.start : token.end]), style)
            at = max(at, token.end)
            if shown.cell_len > self.size.width:
                return shown
        return shown.append(visible(text[at : at + self.size.width]), plain)

    def _chips(self, first: int, start: Text, quiet: Style) -> Text:
        """The tokens with their IDs, as far as the line goes."""
        chip = self.get_component_rich_style("sentence--chip")
        unknown = chip + self.get_component_rich_style("sentence--unknown", partial=True)
        marked = {self._column: "sentence--column", self._row: "sentence--row"}
        shown = start.copy()
        for place, token in self._from(first):
            style = self.get_component_rich_style(marked[place]) if place in marked else chip
            shown.append(f" {_written_token(token)} ", unknown if token.unknown and place not in marked else style)
            shown.append(f"{token.id}  ", quiet)
            if shown.cell_len > self.size.width:
                break
        return shown

    def _from(self, first: int) -> Iterator[tuple[int, Token]]:
        return ((place, self._encoding.tokens[place]) for place in range(first, len(self._encoding.tokens)))

    def _mark(self, place: int) -> Style:
        return Style(bold=place == self._row, underline=place in (self._row, self._column))

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
