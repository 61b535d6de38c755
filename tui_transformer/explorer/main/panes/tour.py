"""The panel that leads a tour."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.css.scalar import Scalar
from textual.message import Message
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.main import TOUR
from tui_transformer.explorer.shell.dialog import CORNERS, plain
from tui_transformer.explorer.shell.keymap import key_line
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.guide.texts import Stop
from tui_transformer.session.pane_fit import card_lines, has_question
from tui_transformer.session.view_state import Size
from tui_transformer.text.display import visible


class TourPanel(VerticalScroll, can_focus=True):
    """A stop of the tour: its text, and what came of what the stop does. It has a place of its own in the layout."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TOUR)

    DEFAULT_CSS = """
    TourPanel {
        width: 1fr;
        scrollbar-size-vertical: 1;
        background: $background;
        border: round $border-blurred;
        border-title-color: $foreground;
        border-title-style: bold;
        border-subtitle-align: right;
        &:focus {
            border: round $accent;
            border-title-color: $accent;
        }
        Static { height: auto; padding: 0 1; }
        #question { color: $foreground 70%; text-style: italic; }
        #outcome { color: $accent; text-style: bold; }
        #notes { color: $foreground 70%; }
        #question.-empty, #notes.-empty, #outcome.-empty { display: none; }
    }
    """

    class Asked(Message):
        """Something that the panel asks for."""

    class Next(Asked):
        """The next stop is wanted."""

    class Back(Asked):
        """The stop before is wanted."""

    class Left(Asked):
        """The tour is left."""

    def __init__(self, question: str, texts: tuple[tuple[str, ...], ...] = (), *, id: str | None = None) -> None:
        """The card of a tour that answers a question; `texts` are the paragraphs of its stops."""
        super().__init__(id=id)
        self._question, self._texts, self._number, self._total = question, texts, 1, 1

    def compose(self) -> ComposeResult:
        """Question, text and outcome; title, number and keys are in the border."""
        yield Static(plain(self._question), id="question", classes="" if self._question else "-empty")
        yield Static(id="words")
        yield Static(id="notes", classes="-empty")
        yield Static(id="outcome", classes="-empty")

    def on_mount(self) -> None:
        """Follow the size of the screen."""
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        self._fit()

    def show(self, stop: Stop, number: int, total: int) -> None:
        """Show a stop: the number-th (from 1) of so many."""
        self.border_title = Content(f"{number} of {total} · {visible(stop.title)}")
        self._number, self._total = number, total
        self._show_keys()
        asks = bool(self._question) and has_question(Size(*self.screen.size), number)
        self.query_one("#question").set_class(not asks, "-empty")
        self.query_one("#words", Static).update(plain(stop.text))
        notes = self.query_one("#notes", Static)
        notes.update(plain(f"notes: {stop.notes}"))
        notes.set_class(not stop.notes, "-empty")
        self.say("")
        self.scroll_home(animate=False)

    def say(self, outcome: str) -> None:
        """Show what came of what the stop does; "" for nothing."""
        line = self.query_one("#outcome", Static)
        line.update(plain(outcome))
        line.set_class(not outcome, "-empty")

    def action_ask(self, what: str) -> None:
        """Say what is wanted."""
        self.post_message(_ASKED[what]())

    def _show_keys(self) -> None:
        """The keys of the card; before the first stop there is none, after the last the tour ends."""
        none = ["cursor.left"] * (self._number == 1) + ["cursor.right"] * (self._number == self._total)
        named = [action for action in TOUR if action.id not in none]
        self.border_subtitle = key_line(named, self.app, self.screen.size.width - CORNERS, always=1)

    def _fit(self) -> None:
        self._show_keys()
        if self.styles.height != Scalar.from_number(lines := card_lines(self.screen.size, self._texts)):
            self.styles.height = lines


_ASKED: dict[str, type[TourPanel.Asked]] = {"Next": TourPanel.Next, "Back": TourPanel.Back, "Left": TourPanel.Left}
