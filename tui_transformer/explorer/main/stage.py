"""The stage: it holds what is explored and the position, and hands each pane what belongs to it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.content import Content
from textual.events import Resize
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.analysis.token_kinds import Hidden
from tui_transformer.engine.edits import how_set
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.program import Grain
from tui_transformer.explorer.main.charts import chart_of, kinds_of
from tui_transformer.explorer.main.head_pictures import Strip, strip_of
from tui_transformer.explorer.main.layout import BESIDE, TITLES, Layout
from tui_transformer.explorer.main.matrices import Cell, apart, cell_of, details
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.chart import ChartPane
from tui_transformer.explorer.main.panes.pair import MatrixPair
from tui_transformer.explorer.main.panes.sentence import Sentence, SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.text import WORDS, TextPane
from tui_transformer.explorer.main.panes.vocabulary import VocabularyPane
from tui_transformer.explorer.main.scene import Scene, gather, scene_cost, tile_of
from tui_transformer.explorer.shell.actions import ACTIONS
from tui_transformer.explorer.shell.asking import AT_ONCE, draw_together
from tui_transformer.explorer.shell.keymap import in_use
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.state.comparison import Shown, next_shown, shown_in
from tui_transformer.explorer.state.hiding import weight_left
from tui_transformer.explorer.state.history import History
from tui_transformer.explorer.state.position import Position, next_stop
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.inks import INK_CLASSES, Inks, inks_of
from tui_transformer.explorer.widgets.thumbnails import HeadStrip
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place, place_of

SOON = 0.04
"""Seconds after which heads and chart follow the cursor: keys that come faster are not slowed down by them."""

LEAST_SHOWN = 0.00005
"""Seconds of computing a step that are worth saying."""

LOOKING_KINDS = ("scene", "text", "cell", "tile", f"tile {BESIDE}", "heads", "chart")
"""Work that is of no use once another position is shown."""

LIGHT_CHARTS = ("row", "waves")
"""Charts that read one row, whatever the size of the step."""

NUMBERS = {"nothing": "", "gradient": " · ‖∂loss/∂x‖", "trace": " · max |a − b|"}
"""What the numbers in the list of steps are."""


class Stage(Layout):
    """Panes around one position in one session."""

    COMPONENT_CLASSES: ClassVar[set[str]] = INK_CLASSES

    def __init__(self, session: Session, worker: Worker, background: Background) -> None:
        """Show a session from its first stop."""
        super().__init__(worker, Position(session.stops[0]))
        self.history = History(session)
        self.background = background
        self.trail: list[Position] = []
        self.shared_scale = False
        self.wanted: Shown = "both"
        self.hidden = Hidden()
        self.chart_kind = 0
        self._lines: dict[str, Text | str] = {}
        self._times: dict[str, float] = {}
        self._soon: Timer | None = None
        self._heads_due = False

    @property
    def session(self) -> Session:
        """What is explored."""
        return self.history.current

    @property
    def here(self) -> bool:
        """Whether the model is computed on the CPU."""
        return self.session.model.backend.device == "cpu"

    def on_mount(self) -> None:
        """Name the panes and show the first stop."""
        for name, title in TITLES.items():
            self.query_one(f"#{name}", Widget).border_title = title
        self.show_session()
        self.focus_pane("matrix")

    def on_resize(self, event: Resize) -> None:
        """Show all panes, some, or one at a time, as the size allows."""
        was = self.shown
        self._choose_layout(event.size)
        self.show_lines()
        if self.shown != was:
            self.show_position()

    # What is shown

    @property
    def shown(self) -> Shown:
        """Which matrices are drawn, as the room allows."""
        return shown_in(self.session.beside.kind, self.wanted, wide=self.has_class("-wide"))

    def action_shown(self) -> None:
        """Values and what is beside them; then one of them alone, or the difference."""
        kind = self.session.beside.kind
        if kind == "nothing":
            self.say("there is nothing beside: b shows gradients, d compares")
            return
        self.wanted = next_shown(kind, self.shown, wide=self.has_class("-wide"))
        self.show_position()

    def show_session(self) -> None:
        """Show what is explored anew, at the same position as far as it has one."""
        session = self.session
        if not self._has(self.position.stop):
            self.position = Position(session.stops[0])
        if (words := session.model.vocabulary) is not None:
            name = texts.vocabulary_name(session.model, words)
            self.query_one(VocabularyPane).show(words, session.encoding.ids, name)
        self.trail = [position for position in self.trail if self._has(position.stop)]
        self.scene = None
        self._times.clear()
        self.show_position()

    def _has(self, stop: str) -> bool:
        program = self.session.trace.program
        known = stop in self.session.stops or stop in program.by_name
        return known or stop in program.weights or stop in program.givens

    def show_position(self) -> None:
        """Show the stop and the cell that the position names."""
        session, position = self.session, self.position
        for kind in LOOKING_KINDS:
            self.worker.cancel(kind)
        if self._soon is not None:
            self._soon.stop()
        self.update_classes({"-vocabulary": position.stop == VOCABULARY, "-text": position.stop in WORDS})
        self._focus_matrix()
        self._show_steps()
        if position.stop in (VOCABULARY, *WORDS):
            self._show_words(position.stop)
            return
        shared, shown, hidden = self.shared_scale, self.shown, self.hidden
        self.ask(
            "scene",
            scene_cost(session, position.stop, shared=shared),
            lambda task: _with_weight_left(
                session,
                gather(session, position, shared=shared, shown=shown, hidden=hidden, report=task.report),
                hidden,
            ),
            self._show_scene,
        )

    def _show_steps(self) -> None:
        session = self.session
        numbers, pane = details(session), self.query_one(StepsPane)
        title = TITLES["steps"] + (NUMBERS[session.beside.kind] if numbers else "")
        if pane.border_title != title:  # even the same title would draw the whole list anew
            pane.border_title = title
        pane.show_steps(session.trace.program, session.stops, self.position.stop, numbers)

    def _show_words(self, stop: str) -> None:
        """Show a stop that is words, not numbers."""
        self.scene = None
        self._show_strip(shown=False)
        self.query_one(CellPane).clear()
        if stop in WORDS:
            session, pane, words = self.session, self.query_one(TextPane), WORDS[stop]
            pane.border_title, warmth = words.title, pane.temperature
            self.ask(
                "text", words.cost(session), lambda task: words.made(session, task.report, warmth), self._show_made
            )
        self._settle()

    @on(TextPane.Warmed)
    def _warmed(self) -> None:
        if self.position.stop in WORDS:
            self._show_words(self.position.stop)

    def _show_made(self, text: Text) -> None:
        self.query_one(TextPane).update(text)
        self._show_steps()
        self.show_lines()

    def _show_scene(self, scene: Scene) -> None:
        """Show what was gathered."""
        draw_together(self)
        self.scene = scene
        if scene.seconds > self._times.get(scene.view.name, 0.0):
            self._times[scene.view.name] = scene.seconds
        self.position = replace(self.position, place=scene.place)
        self._show_matrices(scene)
        if scene.beside is not None:
            self._show_steps()
        self._show_strip(shown=scene.view.heads > 1)
        self._show_working(scene)
        self._settle()

    def _show_matrices(self, scene: Scene) -> None:
        """The step's values, what is beside them, or both."""
        wide = self.has_class("-wide")
        both = scene.shown == "both" and scene.beside is not None
        self.set_class(both, "-beside")
        pair = self.query_one(MatrixPair)
        titles = texts.matrix_titles(self.session, scene, wide=wide, both=both)
        pair.show(scene, titles, texts.scale_note(scene), self.size - self._around_pair())
        pair.say(visible(apart(self.session, scene.view.name)))
        self.set_class(pair.has_class("-stacked"), "-stacked")

    def _around_pair(self) -> tuple[int, int]:
        """Columns and lines that the other panes take while two matrices are shown, as in the style sheet."""
        steps = 0 if self.has_class("-tight") else 26
        return steps + 38, 1 + 4 + 12 + 1 + self.has_class("-tight")

    def _show_strip(self, *, shown: bool) -> None:
        """Show the strip of heads or not; the class is its own, so that nothing else is styled again."""
        self.query_one(HeadStrip).set_class(not shown, "-absent")

    def _show_working(self, scene: Scene) -> None:
        if scene.working is not None:
            program, labels = self.session.trace.program, self.session.labels
            edited = how_set(self.session.trace.edits, scene.working.name, scene.working.index)
            self.query_one(CellPane).show_working(scene.working, program, labels, scene.values, edited)

    def _settle(self) -> None:
        """The texts now, heads and chart a moment later."""
        if self.active not in self.panes():
            self.focus_pane("matrix")
        self.show_lines()
        self._show_later(heads=True)

    def show_lines(self) -> None:
        """The one-line texts and the sentence."""
        session, stop, scene, inks = self.session, self.position.stop, self.scene, self._inks()
        width = self.size.width
        state = f"{self.requests.doing or texts.state(session, stop)}   "
        seconds = self._times.get(stop, 0.0)
        time_spent = f" · {seconds * 1000:.1f} ms" if seconds >= LEAST_SHOWN else ""
        lines: dict[str, Text | str] = {
            "title": texts.title(session, state, time_spent, width, inks),
            "crumbs": texts.crumbs(session, stop, scene, width, inks),
            "about": texts.about(session, stop),
            "summary": texts.summary(session, stop, scene, inks),
            "tabs": texts.tabs(self.panes(), self.active, inks),
            "keys": texts.keys(in_use(ACTIONS, self.app), width, inks, beside=session.beside.kind != "nothing"),
        }
        for name, content in lines.items():
            if self._lines.get(name) != content:
                self._lines[name] = content
                self.query_one(f"#{name}", Static).update(content, layout=False)
        self.query_one(SentencePane).show(self._sentences())

    def _sentences(self) -> list[Sentence]:
        """The token sequences, with the tokens that the cursor's row and column stand for."""
        scene = self.scene
        if scene is None:
            return [Sentence(encoding) for encoding in self.session.sequences.values()]
        rows, columns, place = scene.view.rows.sequence, scene.view.columns.sequence, scene.place
        words = self.session.model.vocabulary
        return [
            Sentence(encoding, place.row if rows == name else None, place.column if columns == name else None, words)
            for name, encoding in self.session.sequences.items()
        ]

    def _inks(self) -> Inks:
        return inks_of(self)

    # Heads and chart

    def _show_later(self, *, heads: bool = False) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._heads_due |= heads
        self._soon = self.set_timer(SOON, self._show_details)

    def _show_details(self) -> None:
        if self._heads_due and self.scene is not None and self.scene.view.heads > 1:
            session, scene, hidden = self.session, self.scene, self.hidden
            cost = 4 * math.prod(session.trace.program.shape(scene.view.name))
            self.ask("heads", cost, lambda task: strip_of(session, scene, hidden, task.report), self._show_heads)
        self._heads_due = False
        self.show_chart()

    def _show_heads(self, found: Strip) -> None:
        strip = self.query_one(HeadStrip)
        title = " · ".join(filter(None, (TITLES["heads"], found.what)))
        if strip.border_title != title:
            strip.border_title = Content(title)
        if self.scene is not None:
            strip.show(found.tiles, self.scene.place.head, found.scale)

    def show_chart(self) -> None:
        """The chart that was chosen, of those that fit the stop."""
        scene = self.scene
        if scene is None:
            self.query_one(ChartPane).show(None)
            return
        session, view = self.session, scene.drawn
        kinds = kinds_of(session, view.name)
        kind = kinds[self.chart_kind % len(kinds)]
        cost = 0 if kind in LIGHT_CHARTS else 10 * view.rows.size * view.columns.size * (view.heads or 1)
        self.ask("chart", cost, lambda _: chart_of(session, kind, view, scene.place), self.query_one(ChartPane).show)

    # Moving

    def go(self, position: Position) -> None:
        """Show another stop or cell."""
        moved = position.stop != self.position.stop
        self.position = position
        if moved:
            self.chart_kind = 0
        self.show_position()

    def action_step(self, grain: Grain, direction: int) -> None:
        """The next or previous operation, sublayer or layer."""
        stop = self.position.stop
        if stop not in self.session.stops:
            stop = self._owner(stop)
        found = next_stop(self.session.stops, stop, self.session.trace.program, grain, direction)
        if found is not None:
            self.trail.clear()
            self.go(self.position.at(found))

    def _owner(self, name: str) -> str:
        """The step that reads a weight or an input."""
        steps = self.session.trace.program.steps
        return next((step.name for step in steps if name in step.inputs), self.session.stops[0])

    def action_head(self, direction: int) -> None:
        """The next or previous head."""
        if self.scene is not None and self.scene.view.heads:
            self.go_to_head((self.position.place.head + direction) % self.scene.view.heads)

    def go_to_head(self, head: int) -> None:
        """Another head of the same step, at the same cell."""
        self.go(replace(self.position, place=replace(self.position.place, head=head)))

    def action_pane(self, name: str) -> None:
        """Go to a pane."""
        self.focus_pane(name)

    def action_next_pane(self, direction: int) -> None:
        """The next or previous pane."""
        panes = self.panes()
        place = panes.index(self.active) if self.active in panes else 0
        self.focus_pane(panes[(place + direction) % len(panes)])

    def action_weights(self) -> None:
        """The first weight that the step reads, and back."""
        program = self.session.trace.program
        if self.position.stop in program.weights and self.trail:
            self.go(self.trail.pop())
        elif self.position.stop in program.by_name:
            weights = [name for name in program.step(self.position.stop).inputs if name in program.weights]
            if weights:
                self.follow(Position(weights[0]))
            else:
                self.say("this step has no weights")

    def follow(self, position: Position) -> None:
        """Go to another cell, and remember where one came from."""
        self.trail.append(self.position)
        self.go(position)

    def action_back(self) -> None:
        """End a computation; else go back where a term was followed from; else to the matrix."""
        if self.requests.cancel_all():
            self._return_to_shown()
        elif self.trail:
            self.go(self.trail.pop())
        else:
            self.focus_pane("matrix")

    def _return_to_shown(self) -> None:
        """Go back to what is still on screen."""
        if self.scene is not None:
            self.position = Position(self.scene.view.name, self.scene.place)
        elif self.position.stop not in (VOCABULARY, *WORDS):
            self.position = Position(self.session.stops[0])
        self.show_position()

    def action_next_chart(self) -> None:
        """The next chart of those that fit the step."""
        self.chart_kind += 1
        self.show_chart()

    def action_scale(self) -> None:
        """One scale for all layers, or one a step."""
        self.shared_scale = not self.shared_scale
        self.say("one scale for this step in all layers" if self.shared_scale else "a scale for each step")
        self.show_position()

    def action_hide(self, which: str) -> None:
        """Leave special tokens, or the first, out of attention weights; the rest of a row sums to 1 again."""
        self.hidden = replace(self.hidden, **{which: not getattr(self.hidden, which)})
        self.say(self.hidden.text or "no token is hidden")
        self.show_position()

    # What panes say

    @on(HeatMap.Moved)
    def _cell_moved(self, event: HeatMap.Moved) -> None:
        if self.scene is None:
            return
        place = replace(self.scene.place, row=event.row, column=event.column)
        session, name, shown, hidden = self.session, self.scene.view.name, self.scene.shown, self.hidden
        self.position = replace(self.position, place=place)
        self.scene = replace(self.scene, place=place, working=None)
        self.ask("cell", 0, lambda _: cell_of(session, name, place, shown, hidden), self._show_cell)

    def _show_cell(self, found: Cell) -> None:
        draw_together(self)
        if self.scene is None:
            return
        self.scene = replace(self.scene, working=found.working, values=found.values)
        self._show_working(self.scene)
        self.show_lines()
        self._show_later()

    @on(HeatMap.Chosen)
    def _cell_chosen(self) -> None:
        self.focus_pane("cell")

    @on(HeatMap.TileNeeded)
    def _tile_needed(self, event: HeatMap.TileNeeded) -> None:
        if self.scene is None:
            return
        view, heat_map, beside, trace = self.scene.view, event.heat_map, self.scene.beside, self.session.trace
        cost = 0 if view.name in trace.plan.names else AT_ONCE + 1
        if beside is not None and (self.scene.alone is not None or heat_map is self._heat_map(BESIDE)):
            self.ask(f"tile {BESIDE}", cost, lambda _: beside.view.tile(event.rows, event.columns), heat_map.supply)
            return
        self.ask("tile", cost, lambda _: tile_of(trace, view, event.rows, event.columns), heat_map.supply)

    @on(HeadStrip.Moved)
    def _head_chosen(self, event: HeadStrip.Moved) -> None:
        self.go_to_head(event.index)

    @on(StepsPane.Visited)
    def _step_chosen(self, event: StepsPane.Visited) -> None:
        self.trail.clear()
        self.go(self.position.at(event.chosen))

    @on(CellPane.Followed)
    def _followed(self, event: CellPane.Followed) -> None:
        name = event.operand.name.removeprefix(GRADIENT)
        if self.session.backward and self.shown != "both":
            self.wanted = "beside" if name != event.operand.name else "value"
        axes = self.session.trace.program.axes(name)
        self.follow(Position(name, place_of(axes, event.operand.index)))

    @on(VocabularyPane.EntryChosen)
    def _entry_chosen(self, event: VocabularyPane.EntryChosen) -> None:
        self.follow(Position("embedding.tokens.weight", Place(row=event.token_id)))


def _with_weight_left(session: Session, scene: Scene, hidden: Hidden) -> Scene:
    """A scene whose numbers beside the cell say what is drawn of it while tokens are hidden."""
    left = weight_left(session, scene.view.name, scene.place, hidden)
    return replace(scene, values=(*scene.values, *left)) if left else scene
