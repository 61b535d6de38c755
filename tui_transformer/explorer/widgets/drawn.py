"""Widgets whose lines are drawn all at once, and kept until something about them changes."""

from __future__ import annotations

from textual.strip import Strip

from tui_transformer.explorer.widgets.careful import CarefulWidget


class DrawnWidget(CarefulWidget):
    """Lines that are made together by `draw`; those below the last are empty."""

    _strips: list[Strip] | None = None

    def draw(self) -> list[Strip]:
        """The lines for the size of the widget and the theme."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw anew: something else is shown."""
        self._strips = None
        self.refresh()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.redraw()

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """One line of the widget."""
        if self._strips is None:
            self._strips = self.draw()
        strip = self._strips[y] if y < len(self._strips) else Strip([])
        return strip.adjust_cell_length(self.size.width, self.rich_style)
