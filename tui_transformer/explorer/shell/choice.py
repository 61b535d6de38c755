"""A choice of a few values in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from tui_transformer.explorer.guard.failures import careful
from tui_transformer.explorer.shell.actions.dialogs import CHOICE
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, visible

OFF_ON = ("off", "on")


@careful
class Choice(Widget, can_focus=True):
    """All values side by side where there is room, the chosen one in brackets; else only that one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CHOICE)

    DEFAULT_CSS = """
    Choice {
        height: 1;
        width: 1fr;
        background: $background;
        &:focus { background: $panel; }
        &:disabled { color: $foreground 60%; }
    }
    """

    index: var[int] = var(0, init=False)
    """Which value is chosen."""

    @dataclass
    class Changed(Message):
        """Another value was chosen."""

        choice: Choice
        value: str

    def __init__(self, values: Sequence[str], value: str, *, id: str | None = None, disabled: bool = False) -> None:
        super().__init__(id=id, disabled=disabled)
        self.values = tuple(values)
        self.set_reactive(Choice.index, self.values.index(value))

    @property
    def value(self) -> str:
        return self.values[self.index]

    def watch_index(self) -> None:
        self.refresh()
        self.post_message(self.Changed(self, self.value))

    def render(self) -> Content:
        parts = [self._part(value) for value in self.values]
        room = self.content_size.width
        if sum(cells(part.plain) for part in parts) <= room:
            return Content("").join(parts)
        return self._part(self.value) + Content.styled(f" {self.index + 1} of {len(self.values)}", "$foreground 60%")

    def _part(self, value: str) -> Content:
        chosen = value == self.value
        color = "$foreground 60%" if self.disabled or not chosen else "bold $accent"
        return Content.styled(f"[{visible(value)}]" if chosen else f" {visible(value)} ", color)

    def action_turn(self, step: int) -> None:
        self.index = (self.index + step) % len(self.values)

    def on_click(self, _: Click) -> None:
        self.action_turn(1)
