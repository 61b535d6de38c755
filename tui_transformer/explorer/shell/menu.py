"""A menu: letters behind a key, each with what it does; what cannot be done now is there too, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click, Key
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.dialogs import MENU
from tui_transformer.explorer.shell.dialog import Dialog, Page
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import cells, visible


@dataclass(frozen=True)
class Entry:
    """A line of a menu.

    Attributes:
        letter: What chooses it.
        meaning: What it stands for.
        title: What it does.
        reason: Why it cannot be done now; "" where it can.
    """

    letter: str
    meaning: str
    title: str
    reason: str = ""

    def line(self, width: int, *, current: bool) -> Content:
        """As it stands in the menu."""
        said = visible(f"{self.title.partition(':')[0]} · {self.reason}" if self.reason else self.title)
        while cells(said) > max(width - 5, 1):
            said = f"{said[:-2]}…"
        quiet = "$foreground 45%"
        line = Content.assemble(
            (f" {self.letter} ", quiet if self.reason else "bold $accent"), (f" {said} ", quiet if self.reason else "")
        )
        return line.pad_right(max(width - line.cell_length, 0)).stylize("on $panel" if current else "")


class MenuLines(Static):
    """The lines, one of which the cursor is on."""

    def on_click(self, event: Click) -> None:
        if isinstance(self.screen, MenuScreen):
            self.screen.choose(event.y)


class MenuScreen(Dialog[str]):
    """Entries of a menu; gives the meaning of the one that is chosen. What is typed behind its letter is passed on.

    | Key | Does |
    | :- | :- |
    | its letter | Chooses an entry. |
    | up, down, enter | Go to an entry, choose it. |
    """

    ACTIONS = MENU
    passes_on = True
    DEFAULT_CSS = """
    MenuScreen {
        #lines { height: auto; width: 1fr; padding: 0; }
        #box { width: 84; }
    }
    """

    def __init__(self, title: str, entries: Sequence[Entry]) -> None:
        super().__init__(title)
        self._entries = tuple(replace(entry, reason=hint(self.app, entry.reason)) for entry in entries)
        self._by_letter: Mapping[str, int] = {entry.letter: index for index, entry in enumerate(self._entries)}
        self._current = next((index for index, entry in enumerate(self._entries) if not entry.reason), 0)

    def body(self) -> ComposeResult:
        with Page(can_focus=False):
            yield MenuLines(id="lines")
        yield Static(id="problem", classes="problem")

    def on_mount(self) -> None:
        self.query_one("#problem").display = False
        self._show()

    def on_resize(self) -> None:
        self._show()

    def on_key(self, event: Key) -> None:
        """A letter chooses its entry; all others do nothing, so that a slip sets nothing off."""
        index = self._by_letter.get(event.character or "")
        if index is not None:
            event.stop()
            self.choose(index)

    def choose(self, index: int) -> None:
        """Choose an entry, or say why that cannot be."""
        if not 0 <= index < len(self._entries):
            return
        self._current = index
        entry = self._entries[index]
        if not entry.reason:
            self.dismiss(entry.meaning)
            return
        problem = self.query_one("#problem", Static)
        problem.display = True
        problem.update(Content(visible(f"{entry.title.partition(':')[0]}: {entry.reason}")))
        self._show()

    def action_move(self, by: int) -> None:
        self._current = (self._current + by) % len(self._entries)
        self._show()

    def action_choose(self) -> None:
        self.choose(self._current)

    def _show(self) -> None:
        lines, page = self.query_one(MenuLines), self.query_one(Page)
        width = lines.size.width or min(self.app.size.width, 84) - 2
        shown = (entry.line(width, current=index == self._current) for index, entry in enumerate(self._entries))
        lines.update(Content("\n").join(shown))
        page.scroll_to(y=self._current - page.size.height // 2, animate=False)
