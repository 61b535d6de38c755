"""The layout of the main screen: which panes there are, which there is room for, and which has the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus
from textual.geometry import Size
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.chart import ChartPane
from tui_transformer.explorer.main.panes.pair import MatrixPair
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.text import TextPane
from tui_transformer.explorer.main.panes.texts import PANES
from tui_transformer.explorer.main.panes.vocabulary import VocabularyPane
from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.shell.actions import ACTIONS
from tui_transformer.explorer.shell.asking import Requests, Result
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.saying import say
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import LOSS, TEXT, VOCABULARY
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.thumbnails import HeadStrip

SHORT = 18
"""Below so many lines only the cell's own line is left under the matrix."""

BESIDE = "beside"
"""The pane of the second matrix."""

TIGHT = 150
"""Columns below which the list of steps gives way to a second matrix."""

TITLES = {
    "sentence": "Sentence",
    "steps": "Steps",
    "heads": "Heads",
    "chart": "Chart",
    "cell": "Cell",
    "about": "What it is",
}

LAYOUTS = {"-wide": (120, 36), "-medium": (96, 26), "-narrow": (0, 0)}


class Layout(ExplorerScreen[None]):
    """The panes and the one that has the keys.

    Attributes:
        position: The stop and cell that are shown.
        scene: What the matrix and cell panes show; None for stops that are words.
        active: The pane that has the keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [action.binding() for action in ACTIONS]
    AUTO_FOCUS = ""
    CSS_PATH = "stage.tcss"

    def __init__(self, worker: Worker, position: Position) -> None:
        """All panes, the keys in the matrix."""
        super().__init__()
        self.worker = worker
        self.requests = Requests(self, worker, self.show_lines, lambda: self.here)
        self.position = position
        self.scene: Scene | None = None
        self.active = "matrix"

    @property
    def here(self) -> bool:
        """Whether the model is computed on the CPU."""
        return True

    def show_lines(self) -> None:
        """Show the one-line texts."""

    def ask(self, kind: str, cost: int, work: Callable[[Task], Result], done: Callable[[Result], None]) -> None:
        """Do work now if it is small, else on the worker; then show what it gave."""
        self.requests.ask(kind, cost, work, done)

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""
        say(self.app, message, severity)

    def compose(self) -> ComposeResult:
        """Title, sentence, steps, heads, matrix, chart, cell, keys."""
        self._choose_layout(self.app.size)
        self.add_class(f"-active-{self.active}")
        yield Static(id="title", markup=False)
        yield SentencePane(id="sentence")
        yield Static(id="crumbs", markup=False)
        with Horizontal(id="body"):
            yield StepsPane(id="steps")
            with Vertical(id="middle"):
                yield HeadStrip(id="heads")
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

    def _choose_layout(self, size: Size) -> None:
        """Classes say which panes there is room for. Every change of classes styles all of the screen again."""
        layout = next(name for name, (w, h) in LAYOUTS.items() if size.width >= w and size.height >= h)
        small = {"-short": size.height < SHORT, "-tight": size.width < TIGHT}
        self.update_classes({name: name == layout for name in LAYOUTS} | small)

    def focus_pane(self, name: str) -> None:
        """Go to a pane; where one is shown at a time, it becomes the one."""
        if name not in self.panes():
            return
        self._activate(name)
        self.set_focus(self._focus_of(name))

    def _activate(self, name: str) -> None:
        self.active = name
        self.update_classes({f"-active-{pane}": pane == name for pane in PANES})
        self.show_lines()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click goes to a pane as its digit does."""
        inside = dict.fromkeys(PANES) | {VOCABULARY: "matrix", TEXT: "matrix", BESIDE: "matrix"}
        name = next((node.id for node in event.widget.ancestors_with_self if node.id in inside), None)
        if name is not None and (pane := inside[name] or name) != self.active:
            self._activate(pane)

    def _focus_matrix(self) -> None:
        """Where the matrix is the active pane, what is shown in its place gets the keys."""
        focused = self.focused
        if self.active == "matrix" and (focused is None or self.query_one("#middle") in focused.ancestors):
            self.set_focus(self._focus_of("matrix"))

    def panes(self) -> list[str]:
        """The panes that the stop has."""
        heads = self.scene is not None and self.scene.view.heads > 1 and not self.has_class("-stacked")
        return [name for name in PANES if name != "heads" or heads]

    def _focus_of(self, name: str) -> Widget:
        inside = {
            VOCABULARY: self.query_one(VocabularyPane).entries,
            TEXT: self.query_one(TextPane),
            LOSS: self.query_one(TextPane),
        }
        if name == "matrix":
            return inside.get(self.position.stop, self._heat_map("matrix"))
        return self.query_one(f"#{name}", Widget)

    def _heat_map(self, pane: str) -> HeatMap:
        return self.query_one(f"#{pane}", MatrixPane).cells
