"""The whole as a widget: bands with borders, small pictures in half blocks, the current step framed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.main.whole.drawing import Line, Picture, Placement
from tui_transformer.explorer.main.whole.placing import Placed
from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.explorer.widgets.share_bar import share_bar
from tui_transformer.explorer.widgets.small_picture import picture
from tui_transformer.views.view import Scale, Values

Piece = tuple[int, list[Segment]]
"""Segments from a column on."""

INKS = ("plain", "quiet", "accent", "border")


class WholePane(Widget, can_focus=True):
    """Bands of small pictures."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"whole--{name}" for name in INKS}
    DEFAULT_CSS = """
    WholePane {
        background: $background;
        color: $foreground;
        & > .whole--plain { color: $foreground; }
        & > .whole--quiet { color: $foreground 60%; }
        & > .whole--accent { color: $accent; text-style: bold; }
        & > .whole--border { color: $border-blurred; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Show nothing yet."""
        super().__init__(id=id)
        self._placed: tuple[Placement, ...] = ()
        self._pictures: Mapping[int, tuple[Picture, ...]] = {}
        self._stop, self._head = "", 0
        self._strips: list[Strip] = []

    def show(
        self, placed: tuple[Placement, ...], pictures: Mapping[int, tuple[Picture, ...]], stop: str, head: int
    ) -> None:
        """Show bands; those whose pictures are not there yet have their titles alone."""
        self._placed, self._pictures, self._stop, self._head = placed, pictures, stop, head
        self._redraw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._redraw()

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self._redraw()

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
        lines: list[list[Piece]] = [[] for _ in range(self.size.height)]
        for place, placement in enumerate(self._placed):
            self._draw_band(lines, placement, self._pictures.get(place, ()))
        return [self._strip(pieces) for pieces in lines]

    def _strip(self, pieces: list[Piece]) -> Strip:
        """Pieces side by side, blank between them."""
        segments, at = list[Segment](), 0
        for left, piece in sorted(pieces, key=lambda found: found[0]):
            if left > at:
                segments.append(Segment(" " * (left - at), self.rich_style))
            segments += piece
            at = max(left, at) + sum(segment.cell_length for segment in piece)
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    # Bands

    def _draw_band(self, lines: list[list[Piece]], placement: Placement, pictures: tuple[Picture, ...]) -> None:
        top, bottom = placement.top, placement.top + placement.lines - 1
        if bottom >= len(lines):
            return
        here = self._stop in placement.band.steps
        ink, words = self._ink["accent" if here else "border"], self._ink["accent" if here else "plain"]
        lines[top].append((placement.left, _rule("╭─", placement.title, "╮", placement.width, ink, words)))
        legend = _legend(max((each.together for each in pictures), default=1))
        lines[bottom].append((placement.left, _rule("╰", legend, "─╯", placement.width, ink, self._ink["quiet"])))
        for y in range(top + 1, bottom):
            lines[y] += [(placement.left + column, [Segment("│", ink)]) for column in (0, placement.width - 1)]
        boxes = (*placement.boxes, Placed(-1, placement.rest, placement.width - 4 - placement.rest))
        for placed, found in zip(boxes, pictures, strict=False):
            self._draw_box(lines, placement, placed, found)

    def _draw_box(self, lines: list[list[Piece]], placement: Placement, placed: Placed, found: Picture) -> None:
        left, top = placement.left + 2 + placed.left, placement.top + 1
        current = found.step == self._stop
        style = self._ink["accent" if current else "quiet"]
        lines[top].append((left, [Segment(fit_label(found.title, placed.width), style)]))
        drawn = self._words(found.lines, placed.width) if found.lines else self._tiles(found, tall=placement.tall)
        for y, segments in enumerate(drawn, top + 1):
            lines[y].append((left, segments))
        if found.sign and placed.left:
            lines[top + 1 + (len(drawn) - 1) // 2].append((left - 2, [Segment(found.sign, self._ink["plain"])]))
        if current and not found.lines:
            self._frame(lines[top + 1 : top + 1 + len(drawn)], left, drawn)

    def _frame(self, lines: list[list[Piece]], left: int, drawn: list[list[Segment]]) -> None:
        """Bars on both sides."""
        width = max(sum(segment.cell_length for segment in segments) for segments in drawn)
        for pieces in lines:
            pieces += [
                (left - 1, [Segment("▐", self._ink["accent"])]),
                (left + width, [Segment("▌", self._ink["accent"])]),
            ]

    def _words(self, found: tuple[Line, ...], width: int) -> list[list[Segment]]:
        """Words with numbers, or with bars."""
        return [self._word(line, width) for line in found]

    def _word(self, line: Line, width: int) -> list[Segment]:
        style = self._ink["accent" if line.marked else "plain"]
        if line.share is None:
            room = width - cell_len(line.value) - 1
            return [Segment(fit_label(line.text, room), style), Segment(f" {line.value}", self._ink["quiet"])]
        words = max(min(12, width // 2), 4)
        bar = max(width - words - 9, 0)
        return [
            Segment(fit_label(line.text, words), style),
            Segment(f" {share_bar(line.share, bar)}", self._ink["accent" if line.marked else "quiet"]),
            Segment(fit_label(line.value, 8, "right"), style),
        ]

    # Pictures

    def _tiles(self, found: Picture, *, tall: bool) -> list[list[Segment]]:
        """Pictures side by side; under those of several heads their numbers."""
        drawn = [self._tile(tile, found.scale, tall=tall) for tile in found.tiles]
        lines = [list[Segment]() for _ in range(max(map(len, drawn)))]
        for tile in drawn:
            for y, line in enumerate(lines):
                line += [Segment(" ", self.rich_style)] * bool(line) + tile[y]
        return lines if len(drawn) == 1 else [*lines, self._head_numbers(found)]

    def _head_numbers(self, found: Picture) -> list[Segment]:
        """The number of every head under its picture, the current one marked."""
        segments = list[Segment]()
        for head, tile in enumerate(found.tiles, found.first):
            width, style = tile.shape[1], self._ink["accent" if head == self._head else "quiet"]
            text = f"head {head}" if width >= len(f"head {head}") else str(head)
            segments += [Segment(fit_label(text, width, "center"), style), Segment(" ", self.rich_style)]
        return segments[:-1]

    def _tile(self, values: Values, scale: Scale, *, tall: bool) -> list[list[Segment]]:
        """Two rows a line; a row a line in the first band, whose rows stand beside the tokens."""
        cells = np.repeat(values, 2, axis=0) if tall else values
        return picture(cells, scale, Surface.of(self.app), self.rich_style)


def _rule(left: str, text: str, right: str, width: int, ink: Style, words: Style) -> list[Segment]:
    """A border with a text in it: after the left corner above, before the right one below."""
    room = width - len(left) - len(right)
    label = fit_label(f" {text} ", min(cell_len(text) + 2, room)) if text else ""
    rule = Segment("─" * (room - cell_len(label)), ink)
    inside = [Segment(label, words), rule] if len(left) > len(right) else [rule, Segment(label, words)]
    return [Segment(left, ink), *inside, Segment(right, ink)]


def _legend(together: int) -> str:
    """What a column stands for where pictures have fewer columns than their steps."""
    return f"of up to {together} neighbouring columns, the entry of largest magnitude" if together > 1 else ""
