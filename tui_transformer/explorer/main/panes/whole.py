"""The whole as a widget: bands with borders, small pictures in half blocks, the current step framed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from tui_transformer.explorer.widgets.matrix_drawing import small_picture
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.session.overlay import FOLLOWS, WRONG
from tui_transformer.session.scene import Scene
from tui_transformer.session.whole.layout import Placed, Placement
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

AROUND_LEGEND = 5
"""Columns of the border that a legend leaves to it."""

MOST_KEPT = 512
"""Pictures whose segments are kept."""

INKS = ("plain", "quiet", "accent", "border", "wrong")


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
        self._page = Style()
        self._tiles_drawn: dict[tuple[int, bool], tuple[Values, list[list[Segment]]]] = {}
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
            for placed, picture in _drawn_boxes(placement, pictures):
                if picture.step == self._scene.stop:
                    tiles = picture.tiles.values[: self._place_of(picture)]
                    row = (picture.marked or 0) // (1 if placement.tall else 2) + 1 if picture.tiles.values else 0
                    across = placement.left + 2 + placed.left + sum(tile.shape[1] + 1 for tile in tiles)
                    return Region(across, placement.top + 1 + row, 1, 1)
        return None

    def on_click(self, event: events.Click) -> None:
        """Go to the box that is clicked; a double click looks inside."""
        place = event.get_content_offset(self)
        visited = self._visited(place) if place is not None else None
        if visited is not None:
            self.post_message(visited)
            if event.chain == 2:
                self.post_message(self.Chosen())

    def _visited(self, at: Offset) -> Visited | None:
        for placement, pictures in self._scene.bands:
            for placed, picture in _drawn_boxes(placement, pictures):
                x, y = at.x - placement.left - 2 - placed.left, at.y - placement.top - 1
                if 0 <= x < placed.width and 0 <= y < placement.lines - 2:
                    return self.Visited(picture.step, *_hit(picture, x, y - 1, tall=placement.tall))
        lines = self._scene.ladder.lines(self.size.height - 2)
        if at.x < self.size.width - self._scene.ladder.columns or not 0 < at.y <= len(lines):
            return None
        rung = lines[at.y - 1][1]
        return None if rung is None else self.Visited(rung.stream)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._redraw()

    def restyled(self) -> None:
        """Follow a change of theme, once the styles of the parts are those of the theme as well."""
        self._tiles_drawn.clear()
        self.call_later(carefully, self, self._redraw, STYLE)

    def render_line(self, y: int) -> Strip:
        """One line."""
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _redraw(self) -> None:
        """Draw all lines, and let those that changed be shown."""
        if not self.is_mounted:
            return
        before, self._strips = self._strips, self._drawn()
        changed = [y for y, strip in enumerate(self._strips) if y >= len(before) or before[y] != strip]
        if len(before) != len(self._strips):
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _drawn(self) -> list[Strip]:
        self._ink = {name: self.get_component_rich_style(f"whole--{name}") for name in INKS}
        self._page = self.rich_style  # costly to ask for
        lines: list[list[Piece]] = [[] for _ in range(self.size.height)]
        for placement, pictures in self._scene.bands:
            self._draw_band(lines, placement, pictures)
        self._draw_ladder(lines)
        return [self._strip(pieces) for pieces in lines]

    def _strip(self, pieces: list[Piece]) -> Strip:
        """Pieces side by side, blank between them."""
        segments, at = list[Segment](), 0
        for left, piece in sorted(pieces, key=itemgetter(0)):
            if left > at:
                segments.append(Segment(" " * (left - at), self._page))
            segments += piece
            at = max(left, at) + Segment.get_line_length(piece)
        return Strip(segments).adjust_cell_length(self.size.width, self._page)

    # The ladder

    def _draw_ladder(self, lines: list[list[Piece]]) -> None:
        columns, ink = self._scene.ladder.columns, self._ink["border"]
        if not columns or len(lines) < 3:
            return
        left, rungs = self.size.width - columns, self._scene.ladder.lines(len(lines) - 2)
        lines[0].append((left, _rule("╭─", "Layers", "╮", columns, ink, self._ink["plain"])))
        for y, (pieces, _) in enumerate(rungs, 1):
            texts = [Segment(text, self._ink[name]) for text, name in pieces]
            lines[y] += [(left, [Segment("│ ", ink), *texts]), (left + columns - 2, [Segment(" │", ink)])]
        legend = self._scene.ladder.legend(len(rungs))
        lines[len(rungs) + 1].append((left, _rule("╰", legend, "─╯", columns, ink, self._ink["quiet"])))

    # Bands

    def _draw_band(self, lines: list[list[Piece]], placement: Placement, pictures: tuple[Picture, ...]) -> None:
        top, bottom = placement.top, placement.top + placement.lines - 1
        if bottom >= len(lines):
            return
        here = self._scene.stop in (*placement.band.steps, *(each.step for each in pictures))
        ink, words = self._ink["accent" if here else "border"], self._ink["accent" if here else "plain"]
        lines[top].append((placement.left, _rule("╭─", placement.title, "╮", placement.width, ink, words)))
        legend = _legend(pictures, placement.width - AROUND_LEGEND)
        lines[bottom].append((placement.left, _rule("╰", legend, "─╯", placement.width, ink, self._ink["quiet"])))
        for y in range(top + 1, bottom):
            lines[y] += [(placement.left + column, [Segment("│", ink)]) for column in (0, placement.width - 1)]
        for placed, picture in _drawn_boxes(placement, pictures):
            self._draw_box(lines, placement, placed, picture)

    def _draw_box(self, lines: list[list[Piece]], placement: Placement, placed: Placed, picture: Picture) -> None:
        left, top = placement.left + 2 + placed.left, placement.top + 1
        current = picture.step == self._scene.stop
        style = self._ink["accent" if current else "quiet"]
        steps = placement.band.boxes[placed.box].steps if placed.box >= 0 else ()
        marks = {self._scene.marks.get(step) for step in steps}
        mark = WRONG if WRONG in marks else FOLLOWS if FOLLOWS in marks else ""
        title = fit_label(picture.title, placed.width - len(mark))
        lines[top].append((left, [*([Segment(mark, self._ink["wrong"])] if mark else []), Segment(title, style)]))
        below = lines[top + 1 : placement.top + placement.lines - 1]
        has_tiles = bool(picture.tiles.values)
        if has_tiles:
            drawn = self._tiles(picture, placement, framed=current)
        elif picture.missing:
            drawn = [[Segment(fit_label("…", placed.width), self._ink["quiet"])]]
        else:
            drawn = [self._word(line, placed.width) for line in picture.lines]
        for pieces, segments in zip(below, drawn, strict=False):
            pieces.append((left, segments))
        if picture.sign and placed.left and drawn:
            below[(len(drawn) - 1) // 2].append((left - 2, [Segment(picture.sign, self._ink["plain"])]))
        if has_tiles:
            self._mark(below, left, picture, tall=placement.tall, framed=current)

    def _mark(self, lines: list[list[Piece]], left: int, picture: Picture, *, tall: bool, framed: bool) -> None:
        """Bars on both sides of the current picture, and in every picture a mark beside the current token's row."""
        here, tiles, ink = self._place_of(picture), picture.tiles.values, self._ink["accent"]
        right = left + sum(tile.shape[1] + 1 for tile in tiles) - 1
        for y, pieces in enumerate(lines[: _height(picture, tall=tall)]):
            if mark := _row_mark(picture.marked, y, tall=tall, framed=framed and here == 0):
                pieces.append((left - 1, [Segment(mark, ink)]))
            if framed and here == len(tiles) - 1:
                pieces.append((right, [Segment("▌", ink)]))

    def _place_of(self, picture: Picture) -> int:
        return min(max(self._scene.head - picture.heads.start, 0), len(picture.tiles.values) - 1)

    def _word(self, line: Line, width: int) -> list[Segment]:
        style = self._ink["accent" if line.marked else "plain"]
        if line.share is None:
            room = width - cell_len(line.value) - 1
            if line.first:
                value = fit_label(line.value, 6, "right")
                return [
                    Segment(f"{value}  ", self._ink["quiet"]),
                    Segment(fit_label(line.text, max(width - 8, 1)), style),
                ]
            return [Segment(fit_label(line.text, room), style), Segment(f" {line.value}", self._ink["quiet"])]
        words = max(min(12, width // 2), 4)
        bar = max(width - words - 9, 0)
        return [
            Segment(fit_label(line.text, words), style),
            Segment(f" {share_bar(line.share, bar)}", self._ink["accent" if line.marked else "quiet"]),
            Segment(fit_label(line.value, 8, "right"), style),
        ]

    # Pictures

    def _tiles(self, picture: Picture, placement: Placement, *, framed: bool) -> list[list[Segment]]:
        """Pictures side by side, that of the current head in its frame; under those of several heads their numbers."""
        here, lines = self._place_of(picture), [list[Segment]() for _ in range(_height(picture, tall=placement.tall))]
        for place, tile in enumerate(picture.tiles.values):
            side = {here: "▐", here + 1: "▌"}.get(place, " ") if framed else " "
            gap = [Segment(side, self._page if side == " " else self._ink["accent"])] * (place > 0)
            for line, cells in zip(lines, self._tile(tile, picture.tiles.scale, tall=placement.tall), strict=True):
                line += gap + cells
        return lines if len(picture.tiles.values) == 1 else [*lines, self._head_numbers(picture)]

    def _head_numbers(self, picture: Picture) -> list[Segment]:
        segments = list[Segment]()
        for head, tile in zip(picture.heads, picture.tiles.values, strict=True):
            width, style = tile.shape[1], self._ink["accent" if head == self._scene.head else "quiet"]
            text = f"head {head}" if width >= len(f"head {head}") else str(head)
            segments += [Segment(fit_label(text, width, "center"), style), Segment(" ", self._page)]
        return segments[:-1]

    def _tile(self, values: Values, scale: Scale, *, tall: bool) -> list[list[Segment]]:
        """Two rows a line; a row a line in the first band, whose rows stand beside the tokens."""
        if (known := self._tiles_drawn.get((id(values), tall))) is not None:
            return known[1]
        cells = np.repeat(values, 2, axis=0) if tall else values
        drawn = small_picture(cells, scale, Surface.of(self.app), self._page)
        if len(self._tiles_drawn) >= MOST_KEPT:
            self._tiles_drawn.clear()
        self._tiles_drawn[id(values), tall] = values, drawn  # kept with it, so that no other has its number
        return drawn


def _drawn_boxes(placement: Placement, pictures: tuple[Picture, ...]) -> Iterator[tuple[Placed, Picture]]:
    """The boxes of a band with what they show; what is beside them has the room that is left."""
    beside = Placed(-1, placement.rest, placement.width - 4 - placement.rest)
    yield from zip((*placement.boxes, beside), pictures, strict=False)


def _height(picture: Picture, *, tall: bool) -> int:
    """Lines of a picture: a line for every row, or for two."""
    rows = max((len(tile) for tile in picture.tiles.values), default=0)
    return rows if tall else (rows + 1) // 2


def _row_mark(marked: int | None, y: int, *, tall: bool, framed: bool) -> str:
    """The mark before a line of a picture: half a block beside the current token's row, a bar where it is framed."""
    if marked is None or marked // (1 if tall else 2) != y:
        return "▐" if framed else ""
    if tall:
        return "█" if framed else "▐"
    return ("▟" if framed else "▗") if marked % 2 else ("▜" if framed else "▝")


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
