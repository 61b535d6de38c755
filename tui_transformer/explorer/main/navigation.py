"""Moving, and how one looks: from stop to stop, head to head and pane to pane, along terms and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tui_transformer.engine.explanation import Operand
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.program import Grain
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.opening import TOOLS
from tui_transformer.report.differences import TOLERANCE
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.pane_fit import room_for_whole
from tui_transformer.session.position import Position, destination, head_at, names, next_stop, query_head
from tui_transformer.session.session import VOCABULARY
from tui_transformer.session.view_state import Size, next_shown
from tui_transformer.session.whole.scene import neighbour_box, reader, standing
from tui_transformer.session.words import TEMPERATURES, WORDS
from tui_transformer.views.step_view import Place, place_of


class Navigation:
    """Where to go from where one is, and how to look at it."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: MainPort) -> None:
        self._explored, self._panes, self._presenter, self._port = explored, presenter.panes, presenter, port
        self._query_head = 0

    # To another step

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
        scene, session = self._explored.scene, self._explored.session
        bands = scene.whole.bands if scene is not None and scene.whole is not None else ()
        here = standing(session, self._explored.position).stop
        self.go_to_stop(neighbour_box(session.trace.program, [each for each, _ in bands], here, across, down))

    def go_into(self, stop: str, head: int | None, row: int | None) -> None:
        """Go to a step, and to the head and row of it that are given."""
        place = self._explored.position.place
        if head is None:
            head = head_at(self._explored.session.trace.program, place.head, self._explored.position.stop, stop)
        chosen = Place(head, place.row if row is None else row, place.column)
        self._explored.trail.clear()
        self._port.go(Position(stop, chosen))

    # To another cell of the step

    def go_to_cell(self, **place: int) -> None:
        """Go to the head, row or column that is given."""
        position = self._explored.position
        self._port.go(replace(position, place=replace(position.place, **place)))

    def turn_head(self, direction: int) -> None:
        """Go to the next or previous head."""
        scene = self._explored.step
        if scene is not None and scene.view.heads:
            self.go_to_cell(head=(self._explored.position.place.head + direction) % scene.view.heads)

    def go_to_token(self, which: int, place: int) -> None:
        """Make a token of a sentence the current row, or the current column where the columns are its tokens."""
        name, scene = list(self._explored.session.sequences)[which], self._explored.step
        column = scene is not None and scene.view.rows.sequence != name and scene.view.columns.sequence == name
        self.go_to_cell(**{"column" if column else "row": place})

    def turn_token(self, by: int) -> None:
        """Go to another row, so many tokens on."""
        self.go_to_cell(row=max(self._explored.position.place.row + by, 0))

    # Along a term, and back

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

    def follow_vocabulary(self) -> None:
        """Go to the vocabulary, where the model has one; from there, open another one."""
        if self._explored.position.stop == VOCABULARY:
            TOOLS["vocabulary"](self._port)
        elif self._explored.session.model.vocabulary is None:
            self._port.say("this model has no vocabulary")
        else:
            self._port.follow(self._explored.position.at(VOCABULARY))
            self._presenter.focus("matrix")

    def back(self) -> None:
        """End a computation or a zoom; else go back where a term was followed from; else to the matrix."""
        if self._presenter.stop():
            return
        if self._explored.view.zoom is not None:
            self.zoom()
        elif self._explored.trail:
            self._port.go(self._explored.trail.pop())
        else:
            self._presenter.focus("matrix")

    # To another pane

    def go_to_pane(self, name: str) -> None:
        """Go to a pane; the whole gives way to one that has no room beside it."""
        if self._panes.whole and name not in self._panes.arrangement.names:
            self._explored.change_view(whole=False)
        self._presenter.focus(name)

    def turn_pane(self, direction: int) -> None:
        """Go to the next or previous pane."""
        names = self._panes.arrangement.names
        self._presenter.focus(names[(names.index(self._panes.arrangement.active) + direction) % len(names)])

    def zoom(self) -> None:
        """Give the pane that has the keys the whole terminal, or all panes their places again."""
        self.look(zoom=self._panes.arrangement.active if self._explored.view.zoom is None else None)

    def turn_whole(self) -> None:
        """Show the whole above the step, or the lists of steps and heads instead."""
        if not room_for_whole(Size(*self._panes.screen.size), self._panes.told):
            self._port.say("beside the card there is no room for the whole: leave the tour first")
            return
        self._explored.change_view(whole=not self._panes.whole)
        self._presenter.focus("matrix" if self._panes.whole else "whole")

    # At the same cell in another way

    def look(self, **changes: Any) -> None:
        """Change how one looks at it."""
        self._explored.change_view(**changes)
        self._presenter.show()

    def next_shown(self) -> None:
        """Draw the values and what is beside them; then one of them alone, or the difference."""
        kind = self._explored.session.overlay.kind
        if kind == "nothing":
            self._port.say(self._port.hint("there is nothing beside: {backward} shows gradients, {compare} compares"))
        else:
            self.look(wanted=next_shown(kind, self._panes.shown, wide=self._panes.arrangement.is_wide))

    def next_chart(self) -> None:
        """Draw the next chart of those that fit the step."""
        self.look(chart=self._explored.view.chart + 1)

    def share_scale(self) -> None:
        """Use one scale for all layers, or one a step."""
        shared = not self._explored.view.shared_scale
        self._port.say("one scale for this step in all layers" if shared else "a scale for each step")
        self.look(shared_scale=shared)

    def hide(self, which: str) -> None:
        """Leave special tokens, or the first, out of attention weights; the rest of a row sums to 1 again."""
        hidden = self._explored.view.hidden.turned(which)
        self._port.say(hidden.text or "no token is hidden")
        self.look(hidden=hidden)

    def warm(self, steps: int) -> None:
        """List the most likely words at a higher or lower temperature."""
        place = TEMPERATURES.index(self._explored.view.temperature) + steps
        if 0 <= place < len(TEMPERATURES):
            self._explored.change_view(temperature=TEMPERATURES[place])
            if self._explored.position.stop in WORDS:
                self._presenter.show()
