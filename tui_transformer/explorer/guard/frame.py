"""The frame that the terminal shows: of an update, only the cells that changed are written, in few bytes.

Textual writes every line of a widget that is drawn again, with all colours of every segment. Over a slow line that is
felt. Here an update is compared with what was written before, all cells at once, and what is left is written: all text
of the same style after each other.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate

from tui_transformer.explorer.guard.cell_style import OWN, CellStyle, painted, style_of

MOVE = 4
"""Bytes that a move to the right takes at least."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]
"""Cells, each a number (see `Cells`), or their places: through the first line, then through the next."""
Truths = np.ndarray[Any, np.dtype[np.bool_]]


class Frame:
    """The cells that were written to the terminal, line by line."""

    def __init__(self, system: ColorSystem) -> None:
        self._cells = Cells(system)
        self._shown: Numbers = np.full((0, MOVE), UNKNOWN)

    def forget(self) -> None:
        """Take nothing for written: the terminal has another size, or somebody else wrote to it."""
        self._shown = np.full((0, MOVE), UNKNOWN)

    def write(self, update: LayoutUpdate | ChopsUpdate) -> str:
        """The sequences that make the terminal show an update, after which it counts as written."""
        if self._cells.are_full:
            self._cells = Cells(self._cells.system)
            self._shown[:] = UNKNOWN
        pieces = self._made(update)
        self._make_room(pieces)
        before, after = self._shown, self._shown.copy()
        for y, x, cells in pieces:
            after[y, x : x + len(cells)] = cells
        changed, is_wide = before != after, (after & TEXT >= REST) & (after != UNKNOWN)
        for y, x, cells in pieces if is_wide.any() else ():
            place = y, slice(x, x + len(cells))
            if is_wide[place].any():  # terminals disagree on how wide such text is: all of it again
                changed[place] = changed[place].any()
        self._shown = after
        return self._written(after.ravel(), changed.ravel())

    def _made(self, update: LayoutUpdate | ChopsUpdate) -> list[tuple[int, int, Numbers]]:
        """Line, first column and cells of everything that an update would write; all are made together."""
        pieces = list(_pieces(update))
        cells, ends = self._cells.of(chain.from_iterable([segments for _, _, segments in pieces]))
        edges = [ends[count] for count in accumulate([len(segments) for _, _, segments in pieces], initial=0)]
        return [(y, x, cells[slice(*part)]) for (y, x, _), part in zip(pieces, pairwise(edges), strict=True)]

    def _make_room(self, pieces: list[tuple[int, int, Numbers]]) -> None:
        """Have a place for every cell, and so many behind each line that none seems near to one of the next."""
        height, width = self._shown.shape
        lines = max((y + 1 for y, _, _ in pieces), default=0)
        columns = max((x + len(cells) + MOVE for _, x, cells in pieces), default=0)
        if height < lines or width < columns:
            shown = np.full((max(height, lines), max(width, columns)), UNKNOWN)
            shown[:height, :width] = self._shown
            self._shown = shown

    def _written(self, cells: Numbers, changed: Truths) -> str:
        """The sequences for cells that changed, after which the terminal has its own colours again.

        A colour takes up to 19 bytes and a move to another place some 7, so it is moved rather than coloured.
        """
        changed &= (cells & TEXT) != REST
        places = _with_cheap(cells, changed.nonzero()[0])
        if not len(places):
            return ""
        looks, texts = _seen_beside(cells, places), cells[places] & TEXT
        starts, ends = self._in_order(places, looks, texts > REST)
        ways = self._ways(places[starts], np.where(texts[starts] > REST, cells.size, ends - starts))
        words, parts, pen = self._words(texts, starts.tolist(), ends.tolist()), list[str](), OWN
        for first, last in pairwise([*_differ(looks[starts], 0).nonzero()[0].tolist(), len(starts)]):
            style = self._cells.styles[looks[starts[first]]]
            if style.is_plain and all(map(str.isspace, words[first:last])):
                style = style._replace(color=pen.color)  # it is not seen
            parts.append(painted(pen, style))
            parts += chain.from_iterable(zip(ways[first:last], words[first:last], strict=True))
            pen = style
        return "".join((*parts, "\x1b[0m" * (pen != OWN)))

    def _in_order(self, places: Numbers, looks: Numbers, is_wide: Truths) -> tuple[Numbers, Numbers]:
        """Where the texts begin and end that are side by side in one look: those of a look after each other."""
        begins = _differ(places, 1) | _differ(looks, 0) | is_wide
        begins[1:] |= is_wide[:-1]
        starts = begins.nonzero()[0]
        numbers, styles = looks[starts].tolist(), self._cells.styles
        ranks = {look: rank for rank, look in enumerate(sorted(set(numbers), key=styles.__getitem__))}
        order = np.argsort([ranks[look] for look in numbers], kind="stable")
        return starts[order], np.append(starts[1:], len(looks))[order]

    def _words(self, texts: Numbers, starts: list[int], ends: list[int]) -> list[str]:
        """The texts that begin and end there."""
        letters = texts.astype("<u4").tobytes().decode("utf-32-le", "replace")
        words = [letters[start:end] for start, end in zip(starts, ends, strict=True)]
        if (texts > REST).any():
            numbers = texts[starts].tolist()
            words = [self._cells.wide[n - REST] if n > REST else word for word, n in zip(words, numbers, strict=True)]
        return words

    def _ways(self, places: Numbers, widths: Numbers) -> list[str]:
        """The shortest sequence to each place, from behind the text before it, if that is in a column."""
        width = self._shown.shape[1]
        lines, columns = np.divmod(places, width)
        behind = columns + widths
        down, across = lines.copy(), columns.copy()
        down[1:] -= np.where(behind < width - MOVE, lines, NOWHERE)[:-1]
        across[1:] -= behind[:-1]
        down[0] = TOO_FAR
        near = zip(map(_near, down.tolist(), across.tolist()), lines.tolist(), columns.tolist(), strict=True)
        return [way if len(way) < LEAST_ANYWAY else min(f"\x1b[{y + 1};{x + 1}H", way, key=len) for way, y, x in near]


def _differ(numbers: Numbers, step: int) -> Truths:
    """Where a number is not the one before it and a step more."""
    begins = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:] - numbers[:-1], step, begins[1:])
    return begins


def _with_cheap(cells: Numbers, places: Numbers) -> Numbers:
    """Places, and those between two of them that did not change but take fewer bytes than a move over them."""
    gaps, looks = np.diff(places), cells[places] >> LOOK
    near = ((gaps > 1) & (gaps <= MOVE) & (looks[1:] == looks[:-1])).nonzero()[0]
    starts, gaps, looks = places[near], gaps[near], looks[near]
    cheap, between = np.ones(len(near), bool), []
    for step in range(1, MOVE):
        cell, is_between = cells[starts + step], gaps > step
        cheap &= ~is_between | ((cell >> LOOK == looks) & (cell & TEXT < BEYOND_ASCII))
        between.append((starts + step, is_between))
    return np.sort(np.concatenate([places, *[each[cheap & is_between] for each, is_between in between]]))


def _seen_beside(cells: Numbers, places: Numbers) -> Numbers:
    """The looks of cells at places; that of a blank is the one of what stands beside it, if it is seen the same."""
    texts, order = cells[places] & TEXT, np.arange(len(places))
    looks, grounds = cells[places] >> LOOK & TEXT, cells[places] >> GROUND
    begins = _differ(places, 1) | _differ(grounds, 0)
    blank, part = (texts == BLANK) & (grounds > 0), np.cumsum(begins)
    left = np.maximum.accumulate(np.where(blank, -1, order))
    right = np.minimum.accumulate(np.where(blank, len(places), order)[::-1])[::-1]
    for beside in (right, left):
        beside = np.clip(beside, 0, len(places) - 1)
        looks = np.where(blank & (part[beside] == part), looks[beside], looks)
    return looks


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, list[Segment]]]:
    """Line, first column and segments of everything that an update would write."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            yield y, update.region.x, [segment for strip in strips for segment in strip]
        return
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < last and end > first:
                yield y, x, (strip if end <= last else strip.crop(0, last - x))._segments


class Changes(CompositorUpdate):
    """An update of which only that is written which differs from what is on the terminal; "" where nothing does."""

    def __init__(self, sequences: str) -> None:
        self.sequences = sequences

    def render_segments(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        return self.sequences


# Cells: what stands in a column, and the codes of its colours and attributes


UPPER, LOWER, FULL = "▀", "▄", "█"

MOST_KEPT = 1 << 14
"""Segments whose cells are kept."""

MOST_LOOKS = 1 << 16
"""Styles, and texts of several columns, that have numbers."""

TEXT = (1 << 21) - 1
"""The bits of a cell's text: a character, or from `REST` on what is no character of Unicode."""

BLANK, BEYOND_ASCII, REST = ord(" "), 0x80, 0x110000
"""Some such texts; `REST` is in the columns behind the first of a text that takes several, which comes after it."""

LOOK, GROUND = 21, 42
"""The bits from which on a cell has the number of its style, and that of its background where only this is seen of a
blank; 0 where more is."""

UNKNOWN = -1
"""No cell: nobody knows what the terminal shows."""


class _ByCharacter(dict[str, int]):
    """The cells of one style, each made where it is first asked for."""

    def __init__(self, cell_of: Callable[[str], int]) -> None:
        super().__init__()
        self._cell_of = cell_of

    def __missing__(self, character: str) -> int:
        cell = self[character] = self._cell_of(character)
        return cell


class Cells:
    """Makes cells of strips: numbers of 64 bits, so that thousands are compared at once.

    Attributes:
        styles: The styles that have numbers, by those.
        wide: The texts of several columns that have numbers, by what theirs are more than `REST`.
    """

    def __init__(self, system: ColorSystem) -> None:
        self.system = system
        self.styles, self.wide = list[CellStyle](), [""]
        self._grounds, self._wide_numbers = dict[str, int](), dict[str, int]()
        self._looks: dict[CellStyle, int] = {}
        self._by_style: dict[CellStyle, _ByCharacter] = {}
        self._known: dict[tuple[str, int], tuple[bytes, object]] = {}

    @property
    def are_full(self) -> bool:
        """Whether there are so many that all should be forgotten."""
        return max(len(self.styles), len(self.wide)) >= MOST_LOOKS

    def of(self, segments: Iterable[Segment]) -> tuple[Numbers, list[int]]:
        """The cells of segments side by side; where the first begins and each ends among them."""
        known = self._known
        kept = [known.get((text, id(style))) or self._made(text, style) for text, style, _ in segments]
        cells = [cells for cells, _ in kept]
        return np.frombuffer(b"".join(cells), np.int64), [0, *accumulate([len(each) // 8 for each in cells])]

    def _made(self, text: str, style: Style | None) -> tuple[bytes, object]:
        """The cells of a segment; the style is kept with them, so that no other has its number."""
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
            self._by_style.clear()
        own = style_of(style or Style.null(), self.system)
        if text.isascii() or all(get_character_cell_size(each) == 1 for each in text):
            if (by_character := self._by_style.get(own)) is None:
                by_character = self._by_style[own] = _ByCharacter(partial(self._cell, own))
            cells = array("q", map(by_character.__getitem__, text))
        else:
            cells = array("q", self._wide(text, own))
        made = self._known[text, id(style)] = cells.tobytes(), style
        return made

    def _look(self, style: CellStyle) -> int:
        """The bits of a style."""
        if style not in self._looks:
            ground = self._grounds.setdefault(style.background, len(self._grounds) + 1) if style.is_plain else 0
            self._looks[style] = len(self.styles) << LOOK | ground << GROUND
            self.styles.append(style)
        return self._looks[style]

    def _cell(self, style: CellStyle, character: str) -> int:
        text, seen = _seen(character, style)
        return self._look(seen) | ord(text)

    def _wide(self, text: str, style: CellStyle) -> list[int]:
        if not (width := cell_len(text)):
            return []
        if text not in self._wide_numbers:
            self._wide_numbers[text] = len(self.wide)
            self.wide.append(text)
        number = self._look(style) | REST
        return [number + self._wide_numbers[text], *[number] * (width - 1)]


def _seen(character: str, own: CellStyle) -> tuple[str, CellStyle]:
    """A character; a blank where nothing of it is seen but the background, and of two halves always the same one."""
    if character == " " or (character == UPPER and own.color == own.background):
        return " ", CellStyle(background=own.background) if own.is_plain else own
    if character == FULL and own.color != OWN.color and not own.attributes:
        return " ", CellStyle(background=own.color)
    can_turn = bool(own.background) and own.color != OWN.color and not own.attributes
    if character == UPPER and can_turn and own.color > own.background:
        return LOWER, CellStyle((), own.color, own.background)
    return character, own


# Sequences of the terminal


TOO_FAR = 2
"""Lines down to which nothing is shorter than the way from anywhere."""

NOWHERE = -TOO_FAR
"""The line of which all are too far."""

LEAST_ANYWAY = 6
"""Bytes that the way from anywhere takes at least."""

LEAST_BACK = 4
"""Columns for which a sequence is no longer than backspaces."""


@lru_cache(1 << 12)
def _near(down: int, across: int) -> str:
    """The shortest sequence to another place in the line, or in the next one; of all others, one that is too long."""
    if not 0 <= down < TOO_FAR:
        return " " * 99
    if -LEAST_BACK < across <= 0:
        return "\x1b[B" * down + "\b" * -across
    return "\x1b[B" * down + f"\x1b[{'' if across == 1 else abs(across)}{'C' if across > 0 else 'D'}"
