"""The card of a tour: the text of a stop, or its question first, how one could have known, and what came of it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.css.scalar import Scalar
from textual.events import Key
from textual.message import Message
from textual.widgets import Static

from tui_transformer.explorer.guard.scroll_bars import keep_bars
from tui_transformer.explorer.main.panes.lines import ASKS, CARD, ENDS
from tui_transformer.explorer.main.question import Question
from tui_transformer.explorer.shell.actions.main import ASKED_BY_TOUR, TOUR, TOUR_AFTER
from tui_transformer.explorer.shell.dialog import CORNERS, plain
from tui_transformer.explorer.shell.keymap import hint, key_line
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.guide.lecture import Lecture
from tui_transformer.guide.texts import tour_question
from tui_transformer.session.pane_fit import card_lines, has_question
from tui_transformer.session.tour_stop import tour_after
from tui_transformer.session.view_state import Size
from tui_transformer.text.display import visible


def goes_on_with(tour: str) -> str:
    """The line that offers the tour after this one, at the last stop."""
    return f"{{tour}} goes on: {tour_question(tour)}"


class TourPanel(VerticalScroll, can_focus=True):
    """A stop of the tour: its text, or its question first, how one could have known, and what came of what it does.

    It has a place of its own in the layout.

    Attributes:
        choice: Which answer of its question is chosen; none at first.
    """

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
        &:focus {  /* it has the keys; where one is in the model is in the accent */
            border: round $primary;
            border-title-color: $primary;
        }
        Static { height: auto; padding: 0 1; }
        #question { color: $foreground 70%; text-style: italic; }
        #verdict, #outcome, #after { color: $accent; text-style: bold; }
        .-empty { display: none; }
    }
    """

    class Next(Message):
        """The next stop is wanted, or no answer."""

    class Back(Message):
        """The stop before is wanted."""

    class Left(Message):
        """The tour is left."""

    class Answered(Message):
        """What is chosen is the answer; without a question the next stop is wanted."""

    def __init__(self, texts: tuple[tuple[str, ...], ...] = ()) -> None:
        """The card of a tour; `texts` are the paragraphs of its stops.

        It has no ID: the one before may still be there.
        """
        super().__init__(name=CARD)
        keep_bars(self)
        self._texts, self._number, self._total, self._goes_on = texts, 1, 1, False
        self._question: Question | None = None
        self.choice: int | None = None

    def compose(self) -> ComposeResult:
        for name in ("question", "words", "choices", "verdict", "outcome", "after"):
            yield Static(id=name, classes="-empty")

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        self._fit()

    def show(self, told: Lecture, number: int, *, asks: bool = False, goes_on: bool = False) -> None:
        """Show a stop of a tour, by its number from 1.

        Args:
            told: The tour.
            number: The stop.
            asks: Whether its question comes first, and its text later.
            goes_on: Whether another tour goes on from here.
        """
        stop, self._total = told.stops[number - 1], len(told.stops)
        self._number, self._goes_on = number, goes_on
        self.border_title = Content(f"Stop {number} of {self._total} · {visible(stop.title)}")
        has_own = not stop.arrow and has_question(Size(*self.screen.size), number)
        self._write("question", told.question if has_own else "")
        self._write("words", "" if asks else stop.text)
        following = tour_after(told) if goes_on else None
        self._write("after", "" if following is None else hint(self.app, goes_on_with(following)))
        for name in ("choices", "verdict", "outcome"):
            self._write(name, "")
        self._turn(None)
        self.scroll_home(animate=False)

    def ask(self, question: Question, choice: int | None = None) -> None:
        """Ask before the stop is shown; its answers are in a line, the chosen one marked."""
        self.choice = choice
        self._write("words", question.text)
        answers = [Content(f"  {place}: {visible(each)} ") for place, each in enumerate(question.choices, 1)]
        if choice is not None:
            answers[choice] = Content.styled(f" ▸{answers[choice].plain[2:]}", "bold $accent")
        self._write("choices", Content("").join(answers))
        self._write("outcome", "")
        self._turn(question)
        if choice is not None:
            self.scroll_end(animate=False)

    def judge(self, verdict: str) -> None:
        """Say whether the answer was right and how one could have known; "" for no answer."""
        self._write("verdict", verdict)

    def say(self, outcome: str) -> None:
        """Show what came of what the stop does, or why there is no answer; "" for nothing."""
        self._write("outcome", outcome)
        if self._question is not None:
            self.scroll_end(animate=False)

    def on_key(self, event: Key) -> None:
        digit = int(event.key) if event.key.isdecimal() else 0
        if self._question is not None and 1 <= digit <= len(self._question.choices):
            event.stop()
            self.ask(self._question, digit - 1)

    def action_ask(self, what: str) -> None:
        asked: type[Message] = getattr(self, what)
        self.post_message(asked())

    def action_turn(self, by: int) -> None:
        """Choose the answer before or after; without a question scroll."""
        if self._question is None:
            self.scroll_relative(y=by, animate=False)
            return
        last = len(self._question.choices) - 1
        at = (0 if by > 0 else last) if self.choice is None else min(max(self.choice + by, 0), last)
        self.ask(self._question, at)

    def _write(self, name: str, text: str | Content) -> None:
        line = self.query_one(f"#{name}", Static)
        line.update(plain(text) if isinstance(text, str) else text)
        line.set_class(not text, "-empty")

    def _turn(self, question: Question | None) -> None:
        """Have the keys of a question, or of a stop."""
        self._question = question
        self.choice = None if question is None else self.choice
        self.set_class(question is not None, ASKS)
        self.set_class(self._number == self._total, ENDS)
        self._show_keys()

    def _show_keys(self) -> None:
        """The keys of the card; before the first stop there is none, after the last the tour ends."""
        none = ["cursor.left"] * (self._number == 1) + ["cursor.right"] * (self._number == self._total)
        named = [action for action in (*TOUR_AFTER * self._goes_on, *TOUR) if action.id not in none]
        asked = ASKED_BY_TOUR if self._question is not None else named
        self.border_subtitle = key_line(asked, self.app, self.screen.size.width - CORNERS, always=1)

    def _fit(self) -> None:
        self._show_keys()
        if self.styles.height != Scalar.from_number(lines := card_lines(self.screen.size, self._texts)):
            self.styles.height = lines
