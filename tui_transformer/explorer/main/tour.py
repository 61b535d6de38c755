"""The tour: puts the screen where each of its stops says, and gives everything back when it is left; its card."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.css.scalar import Scalar
from textual.message import Message
from textual.widgets import Static

from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.panes.lines import CARD
from tui_transformer.explorer.main.predict import Predicting
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.actions.main import TOUR
from tui_transformer.explorer.shell.dialog import CORNERS, plain
from tui_transformer.explorer.shell.keymap import key_line, keymap_of, with_keys
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.guide.texts import Stop
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.pane_fit import card_lines, has_question
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.tour_stop import (
    Scenery,
    TourState,
    backwards,
    doing,
    goes_back,
    has_outcome,
    outcome,
    outcome_cost,
    scenery,
    tour_of,
)
from tui_transformer.session.view_state import Size
from tui_transformer.text.display import visible

PANE_OF: dict[str, str] = {"explain": "cell", "chart": "chart"}
"""The pane that a stop is about, where one is shown at a time."""

ANSWERS = "question 99.9 % → statement 99.9 %"
LOSS = "the model says question 99.9 %, the target is statement: loss 7.1234"
"""As long as what comes of a stop usually is: before → after, and backward."""


class Tour:
    """Leads through what is explored, a stop after the other."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Navigation, predicting: Predicting) -> None:
        self._explored, self._presenter, self._port, self._predicting = explored, presenter, port, predicting
        self._panes, self._screen = presenter.panes, presenter.panes.screen
        self._state: TourState | None = None
        self._place = 0
        self._asked: set[str] = set()
        self._hidden = False
        self._shown: tuple[Session, ...] = ()
        port.begin_tour, port.end_tour = self.begin, self.leave

    @property
    def file(self) -> Path | None:
        """The file of the lecture that goes on, if it is from one."""
        return None if self._state is None else self._state.told.path

    @property
    def stop(self) -> tuple[int, int, str] | None:
        """The number of the stop that is shown, from 1, of how many, and its name; None without a tour."""
        if self._state is None:
            return None
        stops = self._state.told.stops
        return self._place + 1, len(stops), stops[self._place].name

    def begin_or_leave(self) -> None:
        """Begin the tour of this model, backward that of gradients, or leave it."""
        if self._state is not None:
            self.leave()
        elif (name := tour_of(self._explored.session)) is not None:
            self.begin(name)
        else:
            what = f"there is no tour of {self._explored.session.model.name}"
            self._port.say(self._port.hint(f"{what}: {{open}} lists tours"))

    def begin(self, name: str) -> None:
        """Begin a tour of the program; one that goes on is left first."""
        self.follow(lecture(name))

    def follow(self, told: Lecture) -> None:
        """Begin a tour, of the program or from a file; one that goes on is left first."""
        told = with_keys(told, keymap_of(self._screen.app))
        self.leave()
        state = self._state = TourState.begin(self._explored, told)
        self._explored.change_view(zoom=None)
        self._place, self._asked, self._hidden, self._shown = 0, set(), False, ()
        self._panes.told = tuple(_paragraphs(told.question, stop) for stop in told.stops)
        self._screen.mount(TourPanel(told.question, self._panes.told), after="#body")
        self._presenter.show_now()
        if goes_back(told):
            program = state.base.trace.program
            cost = 3 * sum(map(program.flops, program.steps))
            self._port.ask("tour", cost, lambda task: backwards(state.base, task.report), self._set_out)
        else:
            self._set_out(state.base)

    def _set_out(self, base: Session) -> None:
        if self._state is not None:
            self._state = replace(self._state, base=base)
        self._screen.call_after_refresh(self._show)

    def go(self, direction: int) -> None:
        """Go to the next stop, after which the tour is left, or to the one before."""
        place = self._place + direction
        if self._state is None or place >= len(self._state.told.stops):
            self.leave()
        elif place >= 0:
            self._place = place
            self._show()

    def leave(self) -> None:
        """End the tour, and go back to what was explored before; what the reader changed meanwhile, redo brings."""
        state, self._state = self._state, None
        if state is None:
            return
        for panel in self._screen.query(TourPanel):
            panel.remove()
        self._panes.told = ()
        changed = state.leave(self._explored, self._shown)
        self._presenter.focus(self._explored.view.active)
        if changed:
            self._port.say(self._port.hint("the tour has ended: {redo} brings back what you changed"))

    # A stop

    @property
    def _panel(self) -> TourPanel:
        return self._screen.query_one(TourPanel)

    def _show(self) -> None:
        """Show the text of the stop, and put the screen where it says."""
        if self._state is None:
            return
        stops, base = self._state.told.stops, self._state.base
        stop = stops[self._place]
        self._panel.show(stop, self._place + 1, len(stops))
        self._panel.focus()
        cost = AT_ONCE + 1 if stop.cell is not None else 0
        self._port.ask("tour", cost, lambda task: scenery(base, stop, task.report), partial(self._ask_first, stop))

    def _ask_first(self, stop: Stop, shown: Scenery) -> None:
        """Let the reader predict what the stop will show, once; then show it."""
        kind = stop.predict
        if kind is None or stop.name in self._asked or self._state is None:
            self._set(stop, shown)
            return
        self._asked.add(stop.name)
        trace, position = shown.after.trace, shown.position
        self._port.ask(
            "tour",
            trace.pending((position.stop,)),
            lambda task: trace.prepare(position.stop, before=lambda step: task.report(step.name)),
            lambda _: self._predicting.ask_at(shown.after, position, kind, lambda: self._set(stop, shown)),
        )

    def _set(self, stop: Stop, shown: Scenery) -> None:
        state, explored = self._state, self._explored
        if state is None or stop is not state.told.stops[self._place]:
            return
        changed = explored.session is not shown.after
        edited = [shown.before] if shown.after is not shown.before else []
        explored.history = History(shown.after, [*state.before.history.past, *edited])
        explored.trail, self._shown = [], (shown.before, shown.after)
        explored.change_view(chart=0)
        # the whole gives way to the chart that a stop is about, and is shown again at the next one
        hides = stop.action == "chart" and (self._panes.whole or self._hidden)
        if hides is not self._hidden:
            self._hidden = hides
            explored.change_view(whole=False if hides else state.before.view.whole)
        explored.position = shown.position
        if changed:
            self._presenter.show_session()
        else:
            self._presenter.show()
        if not self._panes.arrangement.is_wide:
            self._presenter.focus(PANE_OF.get(stop.action or "", "matrix"))
        self._panel.focus()
        if has_outcome(stop):
            cost = outcome_cost(shown)
            self._port.ask("tour", cost, lambda task: outcome(shown, stop, task.report), self._say_outcome)

    def _say_outcome(self, text: str) -> None:
        if self._state is not None:
            self._panel.say(text)


def _paragraphs(question: str, stop: Stop) -> tuple[str, ...]:
    """Text that the card of a stop may say; its outcome is not known yet."""
    notes = (f"notes: {stop.notes}",) if stop.notes else ()
    comes = LOSS if stop.cell is not None else f"{doing(stop)}: {ANSWERS}"
    return question, stop.text, *notes, *((comes,) if has_outcome(stop) else ())


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

    def __init__(self, question: str, texts: tuple[tuple[str, ...], ...] = ()) -> None:
        """The card of a tour that answers a question; `texts` are the paragraphs of its stops.

        It has no ID: the one before may still be there.
        """
        super().__init__(name=CARD)
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
