"""What the middle shows: the numbers of a step, its heads, its chart; or words: the vocabulary, the text, the loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import Input, Static

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.explorer.guard.scroll_bars import keep_bars
from tui_transformer.explorer.main.panes.lines import stop_title
from tui_transformer.explorer.shell.actions.main import TEMPERATURE
from tui_transformer.explorer.shell.actions.main import VOCABULARY as FIND
from tui_transformer.explorer.shell.keymap import first_key, hint
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.widgets.chart import Chart
from tui_transformer.explorer.widgets.heat_map import HeatMap, MatrixPane
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.records import dataclass
from tui_transformer.session.overlay import apart
from tui_transformer.session.pane_fit import PANES, number_width
from tui_transformer.session.scene import Heads, Scene
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.view_state import entry_of
from tui_transformer.session.words import WORDS, Drawn
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.text.vocabulary import Vocabulary

SOFTMAX = Softmax().formula


class MatrixPair(Container):
    """Two matrices, of which the second is shown only where a scene has one beside."""

    DEFAULT_CSS = """
    MatrixPair {
        layout: horizontal;
        &.-stacked { layout: vertical; }
        & > #overlay { display: none; }
        &.-both > #overlay { display: block; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.first, self.second = MatrixPane(id="matrix"), MatrixPane(id="overlay")

    def compose(self) -> ComposeResult:
        yield self.first
        yield self.second

    def on_mount(self) -> None:
        for one, other in ((self.first, self.second), (self.second, self.first)):
            for axis in ("scroll_x", "scroll_y"):
                self.watch(one.cells, axis, partial(self._follow, one, other), init=False)

    def show_scene(self, scene: Scene) -> None:
        """Show a step's own values, what is beside them, or both; of what is still computed the name alone."""
        stop, step, both = scene.position.stop, scene.step, "-both" in scene.arrangement.classes
        if both and not self.has_class("-both"):  # the second is scrolled as when it was last seen
            self.call_after_refresh(self._follow, self.first, self.second, 0.0)
        self.set_class(both, "-both")
        self.set_class("-stacked" in scene.arrangement.classes, "-stacked")
        for pane in (self.first, self.second):
            pane.cells.wanted_width = scene.view.cell_width
            pane.cells.points = (stop, scene.position.place) == scene.view.pointed
        if step is None:
            self.first.show_missing(stop)
            remark = "computing"
        else:
            overlay, width = step.overlay, number_width(step) if both else 0
            if step.alone is None:
                titles = matrix_titles(scene.session, step, wide="-wide" in scene.arrangement.classes, both=both)
                own, note = (step.view, step.scale, step.tile, step.place), scale_note(step)
                self.first.show_matrix(*own, titles=titles, note=note, number_width=width, frame=step.frame)
            if overlay is not None and (both or step.alone is not None):
                pane, beside = self.second if both else self.first, (overlay.view, overlay.scale, overlay.tile)
                pane.show_matrix(*beside, step.place, titles=(overlay.title,), note=overlay.note, number_width=width)
            compared = scene.session.overlay.kind == "trace"
            remark = visible(hint(self.app, apart(scene.session, stop))) if compared else ""
        first, second = (Content(text) for text in (("", remark) if both else (remark, "")))
        if step is not None and step.frame is not None:
            first = Content.styled(visible(step.frame.says), "bold $accent")  # so that nobody takes it for the values
        for pane, text in zip((self.first, self.second), (first, second), strict=True):
            pane.border_subtitle = text

    @on(HeatMap.Moved)
    def _moved(self, event: HeatMap.Moved) -> None:
        if self.has_class("-both"):
            other = self.second if event.control is self.first.cells else self.first
            other.cells.cursor = event.row, event.column

    def _follow(self, one: MatrixPane, other: MatrixPane, _: float) -> None:
        """Scroll the other where this one is, as long as their cells are of one size."""
        sizes = {(each.cells.grid.cell_width, each.cells.grid.cell_height) for each in (one, other)}
        if self.has_class("-both") and len(sizes) == 1:
            place: Offset = one.cells.scroll_offset
            if place != other.cells.scroll_offset:
                other.cells.scroll_to(place.x, place.y, animate=False, force=True)


class HeadsPane(HeadThumbnails, can_focus=True):
    """The heads of the step, or nothing until they are there."""

    _heads: Heads | None = None

    def show_scene(self, scene: Scene) -> None:
        """Show the heads of a scene."""
        heads, head = scene.heads, scene.position.place.head
        if heads is not None and heads is self._heads:
            self.put((0, head))
            return
        self._heads = heads
        title = " · ".join(filter(None, (PANES["heads"], heads.what if heads is not None else "computing")))
        self.border_title = Content(title)
        if heads is None:
            self.show((), head, self.scale)
        else:
            self.show(heads.tiles, head, heads.scale, of=heads.of, shape=heads.shape)


class ChartPane(Chart, can_focus=True):
    """A chart that can be gone to, as every other pane."""

    def show_scene(self, scene: Scene) -> None:
        """Show the chart of a scene, or why there is none."""
        why = ""
        if scene.chart is None:
            none = "Token IDs have no chart: they are names of words, and no sizes." if scene.step is not None else ""
            why = "computing" if scene.waits or scene.kind is not None else none
        if (scene.chart, why) != (self.chart, self.why):
            self.show(scene.chart, why)


def matrix_titles(session: Session, scene: StepScene, *, wide: bool, both: bool) -> tuple[str, ...]:
    """Name and shape of what the matrix pane shows; with label and head, where no other line says them.

    The longest comes first; the others are for panes that have no room for it.
    """
    view, shape = scene.view, shape_text(session.trace.program.shape(scene.view.name))
    label = stop_title(session, view.name)
    if not wide:
        return f"{view.name} · {shape}", view.name
    head = [f"head {scene.place.head} of {view.heads}"] if view.heads > 1 else []
    alone = () if both else ([label, view.name, *head, shape],)
    parts = (*alone, [view.name, *head, shape], [label, *head, shape], [label, *(head if both else [shape])])
    return tuple(dict.fromkeys(" · ".join(dict.fromkeys(part)) for part in parts))


def scale_note(scene: StepScene) -> str:
    """Remarks on the colours."""
    if scene.hidden or scene.view.formula != SOFTMAX:
        return scene.hidden
    values = scene.tile.values
    whole, masked = values.shape[1] == scene.view.columns.size, np.isneginf(values)
    without_keys = masked.all(axis=1)
    sums = np.where(masked, 0.0, values)[~without_keys].sum(axis=1) if whole else np.empty(0)
    if no_number := np.count_nonzero(np.isnan(sums)):
        return f"{no_number:,} row{'s sum' if no_number > 1 else ' sums'} to NaN"
    if (abs(sums - 1) > 1e-3).any():  # shares are rounded
        return f"rows sum to {spoken(sums.min(), 4)} to {spoken(sums.max(), 4)}"
    if scene.view.edited and not len(sums):
        return ""  # of rows that are not drawn whole nothing is known
    return "a row without a visible key sums to 0" if whole and without_keys.any() else "every row sums to 1"


class VocabularyPane(Vertical):
    """A search line and the words; those of the sentence are highlighted."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FIND)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"vocabulary--plain", "vocabulary--quiet", "vocabulary--used"}
    DEFAULT_CSS = """
    VocabularyPane {
        & > .vocabulary--plain { color: $foreground; }
        & > .vocabulary--quiet { color: $foreground 55%; }
        & > .vocabulary--used { color: $accent; text-style: bold; }
        & Input { height: 1; border: none; padding: 0 1; background: $surface; }
    }
    """

    @dataclass
    class EntryChosen(Message):
        """The user wants to see the embedding row of a word."""

        token_id: int

    _vocabulary: Vocabulary | None = None
    _called = ""
    _hits: Sequence[int] | None = None
    _uses: Mapping[int, int] = Counter()
    _first: tuple[int, ...] = ()
    _used: Sequence[int] = ()

    def compose(self) -> ComposeResult:
        yield LineInput(placeholder=f"{first_key(self.app, 'find')} finds a word", id="search")
        yield LineList(id="entries")

    @property
    def entries(self) -> LineList:
        return self.query_one("#entries", LineList)

    def show_scene(self, scene: Scene) -> None:
        """Show the vocabulary of the model that is explored, where the stop is it."""
        model, used = scene.session.model, scene.session.encoding.ids
        words = model.vocabulary
        if words is None or scene.position.stop != VOCABULARY or (words is self._vocabulary and used == self._used):
            return
        own = model.folder is not None and words.path is not None and words.path.parent == model.folder
        self._called = model.name if own else words.name  # one that lies in its folder is the model's
        if words is not self._vocabulary:
            self._vocabulary, self._hits = words, None
            self.query_one(Input).value = ""
        self._used, self._uses, self._first = used, Counter(used), tuple(dict.fromkeys(used))
        self._fill()

    def action_search(self) -> None:
        self.query_one(Input).focus()

    def _fill(self) -> None:
        words = self._vocabulary
        if words is None:
            return
        count = words.size if self._hits is None else len(self._hits)
        self.entries.show(count, partial(self._line, words))
        repeated = f" · {words.repeated} repeated" if words.repeated else ""
        hits = "" if self._hits is None else f" · {count:,} found"
        self.border_title = f"Vocabulary · {visible(self._called)} · {words.size:,} words{repeated}{hits}"

    def _entry(self, index: int) -> int:
        """The ID of a line: the words of the sentence first, then the others in order."""
        return entry_of(self._first, index) if self._hits is None else self._hits[index]

    def _line(self, words: Vocabulary, index: int) -> Text:
        token_id = self._entry(index)
        uses = self._uses[token_id]
        style = self.get_component_rich_style("vocabulary--used" if uses else "vocabulary--plain", partial=True)
        text = Text(f"{token_id:>8}  ", self.get_component_rich_style("vocabulary--quiet", partial=True))
        said = f"  in the sentence{f' × {uses}' if uses > 1 else ''}" if uses else ""
        room = self.entries.viewport.width - len(text.plain) - (22 if uses else 0)
        text.append_text(self._written(words, token_id, style, room))
        return text.append(said, style)

    def _written(self, words: Vocabulary, token_id: int, style: Style, room: int) -> Text:
        """A word, or a piece and what it stands for where that is something else, in as many columns as there are."""
        word = words.word(token_id)
        if words.kind == "words":
            return Text(fit_label(word, max(24, min(cells(word), room))), style)
        reading, label = words.reading(token_id), words.label(word)
        quiet = self.get_component_rich_style("vocabulary--quiet", partial=True)
        explained = "" if reading in (word, label) else visible(reading)
        short = 20  # columns that the reading has at least
        piece = max(16, min(cells(label), room - short))
        reads = min(max(room - piece, min(cells(explained) + 2, short)), 28)
        return Text(fit_label(label, piece), style).append(fit_label(f"  {explained}", reads), quiet)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        if self._vocabulary is not None:
            self._hits = self._vocabulary.search(event.value) if event.value else None
            self._fill()

    @on(Input.Submitted)
    def _searched(self, event: Input.Submitted) -> None:
        event.stop()
        self.entries.focus()

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        self.post_message(self.EntryChosen(self._entry(event.index)))


INKS = {"plain": Style(), "quiet": Style(dim=True), "strong": Style(bold=True)}


class TextPane(VerticalScroll, can_focus=True):
    """A stop that is words; those that there is no room for are scrolled to."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TEMPERATURE)
    DEFAULT_CSS = """
    TextPane {
        padding: 0 1;
        scrollbar-size-vertical: 1;
        Static { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        keep_bars(self)
        self._drawn: Drawn | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="words", markup=False)

    def show_scene(self, scene: Scene) -> None:
        """Show the words of a stop in the width that there is; none until they are there."""
        if (words := WORDS.get(scene.position.stop)) is None:
            return
        self.border_title = words.title
        if self._drawn is not scene.words:
            self._drawn = scene.words
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.content_size.width - 1  # left to the scroll bar, whether it is there or not
        pieces = [] if self._drawn is None else self._drawn(width).pieces
        for words in self.query_children("#words").results(Static):
            words.update(Text.assemble(*((text, INKS[ink]) for text, ink in pieces)))
