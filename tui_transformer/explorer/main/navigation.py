"""Moving: from stop to stop, from head to head, along terms and back."""

from __future__ import annotations

from dataclasses import replace

from tui_transformer.engine.explanation import Operand
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.program import Grain
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.panes.text import WORDS
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.main.whole.moving import neighbour_box, reader, standing
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.state.going import destination, names
from tui_transformer.explorer.state.heads import head_at, query_head
from tui_transformer.explorer.state.position import Position, next_stop
from tui_transformer.explorer.state.session import VOCABULARY
from tui_transformer.report.comparison import TOLERANCE
from tui_transformer.views.step_view import Place, place_of


class Navigation:
    """Where to go from where one is."""

    def __init__(self, explored: Exploration, panes: Panes, presenter: Presenter, port: MainPort) -> None:
        """Move in what a presenter shows."""
        self._explored, self._panes, self._presenter, self._port = explored, panes, presenter, port
        self._query_head = 0

    def go_to_stop(self, stop: str) -> None:
        """Go to a stop at the same cell; where one came from is of no use there."""
        explored, program = self._explored, self._explored.session.trace.program
        here, place = explored.position.stop, explored.position.place
        if head_at(program, self._query_head, "", here) != place.head:
            self._query_head = query_head(program, place.head, here)
        head = head_at(program, self._query_head, "", stop)
        explored.trail.clear()
        self._port.go(Position(stop, replace(place, head=head)))

    def step(self, grain: Grain, direction: int) -> None:
        """Go to the next or previous operation, sublayer or layer."""
        session, stop = self._explored.session, self._explored.position.stop
        if stop not in session.stops:
            stop = reader(session.trace.program, stop)
            stop = stop if stop in session.stops else session.stops[0]
        following = next_stop(session.stops, stop, session.trace.program, grain, direction)
        if following is not None:
            self.go_to_stop(following)

    def turn_head(self, direction: int) -> None:
        """Go to the next or previous head."""
        scene = self._explored.scene
        if scene is not None and scene.view.heads:
            self.go_to_head((self._explored.position.place.head + direction) % scene.view.heads)

    def go_to_head(self, head: int) -> None:
        """Go to another head of the same step, at the same cell."""
        position = self._explored.position
        self._port.go(replace(position, place=replace(position.place, head=head)))

    def go_to_token(self, which: int, place: int) -> None:
        """Make a token of a sentence the current row, or the current column where the columns are its tokens."""
        name = list(self._explored.session.sequences)[which]
        scene, position = self._explored.scene, self._explored.position
        column = scene is not None and scene.view.rows.sequence != name and scene.view.columns.sequence == name
        changed = {"column": place} if column else {"row": place}
        self._port.go(replace(position, place=replace(position.place, **changed)))

    def turn_token(self, by: int) -> None:
        """Go to another row, so many tokens on."""
        place = self._explored.position.place
        self._port.go(replace(self._explored.position, place=replace(place, row=max(place.row + by, 0))))

    def ask_where(self) -> None:
        """Ask for a step, a layer or a number, and go there."""
        session, stop = self._explored.session, self._explored.position.stop

        def go(typed: str | None) -> None:
            if typed is not None:
                self.go_to_stop(destination(session, stop, typed))

        prompt = PromptScreen(
            "Go to",
            hint=f"a number from 1 to {len(session.stops)}, a step such as weights, or 0.weights of layer 0",
            check=lambda typed: destination(session, stop, typed),
            suggestions=names(session),
        )
        self._port.open(prompt, go)

    def go_to_box(self, across: int, down: int) -> None:
        """Go to the box beside the current one in the whole."""
        position = standing(self._explored.session, self._explored.position)
        program, placed = self._explored.session.trace.program, self._presenter.whole.placed
        self.go_to_stop(neighbour_box(program, placed, position.stop, across, down))

    def go_into(self, stop: str, head: int | None, row: int | None) -> None:
        """Go to a step, and to the head and row of it that are given."""
        place = self._explored.position.place
        if head is None:
            head = head_at(self._explored.session.trace.program, place.head, self._explored.position.stop, stop)
        chosen = Place(head, place.row if row is None else row, place.column)
        self._explored.trail.clear()
        self._port.go(Position(stop, chosen))

    def follow_operand(self, operand: Operand) -> None:
        """Go to the cell that a term was read from: of the value, or of the gradient where that is the operand."""
        explored, name = self._explored, operand.name.removeprefix(GRADIENT)
        if explored.session.backward and self._panes.shown != "both":
            explored.change_view(wanted="overlay" if name != operand.name else "value")
        axes = explored.session.trace.program.axes(name)
        self._port.follow(Position(name, place_of(axes, operand.index)))

    def follow_weights(self) -> None:
        """Go to the first weight that the step reads, and back."""
        program, stop, trail = self._explored.session.trace.program, self._explored.position.stop, self._explored.trail
        if stop in program.weights and trail:
            self._port.go(trail.pop())
        elif stop in program.by_name:
            weights = [name for name in program.step(stop).inputs if name in program.weights]
            if weights:
                self._port.follow(Position(weights[0]))
            else:
                self._port.say("this step has no weights")

    def follow_word(self, token_id: int) -> None:
        """Go to the row of a word in the embedding table."""
        self._port.follow(Position("embedding.tokens.weight", Place(row=token_id)))

    def follow_first_difference(self) -> None:
        """Go to the first step that differs in what is compared, to the cell with the largest difference."""
        session = self._explored.session
        comparison = session.comparison
        if session.overlay.kind != "trace":
            self._port.say(self._port.hint("nothing is compared: {compare} compares"))
        elif comparison is None:
            self._port.say("the steps are being compared")
        elif comparison.first is None:
            self._port.say(f"nothing differs: {len(comparison.differences)} steps agree within {TOLERANCE:g}")
        else:
            index = comparison.differences[comparison.first].index
            axes = session.trace.program.axes(comparison.first)
            self._port.follow(Position(comparison.first, place_of(axes, index) if index else Place()))

    def back(self) -> None:
        """Go back where a term was followed from; else to the matrix."""
        if self._explored.trail:
            self._port.go(self._explored.trail.pop())
        else:
            self._panes.focus("matrix")

    def return_to_shown(self) -> None:
        """Go back to what is still on the screen, when a computation was ended."""
        explored = self._explored
        if explored.scene is not None:
            explored.position = Position(explored.scene.view.name, explored.scene.place)
        elif explored.position.stop not in (VOCABULARY, *WORDS):
            explored.position = Position(explored.session.stops[0])
        self._presenter.show_position()

    def follow_vocabulary(self) -> None:
        """Go to the vocabulary, where the model has one."""
        if self._explored.session.model.vocabulary is None:
            self._port.say("this model has no vocabulary")
        else:
            self._port.follow(self._explored.position.at(VOCABULARY))
            self._panes.focus("matrix")
