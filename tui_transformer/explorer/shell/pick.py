"""One of a few things to do, picked from a list."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.dialogs import PICK
from tui_transformer.explorer.shell.dialog import Dialog, plain
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.text.display import visible


class PickScreen(Dialog[str]):
    """Offers, each with a sentence on what it does; gives the name of the one that is picked.

    | Key | Does |
    | :- | :- |
    | enter | Picks the one under the cursor. |
    """

    ACTIONS = PICK

    def __init__(self, title: str, offers: Mapping[str, str], note: str = "") -> None:
        super().__init__(title)
        self._offers, self._note = dict(offers), note

    def body(self) -> ComposeResult:
        """The offers, and a note under them."""
        yield LineList()
        if self._note:
            yield Static(plain(self._note), classes="quiet")

    def on_mount(self) -> None:
        """Show the offers."""
        lines, names = self.query_one(LineList), list(self._offers)
        lines.styles.height = len(names)
        width = max(map(len, names)) + 2
        lines.show(
            len(names),
            lambda index: Text(
                f" {visible(names[index]):<{width}}{visible(self._offers[names[index]])}",
                no_wrap=True,
                overflow="ellipsis",
            ),
        )
        lines.focus()

    @on(LineList.Chosen)
    def _picked(self, event: LineList.Chosen) -> None:
        self.dismiss(list(self._offers)[event.index])
