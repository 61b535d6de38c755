"""Writing, token by token: forwards, back, on until the end, and a token chosen by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from tui_transformer.engine.computation import Watch
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.generate.draft import Draft, GenerationView, view_of
from tui_transformer.explorer.tools.generate.view import GenerateView
from tui_transformer.session.exploration import History
from tui_transformer.session.store import AT_ONCE

WRITE, GATHER = "write", "gather"
"""Kinds of work: another draft, and what is shown of one."""

MOST_WAITING = 16
"""Steps that keys ask for while a token is being computed."""


class Writing:
    """Asks the worker, which alone uses the writer, for one draft after another.

    Attributes:
        history: The drafts; None before the prompt was read.
        layer: The layer whose cache is gathered.
        failed: Called where another draft could not be made.
    """

    def __init__(self, requests: Requests, view: GenerateView, show: Callable[[GenerationView], None]) -> None:
        """Nothing is written yet; `show` shows what was gathered, the view at once what place is looked at."""
        self.history: History[Draft] | None = None
        self.layer = 0
        self.failed: Callable[[], None] = lambda: None
        self._requests, self._view, self._show = requests, view, show
        self._writing = self._goes_on = False
        self._waiting: deque[Callable[[], None]] = deque(maxlen=MOST_WAITING)
        requests.failed = lambda _: self._failed()

    @property
    def draft(self) -> Draft | None:
        return None if self.history is None else self.history.current

    # Drafts

    def change(self, change: Callable[[Draft, Watch], Draft], what: str, *, push: bool = False) -> None:
        """Another draft, made from this one; it can be ended before the next step."""
        draft = self.draft
        if draft is not None and not self._writing:
            self.write(lambda task: change(draft, lambda step: task.report(f"{what}: {step.name}")), push=push)

    def write(self, work: Callable[[Task], Draft], *, push: bool) -> None:
        """Let the worker make another draft and gather what is shown of it; pushed, undo has the one before."""
        layer = self.layer
        self._writing = True
        self._view.leave()
        self._requests.cancel(GATHER)
        self._requests.ask(WRITE, lambda task: view_of(work(task), layer), partial(self._take, push))

    def _take(self, push: bool, made: GenerationView) -> None:  # noqa: FBT001 - bound before it is called
        self._writing = False
        if self.history is None:
            self.history = History(made.draft)
        elif push:
            self.history.push(made.draft)
        else:
            self.history.current = made.draft
        self._requests.cancel(GATHER)  # of the draft before, where another layer was asked for meanwhile
        self._show(made)
        if made.layer != self.layer:
            self.gather()
        self._next()

    def gather(self) -> None:
        draft, layer = self.draft, self.layer
        if draft is None:
            return
        self._view.leave()
        self._view.show_text(draft)

        def work(task: Task) -> GenerationView:
            task.report("the cache")
            return view_of(draft, layer)

        self._requests.ask(GATHER, work, self._show, AT_ONCE)

    # Steps

    def forward(self) -> None:
        """Go on to the next token; at the end write it, after the one that is being computed."""
        draft = self.draft
        if draft is None or self._writing:
            self._waiting.append(self.forward)
        elif not draft.at_end:
            self.go(draft.place + 1)
        elif draft.state.finished is not None:
            self._goes_on = False
            self._requests.screen.say(f"the text ends: {draft.state.finished}")
        else:
            self.change(lambda draft, before: draft.written(before=before), f"token {len(draft.ids) + 1:,}")

    def backward(self) -> None:
        """Look at the distribution that the token before was chosen from."""
        screen = self._requests.screen
        if self.waits(self.backward) or (draft := self.draft) is None:
            return
        if draft.place:
            self.go(draft.place - 1)
        else:
            screen.say(hint(screen.app, "the tokens before were given: {sentence.edit} edits them"))

    def go(self, place: int) -> None:
        if self.history is not None:
            self.history.current = self.history.current.moved(place)
            self.gather()

    def choose(self, token: int) -> None:
        """Write a token by hand; what was after the place is left out."""
        draft = self.draft
        if draft is None:
            return
        if token == draft.chosen:
            self.go(draft.place + 1)
        else:
            what = f"token {len(draft.state.ids) + 1:,}"
            self.change(lambda draft, before: draft.written(token, before), what, push=True)

    # Going on

    def write_on(self) -> None:
        """Write until the text ends; once more halts."""
        if self._goes_on:
            self.halt()
            return
        self._goes_on = True
        if self.draft is not None and not self._writing:
            self.go(len(self.draft.states) - 1)
            self._write_more()

    def _next(self) -> None:
        """Do what keys asked for meanwhile; else write the next token, where the text is written on."""
        screen = self._requests.screen
        while self._waiting and not self._writing and screen.is_current:
            self._waiting.popleft()()
        if not screen.is_current:
            self._waiting.clear()
        if self._goes_on and not self._writing:
            screen.call_after_refresh(self._write_more)

    def _write_more(self) -> None:
        if self._goes_on and not self._writing:
            self.forward()

    def halt(self) -> bool:
        """End what is being written; whether there was something."""
        was = self._goes_on or self._writing
        self._forget()
        self._requests.cancel(WRITE)
        if was:
            self._requests.doing = ""
            self._requests.show()
        return was

    def waits(self, action: Callable[[], None]) -> bool:
        """End writing on, and let an action wait for the token that is being computed; whether it has to."""
        self._goes_on = False
        if self._writing:
            self._waiting.append(action)
        return self._writing

    def behind(self, action: Callable[[], None], *, is_choice: bool) -> bool:
        """Let what the list is to do wait for what waits already, a choice also for the token that is being computed.

        Whether it has to. One that is pressed when as many wait as may is dropped: none before it is.
        """
        has_to = bool(self._waiting) or (is_choice and self._writing)
        if has_to and len(self._waiting) < MOST_WAITING:
            self._waiting.append(action)
        return has_to

    def _failed(self) -> None:
        self._forget()
        self.failed()

    def _forget(self) -> None:
        self._writing = self._goes_on = False
        self._waiting.clear()
