"""A screen is composed of what is seen of it, and of an update only what changed is asked for.

Of Textual 8.2: for an update, all lines of all widgets between the first line that changed and the last are asked for
and cut into pieces, also of those that lie behind others, as containers do; each piece makes seven caches that hardly
one of them uses; each line of a widget looks for every effect that a style sheet can have; and a title draws all lines
of its widget. Together that is nearly half of what a key costs. And where lines are asked for between two updates, a
dialog does not know what is behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual._border import get_box
from textual._compositor import ChopsUpdate, Compositor
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.content import Content, ContentType
from textual.css.styles import StylesBase
from textual.css.types import EdgeType
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style as TextualStyle
from textual.widget import Widget

Chops = Sequence[dict[int, Strip | None]]
"""Of each line of the screen the pieces by their first column; None where nobody asks for it."""


def _wanted_lines(self: Compositor, crop: Region, is_rendered_line: Callable[[int], bool]) -> Chops:
    lines = range(max(crop.y, 0), min(crop.bottom, len(self.cuts)))
    return _composed(self, {y: set(self.cuts[y][:-1]) for y in lines if is_rendered_line(y)})


def _partial_update(self: Compositor) -> ChopsUpdate | None:
    """What changed since the last time; None where nothing did."""
    cuts, spans = self.cuts, list(self._regions_to_spans(self._dirty_regions))
    self._dirty_regions.clear()
    if not spans:
        return None
    wanted: dict[int, set[int]] = {}
    for y, first, last in spans:
        pieces = zip(cuts[y], cuts[y][1:], strict=False)
        wanted.setdefault(y, set()).update(start for start, end in pieces if start < last and end > first)
    return ChopsUpdate(_composed(self, wanted), spans, [ends[1:] for ends in cuts])


def _composed(compositor: Compositor, wanted: dict[int, set[int]]) -> Chops:
    """The pieces that are wanted of each line, from the widgets in front to those behind."""
    cuts = compositor.cuts
    chops: Chops = [dict.fromkeys(line[:-1]) for line in cuts]
    for widget, (region, clip) in compositor.visible_widgets.items():
        seen = region.intersection(clip)
        left, right = seen.column_span
        lines = [y for y in seen.line_range if wanted.get(y) and any(left <= cut < right for cut in wanted[y])]
        if not lines:
            continue
        if isinstance(widget, Screen):  # whoever asks, it shows the screens behind it
            behind = widget.app._background_screens
            visible_screen_stack.set(behind[: behind.index(widget)] if widget in behind else behind)
        first, height = lines[0], lines[-1] + 1 - lines[0]
        strips = widget.render_lines(Region(left - region.x, first - region.y, seen.width, height))
        for y in lines:
            start, end = bisect_left(cuts[y], left), bisect_right(cuts[y], right)
            pieces = strips[y - first].divide([cut - left for cut in cuts[y][start + 1 : end]])
            for cut, piece in zip(cuts[y][start:], pieces, strict=False):
                if cut in wanted[y]:
                    chops[y][cut] = piece
                    wanted[y].remove(cut)
    return chops


@dataclass(frozen=True)
class Frame:
    """Where the lines of content lie in a widget, and what stands beside each of them."""

    lines: range
    left: list[Segment]
    right: list[Segment]
    ground: Style


def _frame(styles: StylesBase, size: Size, base: Color, background: Color, opacity: float) -> Frame | None:
    """The frame of a widget without effects and padding; None of others."""
    is_plain = opacity == 1.0 == styles.text_opacity and not styles.tint.a and not styles.has_rule("hatch")
    if not is_plain or any(styles.padding) or any(edge for edge, _ in styles.outline):
        return None
    inner, outer = TextualStyle(background=base + background), TextualStyle(background=base)
    (top, _), right, (bottom, _), left = styles.border

    def side(edge: EdgeType, color: Color, at: int) -> list[Segment]:
        return [get_box(edge, inner, outer, TextualStyle(foreground=base + color))[1][at]] if edge else []

    lines = range(int(bool(top)), size.height - int(bool(bottom)))
    return Frame(lines, side(*left, 0), side(*right, 2), inner.rich_style)


def _render(self: Any, styles: StylesBase, size: Size, base: Color, background: Color, *more: Any, **named: Any) -> Any:
    self.frame = _frame(styles, size, base, background, named["opacity"])
    return USUAL[StylesCache, "render"](self, styles, size, base, background, *more, **named)


def _render_line(self: Any, styles: StylesBase, y: int, size: Size, content_size: Size, *more: Any) -> Strip:
    """A line of a widget: of one without effects, its content between the sides of the border."""
    frame: Frame | None = self.frame
    if frame is None or y not in frame.lines:
        return cast("Strip", USUAL[StylesCache, "render_line"](self, styles, y, size, content_size, *more))
    at, (width, height) = y - frame.lines.start, content_size
    line = more[3](at).adjust_cell_length(width, frame.ground) if at < height else Strip.blank(width, frame.ground)
    if width == size.width and not frame.left and not frame.right:
        return line
    return Strip([*frame.left, *line, *frame.right], size.width)


def _make_strip(self: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    """A strip whose caches are dictionaries, which cost a tenth of Textual's and have what it asks of them."""
    lean = cast("Any", self)
    lean._segments, lean._cell_length = list(segments), cell_length
    lean._divide_cache, lean._crop_cache, lean._crop_extend_cache, lean._offsets_cache = {}, {}, {}, {}
    lean._style_cache, lean._filter_cache, lean._line_length_cache = {}, {}, {}
    lean._render_cache = lean._link_ids = lean._cell_count = None


def _set_title(self: Any, widget: Widget, title: Text | ContentType | None) -> None:
    """Write a title into the border; only its line is drawn again, and none where the title is the same."""
    text = Content.from_rich_text(title) if isinstance(title, Text) else title
    now = None if text is None else widget.render_str(text).expand_tabs(4).split()[0]
    before: Content | None = getattr(widget, self._internal_name, None)
    if now is before or (now is not None and before is not None and now.is_same(before)):
        return
    setattr(widget, self._internal_name, now)
    width, height = widget.outer_size
    line = 0 if self._internal_name == "_border_title" else height - 1
    widget.refresh(Region(0, line, width, 1).translate(-widget.content_offset))


def _draw_in_time(self: Screen[Any]) -> None:
    """Draw what has changed, but where more is about to change: then it is drawn together a moment later."""
    in_turn = getattr(self.app, "in_turn", None)
    if in_turn is None or not in_turn.holds:
        USUAL[Screen, "_on_timer_update"](self)


LEAN: Mapping[tuple[type, str], Callable[..., Any]] = {
    (Compositor, "_render_chops"): _wanted_lines,
    (Compositor, "render_partial_update"): _partial_update,
    (StylesCache, "render"): _render,
    (StylesCache, "render_line"): _render_line,
    (Strip, "__init__"): _make_strip,
    (type(vars(Widget)["border_title"]), "__set__"): _set_title,
    (Screen, "_on_timer_update"): _draw_in_time,
}
USUAL: Mapping[tuple[type, str], Callable[..., Any]] = {place: getattr(*place) for place in LEAN}
"""What is done in the place of Textual's methods, in this process and for all screens; and Textual's own."""


def compose_leanly() -> None:
    """Let all screens be composed so."""
    for place, method in LEAN.items():
        setattr(*place, method)
