"""A sentence that is edited: at every letter what is behind follows, and both sentences stand above one another."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property, partial

from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.prompt import STALE, Below, PromptScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools.sentence.lines import changed, sentences
from tui_transformer.session.pane_fit import lines_edited
from tui_transformer.session.sentence_change import SentenceChange, change_of, cost_of_change
from tui_transformer.session.sentences import SOURCE, TARGET
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Size

FRAME, AROUND = 2, 4
"""Lines and columns of the box that its text does not have."""

CHANGE = "sentence change"
"""As what the worker is asked for."""

QUICK, PAUSE = 0.05, 0.08
"""Seconds that a letter may take to be followed at once, and those without one after which it is followed else."""


class BothSentences(Below):
    """The sentence before and the one that is typed, and what is known of what that changes; it tells what follows.

    Attributes:
        before: The session on the sentence before.
        after: That on what is typed, or the last of it that could be read.
    """

    def __init__(
        self,
        worker: Worker,
        before: Session,
        value: str,
        read: Callable[[str], Session],
        *,
        follow: Callable[[Session | None], None],
        room: Callable[[int], None],
        lines: Callable[[Size], int] = lines_edited,
        target: bool = False,
    ) -> None:
        """Know nothing yet.

        Args:
            worker: Computes what takes long.
            before: The session on the sentence as it is.
            value: The sentence.
            read: The session on another one; InputError where that cannot be read.
            follow: Called at every letter with the session; None where what is typed cannot be read, so that what is
                shown is of the sentence before.
            room: Called with the lines that the sentence takes, where they change.
            lines: Those on a screen.
            target: Whether it is what a decoder beside an encoder has written.
        """
        super().__init__()
        self.before = self.after = before
        self._worker, self._read, self._follow, self._room, self._lines_on = worker, read, follow, room, lines
        self._first, self._read_already = value, {value: before}
        self._sequence = TARGET if target else SOURCE
        self._known: SentenceChange | None = None
        self._is_read, self._lines = True, 0
        self._late: Timer | None = None
        self._took = 0.0002 * len(before.trace.program.steps)  # about: a step takes so long to be laid out

    @property
    def settled(self) -> bool:
        return self._late is None and (not self.is_attached or self._requests.settled)

    def on_mount(self) -> None:
        self.prompt.screen_layout_refresh_signal.subscribe(self, lambda _: self._take_room())
        self._take_room()
        self._compare()

    @property
    def prompt(self) -> PromptScreen:
        screen = self.screen
        assert isinstance(screen, PromptScreen)  # noqa: S101
        return screen

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self.prompt, self._worker, self._show, lambda: self.before.model.backend.device == "cpu")

    def _take_room(self) -> None:
        lines = self._lines_on(Size(*self.app.size))
        if lines != self._lines:
            self._lines = lines
            self._room(lines)
            self._show()

    def session_of(self, text: str | None) -> Session:
        """The session on what was given; that before where nothing was, or nothing was changed."""
        if self._late is not None:
            self._late.stop()
        self._worker.cancel(CHANGE)
        if text is None or self.after is self.before:
            return self.before
        remember("sentences", text)
        return self.after

    # Letter by letter

    def typed(self, text: str) -> None:
        """Let everything follow a letter; where that takes long, once no other comes."""
        if self._late is not None:
            self._late.stop()
        if self._took > QUICK:
            self._late = later(self, PAUSE, partial(self._follow_text, text))
        else:
            self._follow_text(text)

    def check(self, text: str) -> None:
        """Read what is typed; what was read of it already is kept, with what is known of it.

        Raises:
            InputError: It cannot be read.
        """
        session = self._read_already.get(text) or self._read(text)
        self._read_already = {self._first: self.before, text: session}
        self.after = session

    def _follow_text(self, text: str) -> None:
        """Show what is typed; nothing waits for what has to be computed."""
        begun, self._late = time.monotonic(), None
        try:
            self.check(text)
        except InputError as error:
            self._is_read = False
            self._requests.cancel(CHANGE)
            self.prompt.refuse(error)
            self._follow(None)
            self._show()
        else:
            self._is_read = True
            self._follow(self.after)
            self._compare()
        self._took = time.monotonic() - begun

    def _compare(self) -> None:
        """Ask for what the sentence changes; a newer letter ends that."""
        before, after = self.before, self.after
        cost = cost_of_change(before, after)
        self._requests.ask(CHANGE, cost, lambda task: change_of(before, after, task.report), self._take)
        self._show()

    def _take(self, change: SentenceChange) -> None:
        self._known = change
        self._show()

    def _show(self) -> None:
        """Both sentences and what is known of them, dimmed where it is old; nothing where what is typed is none."""
        if not self._is_read:
            self.update("")
            return
        width, known = max(self.app.size.width - AROUND, 1), self._known
        height = self._lines - FRAME - 1
        lines: list[Content] = []
        if height >= 3:
            lines += sentences(self.before, self.after, self._sequence, width)
        old = known is None or known.after is not self.after
        lines += changed(known, width, height - len(lines), old=old)
        self.update(Content("\n").join(each.truncate(width) for each in lines[:height]))


def show_as_new(screen: Overview) -> None:
    """What a tool shows is of what is typed."""
    screen.query_one("#overview-content").remove_class(STALE)


def prompt_for(title: str, value: str, both: BothSentences, over: Widget) -> PromptScreen:
    """Asks for a sentence in the place of a widget, with both below it."""
    lately = recent("sentences")
    title += ", as token IDs" * (both.before.model.vocabulary is None)
    return PromptScreen(title, value=value, check=both.check, preview=both.typed, lately=lately, over=over, below=both)


def edit_in(screen: Overview, show: Callable[[Session], None]) -> None:
    """Edit the sentence over a tool, which shows each session that it is given; the main screen follows at the end."""
    session, port = screen.session, screen.port
    if not session.model.config.vocab_size:
        screen.say("this model reads no sentence")
        return
    place = Static(id="overview-edited")
    content = screen.query_one("#overview-content")

    def room(lines: int) -> None:
        place.styles.height = lines

    def follow(changed: Session | None) -> None:
        content.add_class(STALE)
        if changed is not None and changed is not screen.session:
            screen.session = changed
            show(changed)
        elif changed is not None:
            show_as_new(screen)

    title = "Source sentence" if session.model.has_decoder else "Sentence"
    value = session.text or session.encoding.text
    both = BothSentences(screen.worker, session, value, session.with_text, follow=follow, room=room)

    def finish(text: str | None) -> None:
        chosen = both.session_of(text)
        place.remove()
        screen.remove_class("-edited")
        follow(chosen)
        if chosen is not session:
            port.change(chosen)

    screen.add_class("-edited")
    screen.mount(place, before=content)
    screen.open(prompt_for(title, value, both, place), finish)
