"""The question, on an empty screen: the values are hidden until it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tui_transformer.explorer.main.predict.question import Question
from tui_transformer.explorer.shell.actions import PREDICT
from tui_transformer.explorer.shell.dialog import Dialog, Keys, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.widgets.line_list import LineList


class PredictScreen(Dialog[bool]):
    """Offers answers, then says which was right and why; gives whether the first one chosen was."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(PREDICT)
    DEFAULT_CSS = """
    PredictScreen {
        background: $background;
        #working { color: $accent; text-style: bold; }
        LineList { height: 4; }
    }
    """

    def __init__(self, title: str, what: str, question: Question) -> None:
        """Ask about a step of which `what` says how it is computed."""
        super().__init__(title)
        self._what, self._question = what, question
        self._answer: int | None = None

    @property
    def keys(self) -> Keys:
        """Arrows and numbers answer."""
        return {"↑↓ 1–4": "answer", "enter": "reveal, then go on", "esc": "leave"}

    def body(self) -> ComposeResult:
        """What the step is, the question, the answers, the working."""
        yield Static(plain(self._what), classes="quiet")
        yield Static(plain(self._question.text))
        yield LineList()
        yield Static(id="working")

    def on_mount(self) -> None:
        """Show the answers."""
        lines = self.query_one(LineList)
        lines.styles.height = len(self._question.choices)
        self._draw()
        lines.focus()

    def action_answer(self, index: int) -> None:
        """Choose the answer of a number."""
        if self._answer is None and index < len(self._question.choices):
            self.query_one(LineList).cursor = index
            self._reveal(index)

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        if self._answer is None:
            self._reveal(event.index)
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Close; what was answered counts."""
        self.dismiss(None if self._answer is None else self._answer == self._question.right)

    def _reveal(self, index: int) -> None:
        self._answer = index
        right = self._question.choices[self._question.right]
        said = "Right." if index == self._question.right else f"It is {right}."
        self.query_one("#working", Static).update(plain(f"{said} {self._question.working}"))
        self._draw()

    def _draw(self) -> None:
        choices: Sequence[str] = self._question.choices
        lines = self.query_one(LineList)
        cursor = lines.cursor
        lines.show(len(choices), lambda index: Text(f" {self._mark(index)} {index + 1}  {choices[index]}"))
        lines.cursor = cursor

    def _mark(self, index: int) -> str:
        """Which answer is right, and which was given, once that is revealed."""
        if self._answer is None:
            return " "
        return "✓" if index == self._question.right else "✗" if index == self._answer else " "
