"""The whole as a widget: bands with borders, small pictures in half blocks, the current step framed."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Offset, Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.guard.failures import STYLE, careful, carefully
from tui_transformer.explorer.shell.actions.main import WHOLE
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.widgets.palette import Surface, small_picture
from tui_transformer.records import dataclass
from tui_transformer.session.overlay import FOLLOWS, WRONG
from tui_transformer.session.scene import Scene
from tui_transformer.session.whole.layout import Placement
from tui_transformer.session.whole.scene import Line, Picture, WholeScene
from tui_transformer.text.display import fit_label
from tui_transformer.views.numbers import share_bar
from tui_transformer.views.view import Scale, Values

Piece = tuple[int, list[Segment]]
"""Segments from a column on."""

COLUMNS = (
    "a column is the entry of largest magnitude of up to {}",
    "a column is the largest of up to {}",
    "largest of up to {}",
    "largest of {}",
)
"""Meaning of a column of a picture, as there is room to say it."""

MARKS = {"tall": ("▐", "█"), "upper": ("▝", "▜"), "lower": ("▗", "▟")}
"""Beside the current token's row, a line or half a line high: alone, and where the bar of the frame is too."""

INKS = ("plain", "quiet", "accent", "border", "wrong", "focused")


class Cells(list[Segment]):
    """Segments of one column each: how long they are together need not be counted at every key."""


@careful
class WholePane(Widget, can_focus=True):
    """Bands of small pictures."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(WHOLE)
    mixed_colors = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"whole--{name}" for name in INKS}
    DEFAULT_CSS = """
    WholePane {
        background: $background;
        color: $foreground;
        & > .whole--plain { color: $foreground; }
        & > .whole--quiet { color: $foreground 60%; }
        & > .whole--accent { color: $accent; text-style: bold; }
        & > .whole--wrong { color: $error; text-style: bold; }
        & > .whole--border { color: $border-blurred; }
        & > .whole--focused { color: $primary; text-style: bold; }
    }
    """

    @dataclass
    class Visited(Message):
        """The user clicked on a box: its step, and the head and row of it where a picture was hit."""

        step: str
        head: int | None = None
        row: int | None = None

    class Chosen(Message):
        """The user looks inside the current box."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._scene = WholeScene()
        self._clicked: WholePane.Visited | None = None
        self._page, self._ink = Style(), dict[str, Style]()
        self._tiles_drawn: dict[tuple[int, bool], tuple[Values, list[Cells]]] = {}
        self._drawn_for: object = None
        self._ladder_of: object = None
        self._ladder: list[tuple[int, int, list[Segment]]] = []
        self._pieces: list[list[Piece] | None] = []
        self._strips: list[Strip] = []

    def show_scene(self, scene: Scene) -> None:
        """Show bands, and the ladder beside them; of what is not there yet the title alone."""
        if scene.whole is not None:
            self._scene = scene.whole
            self._redraw()

    @property
    def marked(self) -> Region | None:
        """The current token's row of the current box, in the picture of the current head."""
        for placement, pictures in self._scene.bands:
            for picture in pictures:
                if picture.step == self._scene.stop:
                    tiles = picture.tiles.values[: self._place_of(picture)]
                    row = (picture.marked or 0) // (1 if placement.tall else 2) + 1 if picture.tiles.values else 0
                    across = placement.left + 2 + picture.placed.left + sum(tile.shape[1] + 1 for tile in tiles)
                    return Region(across, placement.top + 1 + row, 1, 1)
        return None

    def _place_of(self, picture: Picture) -> int:
        """The place of the current head among those that are shown."""
        return min(max(self._scene.head - picture.heads.start, 0), len(picture.tiles.values) - 1)

    def on_click(self, event: events.Click) -> None:
        """Go to what is clicked; a double click looks inside it, also where something else came there by it."""
        if event.chain != 2:
            place = event.get_content_offset(self)
            self._clicked = self._visited(place) if place is not None else None
            if self._clicked is not None:
                self.post_message(self._clicked)
        elif self._clicked is not None:
            self.post_message(self.Chosen())

    def _visited(self, at: Offset) -> Visited | None:
        for placement, pictures in self._scene.bands:
            for picture in pictures:
                x, y = at.x - placement.left - 2 - picture.placed.left, at.y - placement.top - 1
                if 0 <= x < picture.placed.width and 0 <= y < placement.lines - 2:
                    return self.Visited(picture.step, *_hit(picture, x, y - 1, tall=placement.tall))
        lines = self._scene.ladder.lines(self.size.height - 2)
        if at.x < self.size.width - self._scene.ladder.columns or not 0 < at.y <= len(lines):
            return None
        rung = lines[at.y - 1][1]
        return None if rung is None else self.Visited(rung.stream)

    def restyled(self) -> None:
        """Follow a change of theme, once the styles of the parts are those of the theme as well."""
        self._tiles_drawn.clear()
        self.call_later(carefully, self, self._redraw_anew, STYLE)

    def _redraw_anew(self) -> None:
        self._ink.clear()
        self._ladder_of = None
        self._redraw()

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _redraw(self) -> None:
        """Draw all lines, and let those that changed be shown."""
        if not self.is_mounted:
            return
        if not self._ink:  # costly to ask for
            self._ink = {name: self.get_component_rich_style(f"whole--{name}") for name in INKS}
            self._page = self.rich_style
        width, height = self.size
        lines: list[list[Piece]] = [[] for _ in range(height)]
        for placement, pictures in self._scene.bands:
            self._draw_band(lines, placement, pictures)
        if (self._scene.ladder, self.size) != self._ladder_of:
            self._ladder_of, self._ladder = (self._scene.ladder, self.size), self._draw_ladder(height)
        for y, left, piece in self._ladder:
            lines[y].append((left, piece))
        if (width, height, self._page) != self._drawn_for:
            self._drawn_for, self._pieces = (width, height, self._page), [None] * height
            self._strips = [Strip.blank(width, self._page)] * height
            self.refresh()
        changed = [y for y, pieces in enumerate(lines) if pieces != self._pieces[y]]
        for y in changed:
            segments, at = list[Segment](), 0
            for left, piece in sorted(lines[y], key=itemgetter(0)):
                if left > at:
                    segments.append(Segment(" " * (left - at), self._page))
                segments += piece
                at = max(left, at) + (len(piece) if isinstance(piece, Cells) else Segment.get_line_length(piece))
            self._strips[y] = Strip(segments, at).adjust_cell_length(width, self._page)
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))
        self._pieces = list(lines)

    on_resize = on_focus = on_blur = _redraw

    # The ladder

    def _draw_ladder(self, height: int) -> list[tuple[int, int, list[Segment]]]:
        """Lines and columns of the ladder's parts, which are the same at most steps."""
        columns, ink = self._scene.ladder.columns, self._ink["border"]
        if not columns or height < 3:
            return []
        left, rungs = self.size.width - columns, self._scene.ladder.lines(height - 2)
        parts = [(0, left, _rule("╭─", "Layers", "╮", columns, ink, self._ink["plain"]))]
        for y, (pieces, _) in enumerate(rungs, 1):
            texts = [Segment(text, self._ink[name]) for text, name in pieces]
            parts += [(y, left, [Segment("│ ", ink), *texts]), (y, left + columns - 2, [Segment(" │", ink)])]
        legend = self._scene.ladder.legend(len(rungs))
        return [*parts, (len(rungs) + 1, left, _rule("╰", legend, "─╯", columns, ink, self._ink["quiet"]))]

    # Bands

    def _draw_band(self, lines: list[list[Piece]], placement: Placement, pictures: tuple[Picture, ...]) -> None:
        top, bottom = placement.top, placement.top + placement.lines - 1
        if bottom >= len(lines):
            return
        stop = self._scene.stop
        here = stop in placement.band.steps or any(picture.step == stop for picture in pictures)
        frame = "border" if not here else "focused" if self.has_focus else "accent"
        ink, words = self._ink[frame], self._ink["accent" if here else "plain"]
        lines[top].append((placement.left, _rule("╭─", placement.title, "╮", placement.width, ink, words)))
        legend = _legend(pictures, placement.width - 5)  # which the border has
        lines[bottom].append((placement.left, _rule("╰", legend, "─╯", placement.width, ink, self._ink["quiet"])))
        for pieces in lines[top + 1 : bottom]:
            pieces.append((placement.left, [Segment("│", ink)]))
            pieces.append((placement.left + placement.width - 1, [Segment("│", ink)]))
        for picture in pictures:
            self._draw_box(lines[top + 1 : bottom], placement, picture)

    def _draw_box(self, lines: list[list[Piece]], placement: Placement, picture: Picture) -> None:
        placed, current, marks = picture.placed, picture.step == self._scene.stop, self._scene.marks
        left = placement.left + 2 + placed.left
        mark = ""
        if marks and placed.box is not None:
            wrong = {marks.get(step) for step in placed.box.steps}
            mark = WRONG if WRONG in wrong else FOLLOWS if FOLLOWS in wrong else ""
        title = Segment(fit_label(picture.title, placed.width - len(mark)), self._ink["accent" if current else "quiet"])
        lines[0].append((left, [Segment(mark, self._ink["wrong"]), title] if mark else [title]))
        below = lines[1:]
        if picture.tiles.values:
            height = self._draw_tiles(below, left, picture, tall=placement.tall, framed=current)
        else:
            words = [[Segment(fit_label("…", placed.width), self._ink["quiet"])]] * picture.missing
            words = words or [self._word(line, placed.width) for line in picture.lines]
            height = len(words)
            for pieces, word in zip(below, words, strict=False):
                pieces.append((left, word))
        if picture.sign and placed.left and height:
            below[(height - 1) // 2].append((left - 2, [Segment(picture.sign, self._ink["plain"])]))

    def _draw_tiles(self, lines: list[list[Piece]], left: int, picture: Picture, *, tall: bool, framed: bool) -> int:
        """Pictures side by side, under those of several heads their numbers; how many lines that takes.

        The current one has bars on both sides, and every picture a mark beside the current token's row.
        """
        tiles, here, accent = picture.tiles.values, self._place_of(picture), self._ink["accent"]
        drawn = [self._tile(tile, picture.tiles.scale, tall=tall) for tile in tiles]
        height, several = len(drawn[0]), len(tiles) > 1
        marked = None if picture.marked is None else picture.marked // (1 if tall else 2)
        sides = MARKS["tall" if tall else "lower" if (picture.marked or 0) % 2 else "upper"]
        first = framed and here == 0
        for y, pieces in enumerate(lines[:height]):
            across = left
            for place, cells in enumerate(drawn):
                if framed and place in (here, here + 1) and place:
                    pieces.append((across - 1, [Segment("▐" if place == here else "▌", accent)]))
                pieces.append((across, cells[y]))
                across += tiles[place].shape[1] + 1
            if mark := sides[first] if y == marked else "▐" * first:
                pieces.append((left - 1, [Segment(mark, accent)]))
            if framed and here == len(tiles) - 1:
                pieces.append((across - 1, [Segment("▌", accent)]))
        for pieces in lines[height : height + several]:
            across = left
            for head, tile in zip(picture.heads, tiles, strict=True):
                width, named = tile.shape[1], f"head {head}"
                style = self._ink["accent" if head == self._scene.head else "quiet"]
                text = fit_label(named if width >= len(named) else str(head), width, "center")
                pieces.append((across, [Segment(text, style)]))
                across += width + 1
        return height + several

    def _word(self, line: Line, width: int) -> list[Segment]:
        style, quiet = self._ink["accent" if line.marked else "plain"], self._ink["quiet"]
        if line.first:
            value = Segment(f"{fit_label(line.value, 6, 'right')}  ", quiet)
            return [value, Segment(fit_label(line.text, max(width - 8, 1)), style)]
        if line.share is None:
            room = width - cell_len(line.value) - 1
            return [Segment(fit_label(line.text, room), style), Segment(f" {line.value}", quiet)]
        words = max(min(12, width // 2), 4)
        bar = share_bar(line.share, max(width - words - 9, 0))
        return [
            Segment(fit_label(line.text, words), style),
            Segment(f" {bar}", self._ink["accent" if line.marked else "quiet"]),
            Segment(fit_label(line.value, 8, "right"), style),
        ]

    def _tile(self, values: Values, scale: Scale, *, tall: bool) -> list[Cells]:
        """Two rows a line; a row a line in the first band, whose rows stand beside the tokens."""
        if (known := self._tiles_drawn.get((id(values), tall))) is not None:
            return known[1]
        cells = np.repeat(values, 2, axis=0) if tall else values
        drawn = [Cells(line) for line in small_picture(cells, scale, Surface.of(self.app), self._page)]
        if len(self._tiles_drawn) >= 512:
            self._tiles_drawn.clear()
        self._tiles_drawn[id(values), tall] = values, drawn  # kept with it, so that no other has its number
        return drawn


def _hit(picture: Picture, x: int, y: int, *, tall: bool) -> tuple[int | None, int | None]:
    if y < 0 or not picture.tiles.values:
        return None, (picture.rows[y] if 0 <= y < len(picture.rows) and picture.rows else None)
    row = y if tall else 2 * y
    head = x // (picture.tiles.values[0].shape[1] + 1) if len(picture.heads) > 1 else 0
    inside = head < len(picture.heads)
    return (picture.heads[head] if inside else None), (picture.rows[row] if row < len(picture.rows) else None)


def _rule(left: str, text: str, right: str, width: int, ink: Style, words: Style) -> list[Segment]:
    """A border with a text in it: after the left corner above, before the right one below."""
    room = width - len(left) - len(right)
    label = fit_label(f" {text} ", min(cell_len(text) + 2, room)) if text else ""
    rule = Segment("─" * (room - cell_len(label)), ink)
    inside = [Segment(label, words), rule] if len(left) > len(right) else [rule, Segment(label, words)]
    return [Segment(left, ink), *inside, Segment(right, ink)]


def _legend(pictures: Iterable[Picture], width: int) -> str:
    """Which rows are shown where that is not all, and what a column stands for where pictures have fewer of them."""
    shown = [each for each in pictures if each.tiles.values]
    together = max((each.tiles.together for each in shown), default=1)
    part = [each for each in shown if len(each.rows) != each.of]
    rows = sorted({f"rows {each.rows.start}–{each.rows.stop - 1} of {each.of}" for each in part})
    columns = [words.format(together) for words in COLUMNS] if together > 1 else [""]
    short = tuple(each.removeprefix("rows ") for each in rows)
    texts = [" · ".join((*said, *filter(None, (text,)))) for said in (rows, short) for text in columns]
    alone = columns[-1] or " · ".join(short)  # the bands beside it say which rows there are
    return next((text for text in texts if cell_len(text) <= width), alone)
