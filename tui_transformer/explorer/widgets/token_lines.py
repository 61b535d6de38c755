"""Tokens laid out as running text: lines of so many cells, broken between words where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tui_transformer.text.display import cells, visible

_SPACES = " \t\n"


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
    page = _Page(max(width, 1))
    for word in _words(tokens):
        page.make_room(sum(cells(part.text) for part in word))
        for part in word:
            page.put(part)
        if tokens[word[-1].token].endswith("\n"):
            page.end_line()
    return page.lines


class _Page:
    """Lines that are being filled; `room` is left on the last."""

    def __init__(self, width: int) -> None:
        self.width = self.room = width
        self.lines: list[Line] = [[]]

    def end_line(self) -> None:
        self.lines.append([])
        self.room = self.width

    def make_room(self, size: int) -> None:
        """Begin a line where so many cells fit on one, but not on what is left of this."""
        if self.room < size <= self.width:
            self.end_line()

    def put(self, part: Part) -> None:
        """Put a part, over several lines where it is too long."""
        text, taken = part.text, self._fitting(part.text)
        while taken < len(text):
            self._append(part.token, text[:taken])
            self.end_line()
            text = text[taken:]
            taken = max(self._fitting(text), 1)
        self._append(part.token, text)

    def _append(self, token: int, text: str) -> None:
        self.lines[-1].append(Part(token, text))
        self.room -= cells(text)

    def _fitting(self, text: str) -> int:
        """How many of its characters fit on what is left of the line."""
        ends = accumulate(cells(character) for character in text)
        return sum(1 for end in ends if end <= self.room)


def _words(tokens: Sequence[str]) -> Iterator[Line]:
    """Tokens that belong together: up to the next that begins with a space, or follows one."""
    word: Line = []
    for index, token in enumerate(tokens):
        after_space = bool(word) and tokens[index - 1].endswith(tuple(_SPACES))
        if word and (token.startswith(tuple(_SPACES)) or after_space):
            yield word
            word = []
        word.append(Part(index, visible(token)))
    if word:
        yield word
