"""The size of what a scroll view shows, without a new layout of the screen at every change."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


def set_content_size(view: ScrollView, size: Size) -> None:
    """Say how large the content is; only where a scroll bar comes or goes is the whole screen laid out again."""
    if not view.container_size or _bars(view, size) != (view.show_horizontal_scrollbar, view.show_vertical_scrollbar):
        view.virtual_size = size
        return
    view.set_reactive(Widget.virtual_size, size)
    if view.show_horizontal_scrollbar:
        view.horizontal_scrollbar.window_virtual_size = size.width
    if view.show_vertical_scrollbar:
        view.vertical_scrollbar.window_virtual_size = size.height
    x, y = min(view.scroll_x, view.max_scroll_x), min(view.scroll_y, view.max_scroll_y)
    if (x, y) != (view.scroll_x, view.scroll_y):
        view.scroll_to(x, y, animate=False, force=True)
    view.refresh()


def _bars(view: ScrollView, size: Size) -> tuple[bool, bool]:
    """Whether content of this size needs a horizontal and a vertical scroll bar; each takes room from the other."""
    styles, room = view.styles, view.container_size
    across = _needed(styles.overflow_x, size.width, room.width)
    down = _needed(styles.overflow_y, size.height, room.height)
    if down and not across:
        across = _needed(styles.overflow_x, size.width, room.width - styles.scrollbar_size_vertical)
    if across and not down:
        down = _needed(styles.overflow_y, size.height, room.height - styles.scrollbar_size_horizontal)
    return across, down


def _needed(overflow: str, content: int, room: int) -> bool:
    return overflow == "scroll" or (overflow == "auto" and content > room)
