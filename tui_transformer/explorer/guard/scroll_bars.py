"""Scroll bars that know how large the content is, and where it stands, without a new layout of the screen.

Of Textual 8.2: a new size of the content lays out the whole screen, a bar that comes back stands where it stood, to
draw one costs as much as 20 lines of a matrix, and one that takes the last column of a text comes and goes for good.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget


def set_content_size(view: ScrollView, size: Size) -> None:
    """Say how large the content is; only where a scroll bar comes or goes is the whole screen laid out again."""
    styles, room = view.styles, view.container_size
    across, down = styles.overflow_x == "scroll", styles.overflow_y == "scroll"
    for _ in range(2):  # the first may take the room of the other
        width = room.width - down * styles.scrollbar_size_vertical
        height = room.height - across * styles.scrollbar_size_horizontal
        across, down = (
            across or (styles.overflow_x == "auto" and size.width > width),
            down or (styles.overflow_y == "auto" and size.height > height),
        )
    if not room or (across, down) != (view.show_horizontal_scrollbar, view.show_vertical_scrollbar):
        view.virtual_size = size
        return
    view.set_reactive(Widget.virtual_size, size)
    if view.show_horizontal_scrollbar:
        view.horizontal_scrollbar.window_virtual_size = max(size.width, view.horizontal_scrollbar.window_size)
    if view.show_vertical_scrollbar:
        view.vertical_scrollbar.window_virtual_size = max(size.height, view.vertical_scrollbar.window_size)
    x, y = min(view.scroll_x, view.max_scroll_x), min(view.scroll_y, view.max_scroll_y)
    if (x, y) != (view.scroll_x, view.scroll_y):
        view.scroll_to(x, y, animate=False, force=True)


def keep_bars(view: Widget) -> None:
    """Let scroll bars that come back stand where the view is scrolled to by then."""
    for axis in ("horizontal", "vertical"):
        view.watch(view, f"show_{axis}_scrollbar", lambda: put_bars(view), init=False)


def put_bars(view: Widget) -> None:
    """Put the scroll bars where the view is scrolled to, in its colours: away, they were told of neither."""
    if view.show_horizontal_scrollbar:
        view.horizontal_scrollbar.position = view.scroll_x
        view.horizontal_scrollbar.refresh()
    if view.show_vertical_scrollbar:
        view.vertical_scrollbar.position = view.scroll_y
        view.vertical_scrollbar.refresh()
    if view.show_horizontal_scrollbar and view.show_vertical_scrollbar:
        view.scrollbar_corner.refresh()


def with_room(refresh: Callable[[Widget], None]) -> Callable[[Widget], None]:
    """Decides on bars as Textual does, but for one that would leave no column of the text beside it.

    Nothing is left to scroll there then, so that the bar goes; the text is there again, and so is the bar.
    """

    def refresh_bars(view: Widget) -> None:
        styles, parts = view.styles, [part for part in view.children if part.display]
        taken = max((part.gutter.width + part.styles.margin.width for part in parts), default=0)
        room = view.container_size.width - styles.scrollbar_size_vertical - taken
        if parts and room < 1 and (styles.overflow_x, styles.overflow_y) == ("hidden", "auto"):
            view.show_vertical_scrollbar = False
            if view._vertical_scrollbar is not None:
                view.vertical_scrollbar.display = False
        else:
            refresh(view)

    return refresh_bars


MOST_KEPT = 64
"""Bars whose lines are kept, of one that grows, shrinks and moves."""

Draw = Callable[[ScrollBar, Region], list[Strip]]


def kept_lines(draw: Draw) -> Draw:
    """Draws a bar, and draws it once only for the same sizes, place and colours."""

    def lines(bar: ScrollBar, region: Region) -> list[Strip]:
        kept: dict[object, list[Strip]] = vars(bar).setdefault("_kept_lines", {})
        place = region, bar.size, bar.window_virtual_size, bar.window_size, bar.position
        colors = *(node.styles._cache_key for node in bar.ancestors_with_self), bar.app.ansi_theme
        key = place, bar.mouse_over, bar.grabbed is None, colors, *bar.get_line_filters()
        if key not in kept:
            if len(kept) >= MOST_KEPT:
                kept.clear()
            bar._styles_cache.clear()  # what it was told may be newer than what it drew last
            bar._dirty_regions.add(bar.size.region)
            kept[key] = draw(bar, region)
        return kept[key]

    return lines
