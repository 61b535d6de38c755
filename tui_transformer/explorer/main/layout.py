"""The layout of the main screen: which panes there are, which there is room for, and which has the keys."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.scalar import Scalar
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.explorer.guard.error_boundary import carefully
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.matrix import ChartPane, HeadsPane, MatrixPair, ScenePane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.main.panes.words import TextPane, VocabularyPane
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
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
from tui_transformer.session.scene import Scene
from tui_transformer.session.session import TEXT, VOCABULARY
from tui_transformer.session.view_state import Shown, Size
from tui_transformer.session.words import WORDS


def compose_panes() -> ComposeResult:
    """Title, the whole, sentence, steps, heads, matrix, chart, cell, keys."""
    yield Static(id="title", markup=False)
    yield WholePane(id="whole")
    yield SentencePane(id="sentence")
    yield Static(id="crumbs", markup=False)
    with Horizontal(id="body"):
        yield StepsPane(id="steps")
        with Vertical(id="middle"):
            yield HeadsPane(id="heads")
            yield MatrixPair(id="pair")
            yield VocabularyPane(id="vocabulary")
            yield TextPane(id="text")
            yield ChartPane(id="chart")
        with Vertical(id="side"):
            yield CellPane(id="cell")
            yield Static(id="about", markup=False)
    yield Static(id="summary", markup=False)
    yield Static(id="tabs", markup=False)
    yield Static(id="keys", markup=False)


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
        """Lay the panes out, and let each draw what a scene says of it."""
        before = self.arrangement.active
        self.lay_out(scene.arrangement)
        self._keep_focus(scene.position.stop, turned=before != scene.arrangement.active)
        for pane, widget in self._drawing:
            carefully(widget, partial(pane.show_scene, scene))

    def lay_out(self, arrangement: Arrangement) -> None:
        """Give every pane its room."""
        if arrangement == self._laid_out:
            return
        self.arrangement = arrangement
        self._laid_out = arrangement if self.screen.is_mounted else None
        self.screen.update_classes({name: name in arrangement for name in CLASSES})
        for name in ("matrix", OVERLAY) if self.screen.is_mounted else ():
            self.heat_map(name).always_numbers = bool(arrangement.whole)
        for side in self.screen.query("#side"):
            width = arrangement.side
            if side.styles.inline.width != (None if width is None else Scalar.from_number(width)):
                side.styles.width = width
        for pane in self.screen.query(WholePane) if arrangement.whole else ():
            if pane.styles.height != Scalar.from_number(arrangement.whole.height):
                pane.styles.height = arrangement.whole.height

    @property
    def whole(self) -> bool:
        """Whether the whole is shown."""
        return bool(self.arrangement.whole)

    @property
    def shown(self) -> Shown:
        """Which matrices are drawn, as the room allows."""
        return shown_at(self._explored.session, self._explored.view, Size(*self.screen.size))

    # Which has the keys

    @property
    def on_card(self) -> bool:
        """Whether the card of a tour has the keys."""
        return isinstance(self.screen.focused, TourPanel)

    def focus(self) -> None:
        """Give the keys to the pane that is active, or to what stands in its place."""
        name, screen, stop = self.arrangement.active, self.screen, self._explored.position.stop
        if name != "matrix":
            screen.set_focus(screen.query_one(f"#{name}", Widget))
        elif stop == VOCABULARY:
            screen.set_focus(screen.query_one(VocabularyPane).entries)
        else:
            screen.set_focus(screen.query_one(TextPane) if stop in WORDS else self.heat_map("matrix"))

    def _keep_focus(self, stop: str, *, turned: bool) -> None:
        """Give the keys to the active pane where another one had them, what had them is gone, or nothing had them."""
        focused = self.screen.focused
        pane = None if focused is None else pane_of(focused)
        if focused is not None and pane is None:
            return  # the card of a tour, or a box to type in
        elsewhere = turned and pane != self.arrangement.active
        if focused is None or elsewhere or pane not in self.arrangement.names or self._is_hidden(focused, stop):
            self.focus()

    def _is_hidden(self, widget: Widget, stop: str) -> bool:
        """Whether something in the place of the matrix is not what a stop shows there."""
        place = next((node.id for node in widget.ancestors_with_self if node.id in (VOCABULARY, TEXT, OVERLAY)), "")
        own = {VOCABULARY: VOCABULARY, **dict.fromkeys(WORDS, TEXT)}.get(stop, "")
        in_matrix = pane_of(widget) == "matrix" and place != OVERLAY
        return (in_matrix and place != own) or (place == OVERLAY and "-both" not in self.arrangement)

    def heat_map(self, pane: str) -> HeatMap:
        """The cells of the matrix, or of the one beside it."""
        return self.screen.query_one(f"#{pane}", MatrixPane).cells


def pane_of(widget: Widget) -> str | None:
    """The pane that a widget is in."""
    return next((INSIDE[node.id] for node in widget.ancestors_with_self if node.id in INSIDE), None)
