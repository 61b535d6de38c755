"""The layout of the main screen: which panes there are, which there is room for, and which has the keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.scalar import Scalar
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.panes.cell import ABOUT, CELL_TITLE, CellPane
from tui_transformer.explorer.main.panes.chart import ChartPane
from tui_transformer.explorer.main.panes.pair import MatrixPair
from tui_transformer.explorer.main.panes.scene_pane import ScenePane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.text import WORDS, TextPane
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.panes.vocabulary import VocabularyPane
from tui_transformer.explorer.main.room import AROUND_MATRIX, Need, card_lines, given_way, lines_below
from tui_transformer.explorer.main.whole.bands import lines_wanted
from tui_transformer.explorer.main.whole.moving import standing
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.state.overlay import Shown, shown_in
from tui_transformer.explorer.state.session import TEXT, VOCABULARY
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.thumbnails import HeadThumbnails

OVERLAY = "overlay"
"""The pane of the second matrix."""

PANES = {
    "whole": "The whole",
    "sentence": "Sentence",
    "steps": "Steps",
    "heads": "Heads",
    "matrix": "Matrix",
    "cell": CELL_TITLE,
    "chart": "Chart",
}
"""The panes that can have the keys, in the order of their digits, and what is written in their borders."""

UNNAMED = ("matrix", "whole")
"""Panes that are called after what they show, or whose parts have borders of their own."""

WITH_WHOLE = ("whole", "matrix", "cell")
"""The panes that there are where the whole is shown."""


@dataclass(frozen=True)
class Layout:
    """A class of the screen and the room that it needs; the style sheet says what it shows.

    Attributes:
        name: The class.
        columns: Columns from which it is chosen.
        lines: Lines from which it is.
        others: Lines beside the whole and the step in full.
    """

    name: str
    columns: int
    lines: int
    others: int


LAYOUTS = (Layout("-wide", 120, 36, 2), Layout("-medium", 96, 26, 6), Layout("-narrow", 0, 0, 4))
"""All panes, some, one at a time; the first that there is room for."""

SHORT = 18
"""Below so many lines only the cell's own line is left under the matrix, or under the whole."""

SHORT_OTHERS = 3
"""Lines beside the whole there."""

TIGHT = 150
"""Columns below which the list of steps gives way to a second matrix."""

GIVEN_WAY = ("-slim", "-broad", "-alone", "-tall", "-taller")
"""Classes of a screen on which panes give way to the matrix."""

STAYS: dict[str, tuple[str, ...]] = {
    "steps": ("-broad",),
    "cell": ("-alone",),
    "chart": ("-tall",),
    "heads": ("-taller",),
}
"""By the pane that has the keys, what does not hide it."""

INSIDE: dict[str, str] = {pane: pane for pane in PANES} | dict.fromkeys((VOCABULARY, TEXT, OVERLAY), "matrix")
"""The panes by what they are called, and what is shown in the place of the matrix."""


def compose_panes() -> ComposeResult:
    """Title, the whole, sentence, steps, heads, matrix, chart, cell, keys."""
    yield Static(id="title", markup=False)
    yield WholePane(id="whole")
    yield SentencePane(id="sentence")
    yield Static(id="crumbs", markup=False)
    with Horizontal(id="body"):
        yield StepsPane(id="steps")
        with Vertical(id="middle"):
            yield HeadThumbnails(id="heads")
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
        drawing: Those that draw every scene by themselves.
        whole_size: Columns and lines of the whole, where it is shown.
        told: Of every stop of the tour that goes on its paragraphs; none without a tour.
    """

    def __init__(self, screen: ExplorerScreen[None], explored: Exploration, activated: Callable[[], None]) -> None:
        """Panes of a screen that is composed later; `activated` is told that another has the keys."""
        self._screen, self._explored, self._activated = screen, explored, activated
        self.drawing: tuple[ScenePane, ...] = ()
        self.whole_size = Size(0, 0)
        self.told: tuple[tuple[str, ...], ...] = ()
        self._need, self._height = Need(), SHORT
        self._gave: frozenset[str] = frozenset()

    @property
    def screen(self) -> ExplorerScreen[None]:
        """The screen that they are on."""
        return self._screen

    def fit(self, size: Size) -> None:
        """Choose the layout that there is room for, and how much of it the whole has."""
        self._height = size.height
        layout = next(each for each in LAYOUTS if size.width >= each.columns and size.height >= each.lines)
        small = {"-short": size.height < SHORT, "-tight": size.width < TIGHT}
        self._wide = layout is LAYOUTS[0]
        small |= {"-whole": self.whole, "-zoomed": self._explored.view.zoom is not None}
        classes = {each.name: each is layout for each in LAYOUTS} | small | self._active_classes()
        self._layout, self._gave = layout, frozenset()
        self._screen.update_classes(classes | self._given_way(size))
        for name in ("matrix", OVERLAY) if self._screen.is_mounted else ():
            self.heat_map(name).always_numbers = self.whole
        self._fit_side()
        if self.whole:
            self._fit_whole(size)

    def tell(self, texts: tuple[tuple[str, ...], ...]) -> None:
        """Give room to the card of a tour whose stops have these paragraphs; none to end it."""
        self.told = texts
        self._screen.set_class(bool(texts), "-tour")
        self.fit(self._screen.size)

    def give_room(self, need: Need) -> None:
        """Let panes give way to a matrix that needs so much, where it would show fewer numbers beside them.

        Of the lists, what gave way does so for the steps that follow: a layout that changed at every step would be
        drawn all anew.
        """
        self._need = need
        self._screen.update_classes(self._given_way(self._screen.size))
        self._fit_side()

    def _fit_side(self) -> None:
        """Give the cell what the matrix leaves, where it would have more than that beside the whole."""
        slim = self.whole and self._screen.has_class("-slim") and self._layout.name == "-wide"
        width = self._screen.size.width - self._need.columns if slim else None
        for side in self._screen.query("#side"):
            if side.styles.inline.width != (None if width is None else Scalar.from_number(width)):
                side.styles.width = width

    def _given_way(self, size: Size) -> dict[str, bool]:
        """The classes that say what gives way; the pane that has the keys stays."""
        heads = "heads" in self.names()
        given = self._gave | given_way(self._layout.name, size, self._need, whole=self.whole, heads=heads)
        self._gave = frozenset() if self.whole else frozenset(given - {"-alone"})
        stays = STAYS.get(self._explored.view.active, ())
        return {each: each in given and each not in stays for each in GIVEN_WAY}

    def _fit_whole(self, size: Size) -> None:
        """Give the whole the lines that the step in full does not need, and no more than it can use."""
        short = size.height < SHORT
        explored = self._explored
        zoomed = explored.view.zoom == "whole"
        beside = SHORT_OTHERS if short else self._layout.others
        room = size.height - (1 + (self._layout.name != "-narrow") if zoomed else beside)  # keys, and the title
        most = lines_wanted(explored.session, standing(explored.session, explored.position), size.width)
        room -= card_lines(size, self.told) if self.told else 0
        rows = max((len(each.tokens) for each in explored.session.sequences.values()), default=0)
        first = explored.view.active != "whole"
        rows = max(rows, self._need.lines - AROUND_MATRIX) if first else rows
        rows = 0 if explored.position.stop == VOCABULARY else rows  # its list scrolls
        below = 0 if short or zoomed else lines_below(rows, size.height, room, first=first)
        self.whole_size = Size(size.width, max(min(room - below, most), 0))
        for pane in self._screen.query(WholePane):
            if pane.styles.height != Scalar.from_number(self.whole_size.height):
                pane.styles.height = self.whole_size.height

    @property
    def whole(self) -> bool:
        """Whether the whole is shown."""
        wanted = self._explored.view.whole
        return self.room_for_whole and (self._wide if wanted is None else wanted)

    @property
    def room_for_whole(self) -> bool:
        """Whether a band of the whole has room: on a short screen the card of a tour takes it."""
        return self._height >= SHORT or not self.told

    def _active_classes(self) -> dict[str, bool]:
        return {f"-active-{pane}": pane == self._explored.view.active for pane in PANES}

    def begin(self) -> None:
        """Write the titles into the borders, when the panes are there."""
        for name, title in (PANES | {"about": ABOUT}).items():
            if name not in UNNAMED:
                self._screen.query_one(f"#{name}", Widget).border_title = title
        self.drawing = tuple(node for node in self._screen.query(Widget) if isinstance(node, ScenePane))

    @property
    def wide(self) -> bool:
        """Whether all panes are shown."""
        return self._screen.has_class("-wide")

    @property
    def shown(self) -> Shown:
        """Which matrices are drawn, as the room allows."""
        return shown_in(self._explored.session.overlay.kind, self._explored.view.wanted, wide=self.wide)

    def names(self) -> list[str]:
        """The panes that the stop has."""
        if self.whole:
            return list(WITH_WHOLE)
        scene = self._explored.scene
        heads = scene is not None and scene.view.heads > 1 and not self._screen.has_class("-stacked")
        return [name for name in PANES if name != "whole" and (name != "heads" or heads)]

    def digits(self) -> dict[str, int]:
        """The panes that the stop has, with the digits that go to them."""
        names = self.names()
        return {name: digit for digit, name in enumerate(PANES) if name in names}

    def room_for_pair(self) -> Size:
        """Columns and lines that are left for two matrices, as in the style sheet."""
        tight = self._screen.has_class("-tight")
        if self.whole:
            return self._screen.size - (self._screen.size.width * 2 // 5, self.whole_size.height + 2)
        return self._screen.size - ((0 if tight else 26) + 38, 1 + 4 + 12 + 1 + tight)

    def show_stop(self) -> None:
        """Show a matrix, the vocabulary or words, as the stop has it; what is shown there gets the keys."""
        stop, screen = self._explored.position.stop, self._screen
        other_room = self.whole and screen.has_class("-vocabulary") is not (stop == VOCABULARY)
        screen.update_classes({"-vocabulary": stop == VOCABULARY, "-text": stop in WORDS})
        if other_room:
            self._fit_whole(screen.size)
        focused = screen.focused
        if self._explored.view.active == "matrix" and (
            focused is None or screen.query_one("#middle") in focused.ancestors
        ):
            screen.set_focus(self._focus_of("matrix"))

    # Which has the keys

    @property
    def on_card(self) -> bool:
        """Whether the card of a tour has the keys."""
        return isinstance(self._screen.focused, TourPanel)

    def focus(self, name: str) -> None:
        """Go to a pane; where one is shown at a time, it becomes the one."""
        if name in self.names():
            self._activate(name)
            self._screen.set_focus(self._focus_of(name))

    def focus_next(self, direction: int) -> None:
        """Go to the next or previous pane."""
        names, active = self.names(), self._explored.view.active
        place = names.index(active) if active in names else 0
        self.focus(names[(place + direction) % len(names)])

    def zoom(self, name: str | None) -> None:
        """Give a pane the whole terminal, or None the panes that there is room for."""
        self._explored.change_view(zoom=name)
        self.fit(self._screen.size)

    def keep_focus(self) -> None:
        """Go to the matrix where the pane that had the keys is not there any more."""
        if self._explored.view.active not in self.names():
            self.focus("matrix")

    def focused(self, widget: Widget) -> None:
        """Make the pane active that a widget is in: a click goes to a pane as its digit does."""
        if widget is not self._screen.focused:
            return  # another has been focused since
        pane = next((INSIDE[node.id] for node in widget.ancestors_with_self if node.id in INSIDE), None)
        if pane is not None and pane != self._explored.view.active:
            self._activate(pane)

    def _activate(self, name: str) -> None:
        self._explored.change_view(active=name)
        if self._explored.view.zoom not in (None, name):
            self.zoom(name)
        self._screen.update_classes(self._active_classes() | self._given_way(self._screen.size))
        if self.whole:
            self._fit_whole(self._screen.size)
        self._activated()

    def _focus_of(self, name: str) -> Widget:
        screen, stop = self._screen, self._explored.position.stop
        if name != "matrix":
            return screen.query_one(f"#{name}", Widget)
        if stop == VOCABULARY:
            return screen.query_one(VocabularyPane).entries
        return screen.query_one(TextPane) if stop in WORDS else self.heat_map("matrix")

    def heat_map(self, pane: str) -> HeatMap:
        """The cells of the matrix, or of the one beside it."""
        return self._screen.query_one(f"#{pane}", MatrixPane).cells
