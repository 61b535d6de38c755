"""Predict, then reveal: the question beside the step, whose cells are empty until it is answered; the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.events import Key
from textual.widgets import Input, Static

from tui_transformer.engine.axis import shape_text
from tui_transformer.explorer.main.panes.lines import step_words, stop_title
from tui_transformer.explorer.main.question import QUESTIONS, Question, chosen, question
from tui_transformer.explorer.shell.actions.main import PREDICT, PREDICTED
from tui_transformer.explorer.shell.dialog import CORNERS, Dialog, plain
from tui_transformer.explorer.shell.keymap import key_line
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.user_files import keep_score, read_score
from tui_transformer.explorer.widgets.heat_map import Legend, MatrixPane
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.overlay import OverlayMatrix
from tui_transformer.session.pane_fit import columns_needed
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.step_scene import StepScene, first_tile, gather
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Tile

TALLEST, AROUND, LEAST = 3, 4, 24
"""Lines of a row of a small matrix, of what is around its rows, and of the question at least."""

MOST_OPERANDS = 2


def operands(session: Session, scene: StepScene) -> tuple[OverlayMatrix, ...]:
    """The first of the matrices that a step is made from: nothing in them gives the answer away."""
    trace, name = session.trace, scene.view.name
    program, made = trace.program, []
    inputs = program.step(name).inputs if name in program.by_name else ()
    made_from = [each for each in dict.fromkeys(inputs) if each in program.by_name or each in program.weights]
    for each in made_from[:MOST_OPERANDS]:
        heads = view_of(trace, each, session.labels, head=0).heads
        view = view_of(trace, each, session.labels, head=min(scene.place.head, max(heads - 1, 0)))
        tile = first_tile(trace, view, Place())
        own = f" · head {view.head}" if heads > 1 else ""
        title = f"made from {stop_title(session, each)}{own} · {shape_text(program.shape(each))}"
        made.append(OverlayMatrix(view, scale_for(view.kind, *tile_extremes(tile.values)), tile, title))
    return tuple(made)


class Answer(LineInput):
    """Takes an answer; space is part of one, but does not begin it."""

    async def on_key(self, event: Key) -> None:
        """Let no answer begin with a space."""
        if event.key == "space" and not self.value:
            event.prevent_default()


class PredictScreen(Dialog[bool]):
    """Offers answers and takes any other, then says which was right and why; gives whether it was."""

    ACTIONS = PREDICT
    DEFAULT_CSS = """
    PredictScreen {
        background: $background;
        #both { layout: horizontal; width: 100%; max-height: 100%; }
        #values { width: 3fr; height: 100%; }
        MatrixPane { height: 1fr; border: round $border-blurred; border-title-color: $foreground 70%; }
        .operand, #values.-hidden > #asked { display: none; }
        #values.-hidden > .operand { display: block; }
        #box { width: 2fr; height: 100%; overflow-y: auto; }
        #working { color: $accent; text-style: bold; }
        LineList { height: 4; }
        &.-narrow #both, &.-under #both { layout: vertical; height: 100% !important; }
        &.-narrow #values, &.-under #values { width: 100%; height: 1fr; }
        &.-narrow #box, &.-under #box { width: 100%; height: auto; max-height: 16; }
        &.-short #values { display: none; }
        &.-short #box { max-height: 100%; }
        &.-short .quiet { display: none; }
    }
    """

    def __init__(self, question: Question, session: Session, scene: StepScene) -> None:
        title = stop_title(session, scene.view.name)
        super().__init__(f"Predict · {title}")
        self._matrix = f"{title} · head {scene.place.head}" if scene.view.heads > 1 else title
        self._what = step_words(session, scene.view.name).what
        self._question, self._scene, self._operands = question, scene, operands(session, scene)
        self._answer: int | None = None
        self._revealed = False

    def compose(self) -> ComposeResult:
        """The step's matrix, and the box with the question."""
        with Container(id="both"):
            with Vertical(id="values"):
                yield MatrixPane(id="asked")
                if self._question.hides_shape:
                    for number in range(len(self._operands)):
                        yield MatrixPane(id=f"operand-{number}", classes="operand")
            yield from super().compose()

    def body(self) -> ComposeResult:
        """The step, the question, the answers, a line for another, the working."""
        yield Static(plain(self._what), classes="quiet")
        yield Static(plain(f"\n{self._question.text}"))
        yield LineList()
        yield Answer(placeholder="your answer, or its number")
        yield Static(id="working")

    def on_mount(self) -> None:
        """Show the answers, and the step without its values."""
        for pane in self.query(MatrixPane):
            pane.cells.can_focus = False
        answers = self.query_one(LineList)
        answers.can_focus = False  # what is typed is an answer, and the arrows move in the list all the same
        answers.styles.height = len(self._question.choices)
        self._draw()
        answers.cursor = None
        self._show_values()
        for pane, each in zip(self.query(".operand").results(MatrixPane), self._operands, strict=False):
            pane.show_matrix(each.view, each.scale, each.tile, self._scene.place, titles=(each.title,))
        lines = self._scene.view.rows.size * TALLEST + AROUND
        self.query_one("#both").styles.height = max(lines, LEAST)
        self.query_one(LineInput).focus()

    def on_resize(self) -> None:
        """Ask under the matrices where they show no numbers beside the question; write the keys that fit."""
        width = self.app.size.width
        matrices = ((self._scene.view, self._scene.scale), *((each.view, each.scale) for each in self._operands))
        self.set_class(any(width * 3 // 5 < columns_needed(*each) <= width for each in matrices), "-under")
        self.call_after_refresh(self._show_keys)

    def _show_keys(self) -> None:
        for box in self.query("#box"):
            actions = PREDICTED if self._revealed else self.actions()
            box.border_subtitle = key_line(actions, self.app, max(box.outer_size.width - CORNERS, 0))

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
        """Reveal, where something was answered; after that go on."""
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
        if answer is None and not typed:
            self.query_one("#working", Static).update(plain("nothing is chosen: ↑↓ or type an answer; space skips"))
            return
        self._answer, self._revealed = answer, True
        right = self._question.choices[self._question.right]
        given = visible(typed) if answer is None else self._question.choices[answer]
        said = "Right." if self._right else f"You said {given}. It is {right}."
        self.query_one("#working", Static).update(plain(f"{said} {self._question.working}"))
        self.query_one(LineInput).value = ""
        self._draw()
        self._show_values()
        self._show_keys()

    def _show_values(self) -> None:
        """The matrix: its cells are empty until the answer is there, which the cursor stands on then and not before."""
        scene, revealed = self._scene, self._revealed
        self.query_one("#values").set_class(self._question.hides_shape and not revealed, "-hidden")
        place = scene.place
        pane = self.query_one("#asked", MatrixPane)
        if self._question.column is not None:
            place = replace(place, column=self._question.column if revealed else 0)
            pane.cells.marks_row_alone = not revealed
        tile = scene.tile if revealed else Tile(0, 0, np.zeros((0, 0)))
        pane.query_one(Legend).display = revealed
        pane.show_matrix(scene.view, scene.scale, tile, place, titles=(self._matrix,))

    def _draw(self) -> None:
        choices: Sequence[str] = self._question.choices
        lines = self.query_one(LineList)
        cursor = lines.cursor
        marks = {self._answer: "✗", self._question.right: "✓"} if self._revealed else {}
        lines.show(len(choices), lambda index: Text(f" {marks.get(index, ' ')} {index + 1}  {choices[index]}"))
        lines.cursor = cursor


class Predicting:
    """Asks one question after the other, another one on a step that was asked about, and keeps the score."""

    def __init__(self, explored: Exploration, port: Port) -> None:
        self._explored, self._port = explored, port
        self._numbers: Counter[str] = Counter()

    def ask(self) -> None:
        """Ask about the step that is shown."""
        scene, session, stop = self._explored.step, self._explored.session, self._explored.position.stop
        if scene is None:
            self._port.say(self._port.hint("there is nothing to predict here: go to a step with {step.next}"))
            return
        shape = session.trace.program.shape(scene.view.name)
        asked = question(scene.view, scene.place, shape, self._numbers[stop])
        self._numbers[stop] += 1
        self._open(asked, session, scene)

    def ask_at(self, session: Session, position: Position, kind: str, then: Callable[[], None]) -> None:
        """Ask a question of a kind about a cell, before it is shown; then go on, whatever was answered."""
        scene = gather(session, position, self._explored.view, "value")
        asked = QUESTIONS[kind](scene.view, scene.place, session.trace.program.shape(position.stop))
        if asked is None:
            then()
        else:
            self._open(asked, session, scene, then)

    def _open(
        self, asked: Question, session: Session, scene: StepScene, then: Callable[[], None] = lambda: None
    ) -> None:
        def answered(right: bool | None) -> None:  # noqa: FBT001 - what the screen gives
            if right is not None:
                score = read_score().and_then(right=right)
                keep_score(score)
                self._port.say(f"{score} · {self._port.hint('{predict} asks again')}")
            then()

        self._port.open(PredictScreen(asked, session, scene), answered)
