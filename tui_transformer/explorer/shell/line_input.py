"""A line to type in, safe to show whatever is in it, with completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.suggester import SuggestionReady
from textual.widgets import Input

from tui_transformer.text.display import visible

_UNSEEN = "·"
_EDITING = {
    key: binding.action for binding in Input.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")
}


class Harmless(Highlighter):
    """Shows each unseen or harmful character as one that is printable, so that the cursor keeps its place."""

    def __call__(self, text: str | Text) -> Text:
        plain = text if isinstance(text, str) else text.plain
        return Text("".join(map(_shown, plain)), no_wrap=True, overflow="ignore", end="")

    def highlight(self, text: Text) -> None:
        """No colours: only characters are replaced."""


def _shown(character: str) -> str:
    shown = visible(character)
    if len(shown) == 1:
        return shown
    return character if shown.endswith(character) and character else _UNSEEN


class LineInput(Input):
    """An input of one line.

    | Key | Does |
    | :- | :- |
    | tab | Takes the completion, or goes on where there is none. |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", tooltip="Complete the word", id="input.complete", show=False),
    ]

    DEFAULT_CSS = """
    LineInput, LineInput.-textual-compact {
        background: $panel;
        padding: 0 1;
        &:focus { background-tint: transparent; }
        &:disabled { background: transparent; }
    }
    """

    def __init__(self, value: str = "", placeholder: str = "", suggestions: Sequence[str] = (), **options: Any) -> None:
        self.suggestions = [word for word in suggestions if visible(word) == word]
        super().__init__(value, visible(placeholder), Harmless(), select_on_focus=False, compact=True, **options)

    async def on_key(self, event: Key) -> None:
        """Edit at once: keys that come together, as over a slow line, would else delete after what is typed next."""
        if event.key in _EDITING and not event.is_printable:
            event.stop()
            event.prevent_default()
            await self.run_action(_EDITING[event.key])

    @property
    def completion(self) -> str | None:
        """The first suggestion that begins with what is typed, where something is typed."""
        words = self.suggestions if self.value else []
        return next((word for word in words if completes(word, self.value) and word != self.value), None)

    def watch_value(self, value: str) -> None:
        if self.is_mounted and self.completion:
            self.post_message(SuggestionReady(value, self.completion))

    def action_complete(self) -> None:
        if self.completion is None:
            self.screen.focus_next()
            return
        self.value = self.completion
        self.action_end()


def completes(word: str, typed: str) -> bool:
    """Whether a word begins with what is typed, whatever the case."""
    return word.casefold().startswith(typed.casefold())
