"""The presenter: turns session, position and view state into a scene, and hands each pane what it draws of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tui_transformer.explorer.main.cell import Cell, cell_of
from tui_transformer.explorer.main.details import Details
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import OVERLAY, PANES, Panes
from tui_transformer.explorer.main.lines import Lines
from tui_transformer.explorer.main.overlay import apart, details
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.pair import MatrixPair, need_of
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.text import WORDS, Drawn, TextPane
from tui_transformer.explorer.main.panes.vocabulary import VocabularyPane
from tui_transformer.explorer.main.scene import Scene, gather, scene_cost, tile_of
from tui_transformer.explorer.main.whole.moving import reader
from tui_transformer.explorer.main.whole_view import Whole
from tui_transformer.explorer.shell.keymap import first_key, hint
from tui_transformer.explorer.shell.requests import AT_ONCE, Requests, draw_together
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.near import Near
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place

OF_POSITION = ("scene", "text", "cell", "tile", f"tile {OVERLAY}", "heads", "chart", "near", "whole")
"""Kinds of work for a position, of no use once another one is shown."""

NUMBERS = {"nothing": "", "gradient": " · ‖∂loss/∂x‖", "trace": " · max |a − b|"}
"""Meaning of the numbers in the list of steps."""


class Presenter:
    """Shows what is explored; nothing is drawn but through it.

    Attributes:
        panes: The panes that it hands them to.
        lines: The one-line texts and the sentence.
        details: Heads and chart.
        whole: Every step as a small picture.
    """

    def __init__(self, explored: Exploration, panes: Panes, requests: Requests) -> None:
        """Show nothing yet."""
        self._explored, self.panes, self._requests = explored, panes, requests
        self._screen = panes.screen
        self.lines = Lines(explored, panes, requests)
        self.details = Details(explored, panes, requests, self._show_near)
        self.whole = Whole(explored, panes, requests)
        self._shown: tuple[Session, Position] | None = None

    @property
    def about(self) -> str:
        """Meaning of the stop, why it is there and what to look for, as Markdown."""
        session, stop = self._explored.session, self._explored.position.stop
        return f"# {texts.stop_title(session, stop)}\n\n" + self._about(stop).replace("\n", "\n\n")

    def _about(self, stop: str) -> str:
        return texts.about(self._explored.session, stop, first_key(self._screen.app, "tour"))

    def show_active(self) -> None:
        """Show which pane has the keys; the whole may have another room beside it."""
        self.lines.show()
        self.whole.fit()

    # The session and the position

    def show_session(self) -> None:
        """Show what is explored anew, at the same position as far as it has one; compare in the background."""
        explored = self._explored
        explored.stay()
        session = explored.session
        if (words := session.model.vocabulary) is not None:
            name = texts.vocabulary_name(session.model, words)
            self._screen.query_one(VocabularyPane).show(words, session.encoding.ids, name)
        self.lines.forget_times()
        self.panes.fit(self._screen.size)
        self.show_position()
        if session.overlay.kind == "trace" and session.comparison is None:
            self._requests.ask(
                "compare", AT_ONCE + 1, lambda task: session.compare(task.report), lambda _: self.show_position()
            )

    def show_position(self) -> None:
        """Show the stop and the cell that the position names; while the key is held, at the last press."""
        if self._requests.put_off(self.show_position):
            return
        explored = self._explored
        self._requests.cancel(*OF_POSITION)
        self.details.stop()
        self.panes.show_stop()
        self._show_steps()
        if explored.position.stop in (VOCABULARY, *WORDS):
            self._show_words(explored.position.stop)
            return
        session, position, view, shown = explored.session, explored.position, explored.view, self.panes.shown
        self._requests.ask(
            "scene",
            scene_cost(session, position.stop, shared=view.shared_scale),
            lambda task: gather(session, position, view, shown, task.report),
            self._show_scene,
            self._stay,
        )

    def _stay(self) -> None:
        """Be where one was, where another step cannot be computed: what is on the screen is that of before."""
        explored, scene = self._explored, self._explored.scene
        if self._shown is not None and self._shown[0] is explored.session:
            explored.position = self._shown[1] if scene is None else Position(scene.view.name, scene.place)
            self.panes.show_stop()
            self._show_steps()
            self._settle()

    def _show_steps(self) -> None:
        session, pane = self._explored.session, self._screen.query_one(StepsPane)
        numbers = details(session)
        title = PANES["steps"] + (NUMBERS[session.overlay.kind] if numbers else "")
        if pane.border_title != title:  # even the same title would draw the whole list anew
            pane.border_title = title
        program, stop = session.trace.program, self._explored.position.stop
        here = reader(program, stop) if stop in program.weights else stop
        pane.show_steps(program, session.stops, here, numbers)

    # Stops that are words

    def _show_words(self, stop: str) -> None:
        self._explored.scene = None
        self.details.show_heads_pane(shown=False)
        self._show_panes()
        self._screen.query_one(CellPane).tell(self._about(stop))
        if stop in WORDS:
            session, words, warmth = self._explored.session, WORDS[stop], self._explored.view.temperature
            self._screen.query_one(TextPane).border_title = words.title
            keys = partial(hint, self._screen.app)

            def write(task: Task) -> Drawn:
                return words.made(session, task.report, keys, warmth)

            self._requests.ask("text", words.cost(session), write, self._show_text)
        self._settle()

    def _show_text(self, drawn: Drawn) -> None:
        self._screen.query_one(TextPane).show(drawn)
        self._show_steps()
        self.lines.show()

    # Stops that are matrices

    def _show_scene(self, scene: Scene) -> None:
        draw_together(self._screen)
        explored = self._explored
        explored.scene = scene
        head = scene.place.head if scene.view.heads else explored.position.place.head
        explored.position = replace(explored.position, place=replace(scene.place, head=head))
        self.lines.took(scene.view.name, scene.seconds)
        self._show_pair(scene)
        if scene.overlay is not None:
            self._show_steps()
        self.details.show_heads_pane(shown=scene.view.heads > 1)
        self._show_panes()
        self._settle()

    def _show_pair(self, scene: Scene) -> None:
        """The step's values, the overlay, or both."""
        screen, session = self._screen, self._explored.session
        both = scene.shown == "both" and scene.overlay is not None
        screen.set_class(both, "-both")
        pair = screen.query_one(MatrixPair)
        self.panes.give_room(need_of(scene))
        titles = texts.matrix_titles(session, scene, wide=self.panes.wide, both=both)
        pair.show(scene, titles, texts.scale_note(scene), self.panes.room_for_pair())
        pair.say(visible(apart(session, scene.view.name)))
        screen.set_class(pair.has_class("-stacked"), "-stacked")

    def _show_panes(self) -> None:
        """Hand the scene to the panes that draw it by themselves."""
        for pane in self.panes.drawing:
            pane.show_scene(self._explored.session, self._explored.scene)

    def _settle(self) -> None:
        """The texts now, heads and chart a moment later."""
        self._shown = self._explored.session, self._explored.position
        self.panes.keep_focus()
        self.lines.show()
        self.details.follow(heads=True)
        self.whole.show()

    # Another cell of the matrix that is shown

    def move_cell(self, row: int, column: int) -> None:
        """Show how another cell was made; the matrix stays as it is drawn."""
        explored, shown = self._explored, self._explored.scene
        if shown is None or self._requests.put_off(partial(self.move_cell, row, column)):
            return
        place = replace(shown.place, row=row, column=column).within(shown.view).within(shown.drawn)
        head = explored.position.place.head
        if (place.row, place.column) != (row, column):
            self._put_cursors(place)
        session, name, hidden = explored.session, shown.view.name, explored.view.hidden
        explored.position = replace(explored.position, place=replace(place, head=head))
        near = shown.near if place.row == shown.place.row or shown.near is None else ()
        explored.scene = replace(shown, place=place, working=None, near=near)
        self._requests.ask("cell", 0, lambda _: cell_of(session, name, place, shown.shown, hidden), self._show_cell)

    def _put_cursors(self, place: Place) -> None:
        """Put the cursors back to a cell that the step has: what is beside may have more."""
        for pane in ("matrix", OVERLAY):
            self.panes.heat_map(pane).cursor = place.row, place.column

    def _show_cell(self, cell: Cell) -> None:
        draw_together(self._screen)
        if self._explored.scene is None:
            return
        self._explored.scene = replace(self._explored.scene, working=cell.working, values=cell.values)
        self._show_panes()
        self.lines.show()
        self.details.follow()
        self.whole.show()

    def _show_near(self, near: tuple[Near, ...]) -> None:
        """Show the nearest words of the row."""
        if self._explored.scene is not None:
            self._explored.scene = replace(self._explored.scene, near=near)
            self._show_panes()
            self.lines.show()

    def supply_tile(self, rows: range, columns: range, heat_map: HeatMap) -> None:
        """Give a matrix the cells that it needs to be drawn."""
        scene, trace = self._explored.scene, self._explored.session.trace
        if scene is None:
            return
        view, overlay = scene.view, scene.overlay
        cost = 0 if view.name in trace.plan.names else AT_ONCE + 1
        if overlay is not None and (scene.alone is not None or heat_map is self.panes.heat_map(OVERLAY)):
            self._requests.ask(f"tile {OVERLAY}", cost, lambda _: overlay.view.tile(rows, columns), heat_map.supply)
            return
        self._requests.ask("tile", cost, lambda _: tile_of(trace, view, rows, columns), heat_map.supply)
