"""The question, on an empty screen: the values are hidden until it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.widgets import Input, Static

from tui_transformer.explorer.main.predict.answers import chosen
from tui_transformer.explorer.main.predict.question import Question
from tui_transformer.explorer.shell.actions.main import PREDICT
from tui_transformer.explorer.shell.dialog import Dialog, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.text.display import visible


class PredictScreen(Dialog[bool]):
    """Offers answers and takes any other, then says which was right and why; gives whether it was."""

    ACTIONS = PREDICT
    BINDINGS: ClassVar[list[BindingType]] = bindings(PREDICT)
    DEFAULT_CSS = """
    PredictScreen {
        background: $background;
        #box { overflow-y: auto; }
        #working { color: $accent; text-style: bold; }
        LineList { height: 4; }
    }
    """

    def __init__(self, title: str, what: str, question: Question) -> None:
        """Ask about a step of which `what` says how it is computed."""
        super().__init__(f"Predict · {title}")
        self._what, self._question = what, question
        self._answer: int | None = None
        self._typed = ""
        self._revealed = False

    def body(self) -> ComposeResult:
        """The step, the question, the answers, a line for another, the working."""
        yield Static(plain(self._what), classes="quiet")
        yield Static(plain(self._question.text))
        yield LineList()
        yield LineInput(placeholder="your answer, or its number")
        yield Static(id="working")

    def on_mount(self) -> None:
        """Show the answers."""
        self.query_one(LineList).styles.height = len(self._question.choices)
        self._draw()
        self.query_one(LineInput).focus()

    def on_key(self, event: Key) -> None:
        """The arrows move in the list while an answer is typed; space before anything is typed goes on."""
        if event.key in ("up", "down") and not self._revealed:
            event.stop()
            self.query_one(LineList).action_step(1 if event.key == "down" else -1, 0)
        elif event.key == "space" and not self.query_one(LineInput).value:
            event.stop()
            self.action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Mark the offered answer that is meant."""
        place = chosen(self._question, event.value) if event.value.strip() else None
        if place is not None and not self._revealed:
            self.query_one(LineList).cursor = place

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Reveal, whatever was answered; after that go on."""
        typed = event.value.strip()
        self._reveal(chosen(self._question, typed) if typed else self.query_one(LineList).cursor, typed)

    @on(LineList.Chosen)
    def _picked(self, event: LineList.Chosen) -> None:
        self._reveal(event.index, "")

    @property
    def _right(self) -> bool:
        return self._answer == self._question.right

    def action_leave(self) -> None:
        """Close; what was answered counts."""
        self.dismiss(self._right if self._revealed else None)

    def _reveal(self, answer: int | None, typed: str) -> None:
        if self._revealed:
            self.action_leave()
            return
        self._answer, self._typed, self._revealed = answer, typed, True
        right = self._question.choices[self._question.right]
        said = "Right." if self._right else f"You said {visible(typed)}. It is {right}." if typed else f"It is {right}."
        self.query_one("#working", Static).update(plain(f"{said} {self._question.working}"))
        self.query_one(LineInput).value = ""
        self._draw()

    def _draw(self) -> None:
        choices: Sequence[str] = self._question.choices
        lines = self.query_one(LineList)
        cursor = lines.cursor
        lines.show(len(choices), lambda index: Text(f" {self._mark(index)} {index + 1}  {choices[index]}"))
        lines.cursor = cursor

    def _mark(self, index: int) -> str:
        """Which answer is right, and which was given, once that is revealed."""
        if not self._revealed:
            return " "
        return "✓" if index == self._question.right else "✗" if index == self._answer else " "
