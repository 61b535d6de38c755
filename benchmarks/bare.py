"""A bare Textual program that repaints the whole screen at every key: what a repaint costs at the least."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.events import Key
from textual.strip import Strip
from textual.widget import Widget

STYLES = [Style(bgcolor=f"#{level:02x}{level:02x}{255 - level:02x}") for level in range(256)]


class Cells(Widget):
    """Coloured cells two columns wide, as a heat map has them."""

    shift = 0

    def render_line(self, y: int) -> Strip:
        """A line of cells."""
        cells = self.size.width // 2
        return Strip([Segment("  ", STYLES[(7 * x + 3 * y + self.shift) % 256]) for x in range(cells)], 2 * cells)


class BareApp(App[None]):
    """Cells that change at every key."""

    def compose(self) -> ComposeResult:
        """Nothing but cells."""
        yield Cells()

    def on_key(self, event: Key) -> None:
        """Change every cell."""
        event.stop()
        cells = self.query_one(Cells)
        cells.shift += 1
        cells.refresh()


if __name__ == "__main__":
    BareApp().run()
