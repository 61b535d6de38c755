"""The command palette, where the terminal has room for its list."""

from __future__ import annotations

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.geometry import Size
from textual.widgets import Input

SMALLEST = Size(20, 10)


class Commands(CommandPalette):
    """Textual's palette, which cannot be used where none of its lines is seen; without a picture before its line."""

    DEFAULT_CSS = """
    Commands SearchIcon { display: none; }
    """

    def on_resize(self, event: events.Resize) -> None:
        """Leave where the terminal has become too small."""
        if not has_room(event.size):
            self.dismiss()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search no more where it is closed: what was typed may come behind the end of its list."""
        if not self.is_active:
            event.prevent_default()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, once."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def _action_command_list(self, action: str) -> None:
        """Do what a key stands for in the list, once that has a place on the screen: Textual counts its lines by it."""
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


def has_room(size: Size) -> bool:
    """Whether the palette's list has a line."""
    return size.width >= SMALLEST.width and size.height >= SMALLEST.height
