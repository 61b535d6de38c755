"""The presenter: the one loop that makes scenes of the state, hands them to the panes, and asks for what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual.css.scalar import Scalar
from textual.timer import Timer
from textual.widget import Widget

from tui_transformer.errors import InputError, reason
from tui_transformer.explorer.guard.event_queue import draw_together, later
from tui_transformer.explorer.guard.failures import carefully, say
from tui_transformer.explorer.main.panes.lines import INSTEAD, Lines, is_random
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.prompt import STALE
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.heat_map import HeatMap, MatrixPane
from tui_transformer.records import replace
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.pane_fit import (
    ABOUT,
    CLASSES,
    INSIDE,
    OVERLAY,
    PANES,
    UNNAMED,
    Arrangement,
    Told,
    arrange,
    shown_at,
)
from tui_transformer.session.position import Position
from tui_transformer.session.scene import Scene, lacks, scene
from tui_transformer.session.step_scene import tile_of
from tui_transformer.session.store import AT_ONCE, Failed, Part, Reading, worked_out
from tui_transformer.session.view_state import Shown, Size
from tui_transformer.views.view import Tile

if TYPE_CHECKING:
    from tui_transformer.explorer.main.motion import Motion

PARTS = "parts"
"""What the worker is asked for by scenes."""

GRACE, GRACE_OF_LETTERS = 0.05, 0.12
"""Seconds that the scene before stays on the screen, whole, where the matrix of the next is about to come; and where
anything is, while a sentence is typed."""

Answers = list[tuple[Part[Any], Any]]


class Presenter:
    """Shows what is explored; nothing is drawn but through it.

    Attributes:
        panes: The panes that draw scenes.
        lines: The one-line texts.
    """

    def __init__(self, explored: Exploration, panes: Panes, requests: Requests) -> None:
        self._explored, self.panes, self._requests = explored, panes, requests
        self._screen = panes.screen
        self.lines = Lines(panes.screen, requests)
        self._asked: frozenset[object] = frozenset()
        self._is_stopped = False
        self._late: Timer | None = None
        self._motion: Motion | None = None

    @property
    def settled(self) -> bool:
        """Whether the screen shows the state, or waits for the worker."""
        return self._late is None and (self._motion is None or self._motion.rests)

    # The loop

    def show_session(self) -> None:
        """Show what is explored anew, at the same position as far as it has one."""
        self._explored.stay()
        self.show()

    def show(self) -> None:
        """Show the state, as a key has left it; while the key is held, at the last press."""
        in_turn = getattr(self._screen.app, "in_turn", None)
        if in_turn is None or not in_turn.put_off(self.show):
            self.show_now()

    def show_now(self) -> None:
        """Show the state, and ask for what is missing; what could not be worked out before may be possible now."""
        self._explored.store.forget_failures()
        self._is_stopped = False
        self._loop()

    def stop(self) -> bool:
        """End what is worked out, until the next key, and go back to what is shown; whether there was something.

        Where nothing is shown, that is the first stop.
        """
        explored = self._explored
        self._is_stopped = self._requests.cancel_all()
        self._asked = frozenset()
        if self._is_stopped:
            if not self._stay() and explored.scene is not None and explored.scene.waits:
                explored.position = Position(explored.session.stops[0])
            self._loop()
        return self._is_stopped

    def focus(self, name: str) -> None:
        """Give the keys to a pane, where the stop has it."""
        self.activate(name)
        self.panes.focus()

    def activate(self, name: str) -> None:
        """Make a pane, where the stop has it, the one that has the keys; it has the terminal where another had it."""
        explored = self._explored
        explored.change_view(active=name, zoom=None if explored.view.zoom is None else name)
        self.show_now()

    def _loop(self) -> None:
        """Make a scene, draw it and ask for what it lacks."""
        made = self._scene()
        if made.failed:
            self._tell(made.failed)
        if made.lost and self._stay():
            made = self._scene()
        before = self._explored.scene
        edited = made.view.edited
        same = before is not None and (before.size, before.view.edited) == (made.size, edited)
        if (made.waits or edited) and made.missing and same:
            grace = GRACE_OF_LETTERS if edited else GRACE
            self._late = self._late or later(self._screen, grace, self._draw_late)
        else:
            self._draw(made)
        if made.missing or self._asked:
            self._ask(made)

    def _scene(self) -> Scene:
        explored = self._explored
        made = scene(
            Reading(explored.store, here=explored.session.trace.backend.device == "cpu"),
            explored.session,
            explored.position,
            explored.view,
            Size(*self._screen.app.size),
            keys=partial(hint, self._screen.app),
            told=self.panes.told,
            asks_answer=self.lines.opening and not is_random(explored.session),
        )
        explored.position = made.position
        explored.store.make_room(made.session, made.position.stop)
        return made

    def _draw_late(self) -> None:
        self._late = None
        self._draw(self._scene())

    def _draw(self, made: Scene) -> None:
        if self._late is not None:
            self._late.stop()
            self._late = None
        draw_together(self._screen)
        before, self._explored.scene = self._explored.scene, made
        self.panes.show(made)
        self.lines.show(made)
        moves = made.view.motion and before is not None and before.position.stop != made.position.stop
        if before is not None and (moves or self._motion is not None):
            from tui_transformer.explorer.main.motion import Motion

            self._motion = self._motion or Motion(self._screen)
            self._motion.follow(before, made)

    def _stay(self) -> bool:
        """Be where one was, where another step cannot be computed; whether one was anywhere in this session."""
        explored, before = self._explored, self._explored.scene
        is_there = before is not None and before.session is explored.session and not before.waits
        if before is not None and is_there and before.position.stop != explored.position.stop:
            explored.position, explored.view = before.position, before.view
            return True
        return False

    # What is missing

    def _ask(self, made: Scene) -> None:
        """Ask for the parts that are wanted most, as many as cost little together; what is under way goes on."""
        if self._asked:
            if self._asked & {part.key for part, _ in made.missing}:
                return
            self._requests.cancel(PARTS)
            self._asked = frozenset()
        if not made.missing or self._is_stopped:
            return
        parts, cost = [made.missing[0][0]], made.missing[0][1]
        for part, more in made.missing[1:]:
            if cost + more <= AT_ONCE:
                parts.append(part)
                cost += more
        self._asked = frozenset(part.key for part in parts)

        def work(task: Task) -> Answers:
            answers = []
            for part in parts:
                task.report(part.key.stop)
                answers.append((part, worked_out(part, task.report)))
            return answers

        self._requests.ask(PARTS, work, self._answered)

    def _answered(self, answers: Answers) -> None:
        self._asked = frozenset()
        for part, result in answers:
            self._explored.store.put(part.key, result)
        self._tell([result.error for _, result in answers if isinstance(result, Failed)])
        self._loop()

    def _tell(self, errors: Iterable[Exception]) -> None:
        """Say what could not be worked out, once; a mistake of the program is reported."""
        app: Any = self._screen.app
        for error in {repr(each): each for each in errors}.values():
            if isinstance(error, InputError | MemoryError):
                say(app, reason(error), "error")
            elif not app.failures.handled(error):
                raise error

    # Cells

    def move_cell(self, row: int, column: int) -> None:
        """Go to another cell of the matrix that is shown."""
        explored = self._explored
        if explored.step is not None:
            place = replace(explored.position.place, row=row, column=column)
            explored.position = replace(explored.position, place=place)
            self.show()

    def supply_tile(self, rows: range, columns: range, heat_map: HeatMap) -> None:
        """Give a matrix the cells that it needs to be drawn."""
        own, step = self._explored.session.trace, self._explored.step
        if step is None:
            return
        beside = heat_map is self.panes.heat_map(OVERLAY) or step.alone is not None
        view = step.overlay.view if beside and step.overlay is not None else step.view

        def work(_: Task) -> Tile:
            return view.tile(rows, columns) if beside else tile_of(own, view, rows, columns)

        cost = 0 if view.name in own.plan.names else AT_ONCE + 1
        kind = f"tile {OVERLAY}" if beside else "tile"
        self._requests.ask(kind, work, lambda tile: heat_map.supply(tile, view), cost)


@runtime_checkable
class ScenePane(Protocol):
    """A widget that is handed every scene in which it has room. What it wants of others it posts as messages."""

    def show_scene(self, scene: Scene) -> None:
        """Draw what a scene says of the pane; what is missing in it as missing, never as it was before."""


class Panes:
    """The panes on a screen. What is shown of them is in classes: every change of classes styles all of it again.

    Attributes:
        screen: The screen that they are on.
        arrangement: How they are laid out.
        told: Of every stop of the tour that goes on its paragraphs; none without a tour.
    """

    def __init__(self, screen: ExplorerScreen[None], explored: Exploration) -> None:
        self.screen, self._explored = screen, explored
        self.told: Told = ()
        self.arrangement = arrange(Size(80, 24), explored.session, explored.position, explored.view, (), None)
        self._laid_out: Arrangement | None = None
        self._drawing: tuple[tuple[ScenePane, Widget], ...] = ()

    def begin(self) -> None:
        """Write the titles into the borders, when the panes are there."""
        for name, title in (PANES | {"about": ABOUT}).items():
            if name not in UNNAMED:
                self.screen.query_one(f"#{name}", Widget).border_title = title
        self._drawing = tuple((node, node) for node in self.screen.query(Widget) if isinstance(node, ScenePane))

    def show(self, scene: Scene) -> None:
        """Lay the panes out, and let each that has room draw what a scene says of it."""
        before, arrangement = self.arrangement.active, scene.arrangement
        is_old = scene.view.edited > 0 and (scene.view.unread or scene.waits)  # what is typed cannot be shown yet
        if is_old and self.arrangement.edited == arrangement.edited:
            for _, widget in self._drawing:
                widget.add_class(STALE)
            return
        self.lay_out(arrangement)
        self._keep_focus(scene.position.stop, turned=before != arrangement.active)
        for pane, widget in self._drawing:
            drawn = widget.id in arrangement.drawn
            stale = drawn and arrangement.edited > 0 and lacks(scene, widget.id or "")
            widget.set_class(stale, STALE)
            if drawn and not stale:
                carefully(widget, partial(pane.show_scene, scene))

    def lay_out(self, arrangement: Arrangement) -> None:
        """Give every pane its room."""
        if arrangement == self._laid_out:
            return
        self.arrangement = arrangement
        self._laid_out = arrangement if self.screen.is_mounted else None
        self.screen.update_classes({name: name in arrangement.classes for name in CLASSES})
        for name in ("matrix", OVERLAY) if self.screen.is_mounted else ():
            self.heat_map(name).always_numbers = bool(arrangement.whole) or {"-tour", "-short"} <= arrangement.classes
        for heads in self.screen.query("#heads"):
            heads.set_class("heads" not in arrangement.names, "-absent")
        for side in self.screen.query("#side"):
            width = arrangement.side
            if side.styles.inline.width != (None if width is None else Scalar.from_number(width)):
                side.styles.width = width
        for pane in self.screen.query("#sentence"):
            pane.styles.height = arrangement.edited or None
        whole = arrangement.whole
        for pane in self.screen.query("#whole") if whole else ():
            if whole and pane.styles.height != Scalar.from_number(whole.height):
                pane.styles.height = whole.height

    @property
    def whole(self) -> bool:
        return bool(self.arrangement.whole)

    @property
    def shown(self) -> Shown:
        """Which matrices are drawn, as the room allows."""
        return self.shown_further(0)

    def shown_further(self, by: int) -> Shown:
        """The same so many choices further."""
        return shown_at(self._explored.session, self._explored.view, Size(*self.screen.size), by)

    def heat_map(self, pane: str) -> HeatMap:
        """The cells of the matrix, or of the one beside it."""
        return self.screen.query_one(f"#{pane}", MatrixPane).cells

    # Which has the keys

    def focus(self) -> None:
        """Give the keys to the pane that is active, or to what stands in its place."""
        name = self.arrangement.active
        if name == "matrix":
            name = INSTEAD.get(self._explored.position.stop, name)
        inside = {"matrix": "#matrix HeatMap", "vocabulary": "#entries"}
        self.screen.set_focus(self.screen.query_one(inside.get(name, f"#{name}"), Widget))

    def _keep_focus(self, stop: str, *, turned: bool) -> None:
        """Give the keys to the active pane where another one had them, what had them is gone, or nothing had them."""
        focused, arrangement = self.screen.focused, self.arrangement
        place = None if focused is None else place_of(focused)
        if focused is not None and place is None:
            return  # the card of a tour, or a box to type in
        pane, own = INSIDE.get(place or ""), INSTEAD.get(stop, "matrix")
        gone = place != own if place != OVERLAY else "-both" not in arrangement.classes
        elsewhere = turned and pane != arrangement.active
        if elsewhere or pane not in arrangement.names or (pane == "matrix" and gone):
            self.focus()


def place_of(widget: Widget) -> str | None:
    """The pane that a widget is in, or what it is in that stands in the place of the matrix."""
    return next((node.id for node in widget.ancestors_with_self if node.id in INSIDE), None)
