"""Stops that are words: the vocabulary, and the text at the end or the loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Input, Static

from tui_transformer.explorer.shell.actions.main import TEMPERATURE, VOCABULARY
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.scene import Scene
from tui_transformer.session.session import VOCABULARY as STOP
from tui_transformer.session.view_state import entry_of
from tui_transformer.session.words import WORDS, Drawn, empty
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.text.vocabulary import Vocabulary

WORD, PIECE, READING = 24, 16, 28
"""Cells of a word alone, and of a piece and what it stands for, where all of a line fits."""

SHORT_READING, IN_SENTENCE = 20, 22
"""Cells of what a piece stands for at least, and of what is said behind the words of the sentence."""


SCROLL_BAR = 1
"""Columns that are left to it whether it is there or not."""


class VocabularyPane(Vertical):
    """A search line and the words; those of the sentence are highlighted."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(VOCABULARY)
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
        """Search line above, words below."""
        yield LineInput(placeholder=f"{first_key(self.app, 'find')} finds a word", id="search")
        yield LineList(id="entries")

    @property
    def entries(self) -> LineList:
        """The list of words."""
        return self.query_one("#entries", LineList)

    def show_scene(self, scene: Scene) -> None:
        """Show the vocabulary of the model that is explored, where the stop is it."""
        session = scene.session
        words, used = session.model.vocabulary, session.encoding.ids
        if words is not None and scene.position.stop == STOP and (words is not self._vocabulary or used != self._used):
            self._used = used
            own = (
                session.model.folder is not None
                and words.path is not None
                and words.path.parent == session.model.folder
            )
            self.show(words, used, session.model.name if own else words.name)  # one in the model's folder is its own

    def show(self, vocabulary: Vocabulary, used: Sequence[int], name: str) -> None:
        """Show a vocabulary by a name; `used` are the IDs of the sentence."""
        if vocabulary is not self._vocabulary:
            self._vocabulary, self._hits = vocabulary, None
            self.query_one(Input).value = ""
        self._uses, self._called = Counter(used), name
        self._first = tuple(dict.fromkeys(used))
        self._fill()

    def action_search(self) -> None:
        """Go to the search line."""
        self.query_one(Input).focus()

    def _fill(self) -> None:
        words = self._vocabulary
        if words is None:
            return
        count = words.size if self._hits is None else len(self._hits)
        self.entries.show(count, self._line)
        repeated = f" · {words.repeated} repeated" if words.repeated else ""
        hits = "" if self._hits is None else f" · {count:,} found"
        self.border_title = f"Vocabulary · {visible(self._called)} · {words.size:,} words{repeated}{hits}"

    def _entry(self, index: int) -> int:
        """The ID of a line: the words of the sentence first, then the others in order."""
        return entry_of(self._first, index) if self._hits is None else self._hits[index]

    def _line(self, index: int) -> Text:
        token_id = self._entry(index)
        uses = self._uses[token_id]
        style = self.get_component_rich_style("vocabulary--used" if uses else "vocabulary--plain", partial=True)
        text = Text(f"{token_id:>8}  ", self.get_component_rich_style("vocabulary--quiet", partial=True))
        said = f"  in the sentence{f' × {uses}' if uses > 1 else ''}" if uses else ""
        room = self.entries.viewport.width - len(text.plain) - (IN_SENTENCE if uses else 0)
        text.append_text(self._written(token_id, style, room))
        text.append(said, style)
        return text

    def _written(self, token_id: int, style: Style, room: int) -> Text:
        """A word, or a piece and what it stands for where that is something else, in as many columns as there are."""
        words = self._vocabulary
        word = "" if words is None else words.word(token_id)
        if words is None or words.kind == "words":
            return Text(fit_label(word, max(WORD, min(cells(word), room))), style)
        reading, label = words.reading(token_id), words.label(word)
        quiet = self.get_component_rich_style("vocabulary--quiet", partial=True)
        explained = "" if reading in (word, label) else visible(reading)
        piece = max(PIECE, min(cells(label), room - SHORT_READING))
        reads = min(max(room - piece, min(cells(explained) + 2, SHORT_READING)), READING)
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
        self._drawn: Drawn = empty

    def compose(self) -> ComposeResult:
        """The words."""
        yield Static(id="words", markup=False)

    def show_scene(self, scene: Scene) -> None:
        """Show the words of a stop in the width that there is; none until they are there."""
        if (words := WORDS.get(scene.position.stop)) is None:
            return
        if self.border_title != words.title:
            self.border_title = words.title
        if self._drawn is not (drawn := scene.words or empty):
            self._drawn = drawn
            self._draw()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        width = self.content_size.width - SCROLL_BAR
        for words in self.query_children("#words").results(Static):
            words.update(Text.assemble(*((text, INKS[ink]) for text, ink in self._drawn(width).pieces)))
