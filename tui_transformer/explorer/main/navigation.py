"""Moving, and how one looks: from stop to stop, head to head and pane to pane, along terms and back; as a tool asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from textual.widget import Widget
from textual.widgets import Input

from tui_transformer.engine.explanation import Operand
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.program import Grain
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.user_files import hand_over
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.records import replace
from tui_transformer.report.differences import TOLERANCE
from tui_transformer.session.exploration import Exploration, Way
from tui_transformer.session.pane_fit import SHORT
from tui_transformer.session.position import Position, Search, destination, head_at, names, next_stop
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.step_scene import has_cell
from tui_transformer.session.view_state import Shown, ViewState
from tui_transformer.session.whole.scene import neighbour_box, reader, standing
from tui_transformer.session.words import TEMPERATURES, WORDS
from tui_transformer.views.step_view import Place, place_of


class Navigation:
    """Where to go from where one is, and how to look at it; the explorer as its tools see it, a `Port`.

    Attributes:
        worker: The thread of the engine.
        background: Where work that goes on without its screen is kept.
        ask: Does work now if it is small, else on the worker; then uses what it gave.
        say: Shows a message that goes away by itself.
        open: Puts a screen in front, and gives its result to a function.
        begin_tour: Begins a tour of what is explored, by its name.
        end_tour: Leaves the tour that goes on, if one does.
    """

    def __init__(
        self, explored: Exploration, presenter: Presenter, requests: Requests, worker: Worker, background: Background
    ) -> None:
        self._explored, self._presenter, self._panes = explored, presenter, presenter.panes
        self._screen = presenter.panes.screen
        self.worker, self.background, self.ask = worker, background, requests.ask
        self.say, self.open = self._screen.say, self._screen.open
        self.begin_tour: Callable[[str], None] = lambda _: None
        self.end_tour: Callable[[], None] = lambda: None
        self._query_head, self._search = 0, Search()

    @property
    def session(self) -> Session:
        return self._explored.session

    @property
    def position(self) -> Position:
        return self._explored.position

    @property
    def view(self) -> ViewState:
        return self._explored.view

    # What tools ask for

    def change(self, session: Session, at: Position | None = None) -> None:
        """Explore something else, at a position if one is given; undo takes it back. Another model ends a tour."""
        if (session.model.name, session.model.folder) != (self.session.model.name, self.session.model.folder):
            self.end_tour()
        if at is not None:
            self._explored.trail.append(self.position)
            self._explored.position = at
        self._explored.history.push(session)
        self._presenter.show_session()

    def turn_back(self, way: Way) -> bool:
        """Take the last change back, or make it again; whether there was one."""
        turned = self._explored.history.turn(way)
        if turned:
            self._presenter.show_session()
        return turned

    def go(self, position: Position) -> None:
        """Show another stop or cell."""
        self._explored.go(position)
        self._presenter.show()

    def follow(self, position: Position) -> None:
        """Go to another cell, and remember where one came from."""
        uncover(self._explored, self._panes.shown, position)
        self._explored.follow(position)
        self._presenter.show()

    def visit(self, position: Position) -> None:
        """Show a cell in the matrix, if what is explored now has its step."""
        if not self._explored.has(position.stop):
            self.say(f"{position.stop}: no step of what is explored now")
            return
        self._explored.trail.clear()
        uncover(self._explored, self._panes.shown, position)
        self.go(position)
        self._presenter.focus("matrix")

    def written(self, name: str, says: str = "") -> None:
        """Hand a file that was written to a browser that has to keep it itself, and say so."""
        became = hand_over(self._screen.app, name)
        self.say(says or became)

    def hint(self, text: str) -> str:
        """A text that names keys by their meanings, `{undo} takes it back`, with the keys that are in use."""
        return hint(self._screen.app, text)

    def banner(self, line: Widget) -> None:
        """Show a line above everything, unless one of its kind is there."""
        if not self._screen.query(type(line)):
            self._screen.mount(line)

    # To another step

    def go_to_stop(self, stop: str) -> None:
        """Go to a stop at the same cell; where one came from is of no use there."""
        program, position = self._explored.session.trace.program, self._explored.position
        here, place = position.stop, position.place
        if head_at(program, self._query_head, "", here) != place.head:
            self._query_head = head_at(program, place.head, here, "")
        self._explored.trail.clear()
        self.go(Position(stop, replace(place, head=head_at(program, self._query_head, "", stop))))

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
        session = self.session
        read = partial(destination, session, self.position.stop)
        hint = f"a number from 1 to {len(session.stops)}, a step such as weights, or 0.weights of layer 0"
        self.open(*asking("Go to", read, self.go_to_stop, hint=hint, suggestions=names(session)))

    def ask_what(self) -> None:
        """Ask for a part of a token, of a step's name or of a word, and go to the first that is found."""
        hint = self.hint("a token of the sentence, a step, a word; then {match.next} goes to the next match")
        session, begin = self.session, partial(self._search.begin, self.session)
        self.open(*asking("Find", begin, lambda _: self.go_to_match(1), hint=hint, suggestions=names(session)))

    def go_to_match(self, by: int) -> None:
        """Go to the next match of what was looked for, or the one before; back leads where one came from."""
        try:
            position, says = self._search.turn(self.session, self.position, by)
        except InputError as error:
            self.say(self.hint(str(error)))
            return
        self.follow(position)
        self._presenter.focus("matrix")
        self.say(says)

    def go_to_box(self, across: int, down: int) -> None:
        """Go to the box beside the current one in the whole."""
        scene = self._explored.scene
        bands = scene.whole.bands if scene is not None and scene.whole is not None else ()
        here = standing(self.session, self.position).stop
        self.go_to_stop(neighbour_box(self.session.trace.program, [each for each, _ in bands], here, across, down))

    def go_into(self, stop: str, head: int | None, row: int | None) -> None:
        """Go to a step, and to the head and row of it that are given."""
        place = self.position.place
        if head is None:
            head = head_at(self.session.trace.program, place.head, self.position.stop, stop)
        self._explored.trail.clear()
        self.go(Position(stop, Place(head, place.row if row is None else row, place.column)))

    # To another cell of the step

    def go_to_cell(self, **place: int) -> None:
        """Go to the head, row or column that is given."""
        self.go(replace(self.position, place=replace(self.position.place, **place)))

    def turn_head(self, direction: int) -> None:
        """Go to the next or previous head."""
        scene = self._explored.step
        if scene is not None and scene.view.heads:
            self.go_to_cell(head=(self.position.place.head + direction) % scene.view.heads)

    def go_to_token(self, which: int, place: int) -> None:
        """Make a token of a sentence the current row, or the current column where the columns are its tokens."""
        name, scene = list(self.session.sequences)[which], self._explored.step
        column = scene is not None and scene.view.rows.sequence != name and scene.view.columns.sequence == name
        there = replace(self.position.place, **{"column" if column else "row": place})
        uncover(self._explored, self._panes.shown, replace(self.position, place=there))
        self.go_to_cell(row=there.row, column=there.column)

    def turn_token(self, by: int) -> None:
        """Go to another row, so many tokens on."""
        self.go_to_cell(row=max(self.position.place.row + by, 0))

    # Along a term, inside, and back

    def follow_operand(self, operand: Operand) -> None:
        """Go to the cell that a term was read from: of the value, or of the gradient where that is the operand."""
        name = operand.name.removeprefix(GRADIENT)
        if self.session.backward and self._panes.shown != "both":
            self._explored.change_view(wanted="overlay" if name != operand.name else "value")
        self.follow(Position(name, place_of(self.session.trace.program.axes(name), operand.index)))

    def look_inside(self) -> None:
        """Open the inside of the cell under the cursor; words have none and are read where they stand."""
        from tui_transformer.explorer.main.inside import InsideScreen, Spot

        scene, session = self._explored.step, self.session
        if scene is None:
            self._presenter.focus("matrix")
            return
        gradient = scene.working is not None and scene.working.name.startswith(GRADIENT)
        begun = Spot.at(session, scene.view.name, scene.place, gradient=gradient)

        def leave(left: Spot | None) -> None:
            """Show the cell that was left; where it is of another step, esc goes back to where one began."""
            if left is not None and left != begun:
                place = left.place(self.session)
                if left.name == begun.name:
                    self.go(replace(self.position, place=place))
                else:
                    self.follow(Position(left.name, place))

        self.open(InsideScreen(self, begun), leave)

    def follow_weights(self) -> None:
        """Go to the first weight that the step reads, and back."""
        program, stop, trail = self.session.trace.program, self.position.stop, self._explored.trail
        if stop in program.weights and trail:
            self.go(trail.pop())
        elif (weight := self._explored.first_weight) is not None:
            self.follow(Position(weight))
        elif stop in program.by_name:
            self.say("this step has no weights")

    def follow_first_difference(self) -> None:
        """Go to the first step that differs in what is compared, to the cell with the largest difference."""
        session, comparison = self.session, self.session.comparison
        if session.overlay.kind != "trace":
            self.say(self.hint("nothing is compared: {compare} compares"))
        elif comparison is None:
            self.say("the steps are being compared")
        elif comparison.first is None:
            self.say(f"nothing differs: {len(comparison.differences)} steps agree within {TOLERANCE:g}")
        else:
            index, axes = comparison.differences[comparison.first].index, session.trace.program.axes(comparison.first)
            self.follow(Position(comparison.first, place_of(axes, index) if index else Place()))

    def follow_vocabulary(self) -> None:
        """Go to the vocabulary, where the model has one; from there, open another one."""
        if self.position.stop == VOCABULARY:
            open_tool("vocabulary", self)
        elif self.session.model.vocabulary is None:
            self.say("this model has no vocabulary")
        else:
            self.follow(self.position.at(VOCABULARY))
            self._presenter.focus("matrix")

    def back(self) -> None:
        """End a computation, a search or a zoom; else go back where a term was followed from; else to the matrix."""
        if self._presenter.stop():
            return
        if isinstance(self._screen.focused, Input):
            self._presenter.focus("matrix")
            return
        if self._explored.view.zoom is not None:
            self.zoom()
        elif self._explored.trail:
            self.go(self._explored.trail.pop())
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
        if self._panes.told and self._screen.size.height < SHORT:
            self.say("beside the card there is no room for the whole: leave the tour first")
            return
        self._explored.change_view(whole=not self._panes.whole)
        self._presenter.focus("matrix" if self._panes.whole else "whole")

    # At the same cell in another way

    def look(self, **changes: Any) -> None:
        """Change how one looks at it."""
        self._explored.change_view(**changes)
        self._presenter.show()

    def turn_order(self) -> None:
        """Terms of a cell in their order, or the largest first."""
        self.look(by_size=not self._explored.view.by_size)

    def next_shown(self) -> None:
        """Draw the values and what is beside them; then one of them alone, or the difference."""
        if self.session.overlay.kind == "nothing":
            self.say(self.hint("there is nothing beside: {backward} shows gradients, {compare} compares"))
        else:
            self.look(wanted=self._panes.shown_further(1))

    def next_chart(self) -> None:
        """Draw the next chart of those that fit the step."""
        self.look(chart=self._explored.view.chart + 1)

    def share_scale(self) -> None:
        """Use one scale for all layers, or one a step."""
        shared = not self._explored.view.shared_scale
        self.say("one scale for this step in all layers" if shared else "a scale for each step")
        self.look(shared_scale=shared)

    def hide(self, which: str) -> None:
        """Leave special tokens, or the first, out of attention weights; the rest of a row sums to 1 again."""
        hidden = self._explored.view.hidden.turned(which)
        self.say(hidden.text or "no token is hidden")
        self.look(hidden=hidden)

    def warm(self, steps: int) -> None:
        """List the most likely words at a higher or lower temperature."""
        place = TEMPERATURES.index(self._explored.view.temperature) + steps
        if 0 <= place < len(TEMPERATURES):
            self._explored.change_view(temperature=TEMPERATURES[place])
            if self.position.stop in WORDS:
                self._presenter.show()


def uncover(explored: Exploration, shown: Shown, position: Position) -> None:
    """Draw the values of a step, where what is drawn in their place has not this cell."""
    session, stop = explored.session, position.stop
    if session.overlay.kind != "trace" or shown not in ("overlay", "difference"):
        return
    programs = session.trace.program, session.other.trace.program
    known = all(stop in each.by_name or stop in each.weights for each in programs)
    if known and not has_cell(session, stop, position.place):
        explored.change_view(wanted="value")
