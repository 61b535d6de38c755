"""Predict, then reveal: the question beside what the step is made from, and the step once it is answered; the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.events import Key
from textual.widgets import Input, Static

from tui_transformer.engine.axis import shape_text
from tui_transformer.explorer.main.panes.lines import step_words, stop_title
from tui_transformer.explorer.main.question import NOTHING_CHOSEN, Question, chosen, made_from, question
from tui_transformer.explorer.shell.actions.main import PREDICT, PREDICTED
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Dialog, plain
from tui_transformer.explorer.shell.keys import Action
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.user_files import count_answer
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.records import replace
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.overlay import OverlayMatrix
from tui_transformer.session.pane_fit import columns_needed
from tui_transformer.session.session import Session
from tui_transformer.session.step_scene import StepScene, around, tile_of
from tui_transformer.views.step_view import Place, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Tile, View


def operands(session: Session, scene: StepScene) -> tuple[OverlayMatrix, ...]:
    """What a step is made from, around the row that is asked about: nothing in it gives the answer away."""
    trace, made = session.trace, []
    for each in made_from(trace, scene.view.name):
        heads = view_of(trace, each, session.labels, head=0).heads
        view = view_of(trace, each, session.labels, head=scene.place.head * heads // max(scene.view.heads, 1))
        tile = tile_of(trace, view, *around(view, row_of(scene, view)))
        own = f" · head {view.head}" if heads > 1 else ""
        title = f"made from {stop_title(session, each)}{own} · {shape_text(trace.program.shape(each))}"
        made.append(OverlayMatrix(view, scale_for(view.kind, *tile_extremes(tile.values)), tile, title))
    return tuple(made)


def row_of(scene: StepScene, view: View) -> Place:
    """The beginning of the row that is asked about, in a matrix that it is made from."""
    return replace(scene.place, column=0).within(view)


class Answer(LineInput):
    """Takes an answer; space is part of one, but does not begin it."""

    async def on_key(self, event: Key) -> None:
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
        #known { color: $accent; text-style: bold; }
        LineList { height: 4; }
        &.-narrow #both, &.-under #both { layout: vertical; height: 100% !important; }
        &.-narrow #values, &.-under #values { width: 100%; height: 1fr; }
        &.-narrow #box, &.-under #box { width: 100%; height: auto; max-height: 16; }
        &.-short #values { display: none; }
        &.-short #box { max-height: 100%; }
        &.-short .quiet { display: none; }
    }
    """

    def __init__(
        self, question: Question, session: Session, scene: StepScene, made_from: tuple[OverlayMatrix, ...]
    ) -> None:
        title = stop_title(session, scene.view.name)
        super().__init__(f"Predict · {title}")
        self._matrix = f"{title} · head {scene.place.head}" if scene.view.heads > 1 else title
        self._what = step_words(session, scene.view.name).what
        self._question, self._scene, self._operands = question, scene, made_from
        self._answer: int | None = None
        self._revealed = False

    def compose(self) -> ComposeResult:
        with Container(id="both"):
            with Vertical(id="values"):
                yield MatrixPane(id="asked")
                for number in range(len(self._operands)):
                    yield MatrixPane(id=f"operand-{number}", classes="operand")
            yield from super().compose()

    def body(self) -> ComposeResult:
        yield Static(plain(self._what), classes="quiet")
        yield Static(plain(f"\n{self._question.text}"))
        yield LineList()
        yield Answer(placeholder="your answer, or its number")
        yield Static(id="known")

    def on_mount(self) -> None:
        for pane in self.query(MatrixPane):
            pane.cells.can_focus = False
        answers = self.query_one(LineList)
        answers.can_focus = False  # what is typed is an answer, and the arrows move in the list all the same
        answers.styles.height = len(self._question.choices)
        self._draw()
        answers.cursor = None
        self._show_values()
        for pane, each in zip(self.query(".operand").results(MatrixPane), self._operands, strict=False):
            pane.cells.marks_row_alone = True  # a column would say what is asked for
            pane.show_matrix(each.view, each.scale, each.tile, row_of(self._scene, each.view), titles=(each.title,))
        lines = self._scene.view.rows.size * 3 + 4  # of a small matrix, with what is around its rows
        self.query_one("#both").styles.height = max(lines, 24)
        self.query_one(LineInput).focus()

    def on_resize(self) -> None:
        """Ask under the matrices where they show no numbers beside the question."""
        width = self.app.size.width
        matrices = ((self._scene.view, self._scene.scale), *((each.view, each.scale) for each in self._operands))
        self.set_class(any(width * 3 // 5 < columns_needed(*each) <= width for each in matrices), "-under")

    def actions(self) -> Sequence[Action]:
        return PREDICTED if self._revealed else self.ACTIONS

    def on_key(self, event: Key) -> None:
        """The arrows move in the list while an answer is typed; space before anything is typed goes on."""
        if event.key in ("up", "down") and not self._revealed:
            event.stop()
            self.query_one(LineList).action_step(1 if event.key == "down" else -1, 0)
        elif event.key == "space" and not self.query_one(LineInput).value:
            event.stop()
            self.action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        place = chosen(self._question, event.value) if event.value.strip() else None
        if place is not None and not self._revealed:
            self.query_one(LineList).cursor = place

    def on_input_submitted(self, event: Input.Submitted) -> None:
        typed = event.value.strip()
        self._reveal(chosen(self._question, typed) if typed else self.query_one(LineList).cursor, typed)

    @on(LineList.Chosen)
    def _picked(self, event: LineList.Chosen) -> None:
        self._reveal(event.index, "")

    def action_leave(self) -> None:
        """Close; what was answered counts."""
        self.dismiss(self._answer == self._question.right if self._revealed else None)

    def _reveal(self, answer: int | None, typed: str) -> None:
        if self._revealed:
            self.action_leave()
            return
        if answer is None and not typed:
            self.query_one("#known", Static).update(plain(f"{NOTHING_CHOSEN}: ↑↓ or type an answer; space skips"))
            return
        self._answer, self._revealed = answer, True
        self.query_one("#known", Static).update(plain(self._question.verdict(answer, typed)))
        self.query_one(LineInput).value = ""
        self._draw()
        self._show_values()
        self._show_keys()
        self.query_one("#box").scroll_end(animate=False)

    def _show_values(self) -> None:
        """What the step is made from, and once it is answered the step, with the cursor on the answer.

        Where it is made from nothing, its cells are empty until then.
        """
        scene, revealed = self._scene, self._revealed
        hidden = bool(self._operands) or self._question.hides_shape
        self.query_one("#values").set_class(hidden and not revealed, "-hidden")
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


def predict(explored: Exploration, port: Port, asked: Counter[str]) -> None:
    """Ask about the step that is shown, and keep the score; where the step was `asked` about, another question."""
    scene, session, stop = explored.step, explored.session, explored.position.stop
    if scene is None:
        port.say(port.hint("there is nothing to predict here: go to a step with {step.next}"))
        return
    number, trace = asked[stop], session.trace
    asked[stop] += 1

    def answered(right: bool | None) -> None:  # noqa: FBT001 - what the screen gives
        if right is not None:
            port.say(f"{count_answer(right=right)} · {port.hint('{predict} asks again')}")

    port.ask(
        "predict",
        lambda _: (question(trace, scene.view, scene.place, number), operands(session, scene)),
        lambda made: port.open(PredictScreen(made[0], session, scene, made[1]), answered),
        trace.pending([each for each in made_from(trace, stop) if each in trace.program.by_name]),
    )
