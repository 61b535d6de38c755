"""Widgets that are not drawn for another size while something else is about to be shown in them."""

from __future__ import annotations

from textual.widget import Widget


class StaleWidget(Widget):
    """A widget that is empty from a resize on, where what it shows is out of date, until something else is shown.

    Attributes:
        stale: Whether what it shows is out of date.
        blank: Whether it is empty.
    """

    stale = blank = False

    def renew(self) -> None:
        """Be drawn: what is shown now is up to date."""
        self.stale = self.blank = False

    def on_resize(self) -> None:
        """Do not draw what is out of date for the new size."""
        self.blank = self.stale
