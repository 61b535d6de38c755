"""The frame that the terminal shows: of an update, only the cells that changed are written, in few bytes.

Textual writes every line of a widget that is drawn again, with all colours of every segment. Over a slow line that is
felt. Here an update is compared with what was written before, cell by cell, and what is left is written: all text of
the same style after each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from rich.cells import cell_len, get_character_cell_size
from rich.color import Color, ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip

from tui_transformer.records import dataclass

MOVE = 4
"""Bytes that a move to the right takes at least."""


class Frame:
    """The cells that were written to the terminal, line by line."""

    def __init__(self, system: ColorSystem) -> None:
        self._lines: dict[int, list[Cell | None]] = {}
        self._cells = Cells(system)

    def forget(self) -> None:
        """Take nothing for written: the terminal has another size, or somebody else wrote to it."""
        self._lines.clear()

    def write(self, update: LayoutUpdate | ChopsUpdate) -> str:
        """The sequences that make the terminal show an update, after which it counts as written."""
        changes = list[Change]()
        for y, x, strips in _pieces(update):
            changes += self._changed(y, x, *self._cells.of(strips))
        return written(changes, max(map(len, self._lines.values()), default=0))

    def _changed(self, y: int, x: int, cells: list[Cell], is_wide: bool) -> Iterable[Change]:  # noqa: FBT001 - of `of`
        """What of the cells from a column on is not on the terminal, which counts as written now."""
        line = self._lines.setdefault(y, [])
        line += [None] * (x + len(cells) - len(line))
        before = line[x : x + len(cells)]
        if before == cells:
            return ()
        line[x : x + len(cells)] = cells
        if is_wide:  # terminals disagree on how wide such text is: all of it again, every part at its column
            return [(y, at, text, _columns(text), style) for at, (text, style) in enumerate(cells, x) if text]
        changed = compress(range(len(cells)), map(is_not, before, cells))  # there is one object of each cell
        return _together(y, x, cells, changed)


def _together(y: int, x: int, cells: list[Cell], places: Iterable[int]) -> Iterator[Change]:
    """Cells at places of a line that begins in a column, those side by side in one style together.

    So are those between two that did not change but take fewer bytes than a move over them.
    """
    texts, own, start, end = list[str](), OWN, 0, -1
    for at in places:
        text, style = cells[at]
        if at != end or style is not own:
            between = cells[end:at] if style is own and at - end < MOVE else ()
            if between and all(look is own and few.isascii() for few, look in between):
                texts += [few for few, _ in between]
            else:
                if texts:
                    yield y, x + start, "".join(texts), len(texts), own
                texts, own, start = [], style, at
        texts.append(text)
        end = at + 1
    if texts:
        yield y, x + start, "".join(texts), len(texts), own


class Changes(CompositorUpdate):
    """An update of which only that is written which differs from what is on the terminal; "" where nothing does."""

    def __init__(self, sequences: str) -> None:
        self.sequences = sequences

    def render_segments(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        return self.sequences


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Iterable[Strip]]]:
    """Line, first column and strips of everything that an update would write."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            yield y, update.region.x, strips
        return
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < last and end > first:
                yield y, x, (strip.crop(0, min(end, last) - x),)


def strips_of(app: App[Any]) -> list[Strip]:
    """The lines that the screen in front shows."""
    return list(app.screen._compositor.render_strips())


def update_of(strips: Sequence[Strip]) -> LayoutUpdate:
    """An update that shows these lines from the first on."""
    width = max((strip.cell_length for strip in strips), default=0)
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, width, len(strips)))


# Cells: what stands in a column, and the codes of its colours and attributes


UPPER, LOWER, FULL = "▀", "▄", "█"

MARKS_BLANKS = frozenset(("4", "7", "9", "21", "53"))
"""Attributes that are seen where there is no character: lines, and colours that are exchanged."""

MOST_KEPT = 1 << 14
"""Segments whose cells are kept."""

_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "overline": "53",
}


@dataclass(frozen=True, eq=False)
class CellStyle:
    """Colours and attributes of a cell, as codes of the terminal; there is one of each, made by `cell_style`.

    Attributes:
        color: The code of the text's colour; `39` is the terminal's own.
        background: The code of the background, as if it were a text's colour; "" is the terminal's own.
        attributes: Codes such as `1` for bold.
    """

    color: str
    background: str
    attributes: tuple[str, ...]

    @property
    def order(self) -> tuple[tuple[str, ...], str, str]:
        """Where it comes among others, so that little is to be set from one to the next."""
        return self.attributes, self.background, self.color

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the background is seen where there is no character."""
        return not self.attributes or MARKS_BLANKS.isdisjoint(self.attributes)


_STYLES: WeakValueDictionary[tuple[str, str, tuple[str, ...]], CellStyle] = WeakValueDictionary()


def cell_style(color: str = "39", background: str = "", attributes: tuple[str, ...] = ()) -> CellStyle:
    """The one style with these codes."""
    codes = color, background, attributes
    return _STYLES.get(codes) or _STYLES.setdefault(codes, CellStyle(*codes))


OWN = cell_style()

Cell = tuple[str, CellStyle]
"""Text of a column with its style: a character, or text of several columns, whose others hold "" then."""


class Cells:
    """Makes cells of strips."""

    def __init__(self, system: ColorSystem) -> None:
        self._system = system
        self._known: dict[tuple[str, int], tuple[Any, list[Cell], bool]] = {}

    def of(self, strips: Iterable[Strip]) -> tuple[list[Cell], bool]:
        """The cells of strips side by side, and whether any of them takes several columns."""
        cells, is_wide, known = list[Cell](), False, self._known
        for strip in strips:
            for text, style, _ in strip._segments:
                _, made, wide = known.get((text, id(style))) or self._made(text, style)
                cells += made
                is_wide = is_wide or wide
        return cells, is_wide

    def _made(self, text: str, style: Style | None) -> tuple[Any, list[Cell], bool]:
        """The cells of a segment; the style is kept with them, so that no other has its number."""
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        is_wide = not text.isascii() and not all(map(_columns, text))
        ink = _ink(_style_of(style or Style.null(), self._system))
        cells = _wide(text, ink.own) if is_wide else list(map(ink.__getitem__, text))
        made = self._known[text, id(style)] = style, cells, is_wide
        return made


def _columns(text: str) -> int:
    """1 for a character that takes a column; 0 for text of which terminals disagree."""
    return int(len(text) == 1 and (text.isascii() or get_character_cell_size(text) == 1))


def _wide(text: str, own: CellStyle) -> list[Cell]:
    width = cell_len(text)
    return [(text, own), *[("", own)] * (width - 1)] if width else []


class Ink(dict[str, Cell]):
    """The cells of characters in a style."""

    def __init__(self, own: CellStyle) -> None:
        super().__init__()
        self.own = own

    def __missing__(self, character: str) -> Cell:
        text, own = _seen(character, self.own)
        cell = self[character] = (text, own) if own is self.own and text == character else _ink(own)[text]
        return cell


@lru_cache(1 << 12)
def _ink(own: CellStyle) -> Ink:
    return Ink(own)


def _seen(character: str, own: CellStyle) -> Cell:
    """A character; a blank where nothing of it is seen but the background, and of two halves always the same one."""
    if character == " " or (character == UPPER and own.color == own.background):
        return " ", cell_style(background=own.background) if own.is_plain else own
    if character == FULL and own.color != OWN.color and not own.attributes:
        return " ", cell_style(background=own.color)
    can_turn = bool(own.background) and own.color != OWN.color and not own.attributes
    if character == UPPER and can_turn and own.color > own.background:
        return LOWER, cell_style(own.background, own.color)
    return character, own


@lru_cache(1 << 12)
def _style_of(style: Style, system: ColorSystem) -> CellStyle:
    attributes = tuple(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    return cell_style(_code(style.color, system) or OWN.color, _code(style.bgcolor, system), attributes)


def _code(color: Color | None, system: ColorSystem) -> str:
    """The code that sets the text's colour; "" for the terminal's own."""
    if color is None or color.is_default:
        return ""
    return ";".join(color.downgrade(system).get_ansi_codes())


@lru_cache(1 << 12)
def as_background(code: str) -> str:
    """The code that sets the background to a colour whose code for text is given."""
    first, _, rest = code.partition(";")
    return ";".join(filter(None, (str(int(first or OWN.color) + 10), rest)))


# Changes as sequences of the terminal

Change = tuple[int, int, str, int, CellStyle]
"""A line, a column, the text that stands from there on now, the columns it takes (0: nobody knows), and its style."""


class Run(NamedTuple):
    """Text in a line from a column on, in one style; `width` is 0 where terminals disagree on how wide it is."""

    y: int
    x: int
    text: str
    width: int


NOWHERE = -1, -1

LEAST_BACK = 4
"""Columns for which a sequence is no longer than backspaces."""


def written(changes: Iterable[Change], columns: int) -> str:
    """The sequences that show changes, after which the terminal has its own colours again.

    A colour takes up to 19 bytes and a move to another place some 7, so it is moved rather than coloured.
    """
    pen, runs = Pen(columns), by_style(changes)
    for style in sorted(runs, key=attrgetter("order")):
        pen.paint_for(style, runs[style])
        for run in runs[style]:
            pen.put(run)
    return pen.end()


def by_style(changes: Iterable[Change]) -> dict[CellStyle, list[Run]]:
    """The runs of every style, in the order of reading; blanks go with what stands beside them."""
    runs: dict[CellStyle, list[Run]] = {}
    text, style, y, start, end = "", OWN, -1, 0, 0
    for line, at, more, width, own in changes:
        if line == y and at == end and text and width:
            # blanks are seen the same in both
            if own is not style and own.background == style.background and own.is_plain and style.is_plain:
                if text.isspace():
                    style = own  # that of blanks is seen the same
                else:
                    rest = more.lstrip(" ")
                    blanks = len(more) - len(rest)
                    text, end = text + more[:blanks], end + blanks
                    at, more, width = at + blanks, rest, len(rest)
            if own is style or not more:
                text, end = text + more, end + width
                continue
        if text:
            runs.setdefault(style, []).append(Run(y, start, text, end - start))
        text, style, y, start, end = more, own, line, at, at + width
    if text:
        runs.setdefault(style, []).append(Run(y, start, text, end - start))
    return runs


def _along(across: int) -> str:
    """The shortest sequence to another column of the line: back over a few columns, backspaces."""
    if across == 0:
        return ""
    if -LEAST_BACK < across < 0:
        return "\b" * -across
    return f"\x1b[{'' if across == 1 else abs(across)}{'C' if across > 0 else 'D'}"


class Pen:
    """Sequences for the terminal, as few as it takes: it knows where it is, and which colours are set."""

    def __init__(self, columns: int) -> None:
        """Begin anywhere, with the terminal's own colours; behind the last column nobody knows where one is."""
        self._parts: list[str] = []
        self._columns = columns
        self._y, self._x = NOWHERE
        self._style = OWN

    def put(self, run: Run) -> None:
        """Write a text where it stands, in the colours that are set."""
        self._parts += self._way(run.y, run.x), run.text
        end = run.x + run.width
        self._y, self._x = (run.y, end) if run.width and end < self._columns else NOWHERE

    def _way(self, y: int, x: int) -> str:
        """The shortest sequence to a line and a column: from where it is, or from anywhere."""
        down, across, anyway = y - self._y, x - self._x, f"\x1b[{y + 1};{x + 1}H"
        if self._y < 0 or not 0 <= down <= 1:
            return anyway
        way = "\x1b[B" * down + _along(across)
        return way if len(way) < len(anyway) else anyway

    def end(self) -> str:
        """All sequences, after which the terminal has its own colours again."""
        return "".join((*self._parts, "\x1b[0m" * (self._style != OWN)))

    def paint_for(self, style: CellStyle, runs: Iterable[Run]) -> None:
        """Set the style of texts; blanks leave the colour of text as it is."""
        is_blank = style.is_plain and self._style.is_plain and all(run.text.isspace() for run in runs)
        self.paint(cell_style(self._style.color, style.background, style.attributes) if is_blank else style)

    def paint(self, style: CellStyle) -> None:
        """Set colours and attributes, those that are not set already."""
        codes, now = list[str](), self._style
        if style.attributes != now.attributes:
            if now.attributes:
                codes.append("0")
                now = OWN
            codes += style.attributes
        if style.color != now.color:
            codes.append(style.color)
        if style.background != now.background:
            codes.append(as_background(style.background))
        if codes:
            self._parts.append(f"\x1b[{';'.join(codes)}m")
        self._style = style
