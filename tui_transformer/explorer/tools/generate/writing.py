"""Writing, token by token: forwards, back, on until the end, and a token chosen by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from textual import on

from tui_transformer.engine.trace import Watch
from tui_transformer.explorer.shell.asking import AT_ONCE
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.explorer.state.history import History
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.tools.generate.look import Look, look
from tui_transformer.explorer.tools.generate.stage import GenerateStage
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.token_text import TokenText

WRITE, LOOK = "write", "look"
"""Kinds of work: another draft, and what is shown of one."""

MOST_WAITING = 16
"""Steps that keys ask for while a token is being computed."""


class WritingStage(GenerateStage):
    """Asks the worker, which alone uses the writer, for one draft after another."""

    def __init__(self, worker: Worker, session: Session) -> None:
        """Nothing is written yet."""
        super().__init__(worker, session)
        self.requests.failed = lambda _: self._forget()
        self._writing = False
        self._goes_on = False
        self._waiting: deque[Callable[[], None]] = deque(maxlen=MOST_WAITING)

    def _change(self, change: Callable[[Draft, Watch], Draft], what: str, *, push: bool = False) -> None:
        """Another draft, made from this one; esc ends it before the next step."""
        draft = self.draft
        if draft is None or self._writing:
            return

        def work(task: Task) -> Draft:
            return change(draft, lambda step: task.report(f"{what}: {step.name}"))

        self._write(work, push=push)

    def _write(self, work: Callable[[Task], Draft], *, push: bool) -> None:
        """Let the worker make another draft and gather what is shown of it."""
        layer = self.cache_layer

        def done(found: Look) -> None:
            self._writing = False
            if not self.is_attached:
                return
            if self.history is None:
                self.history = History(found.draft)
            elif push:
                self.history.push(found.draft)
            else:
                self.history.current = found.draft
            self.show(found)
            self._next()

        self._writing = True
        self.worker.cancel(LOOK)
        self.ask(WRITE, AT_ONCE + 1, lambda task: look(work(task), layer), done)

    def _look(self) -> None:
        """Gather again what is shown of the draft."""
        draft, layer = self.draft, self.cache_layer
        if draft is None:
            return
        self.show_text(draft)

        def work(task: Task) -> Look:
            task.report("the cache")
            return look(draft, layer)

        self.ask(LOOK, AT_ONCE + 1, work, lambda found: self.show(found) if self.is_attached else None)

    def action_forward(self) -> None:
        """Go on to the next token; at the end write it, after the one that is being computed."""
        draft = self.draft
        if draft is None or self._writing:
            self._waiting.append(self.action_forward)
        elif not draft.at_end:
            self._go(draft.place + 1)
        elif draft.state.finished is not None:
            self._goes_on = False
            self.say(f"the text ends: {draft.state.finished}")
        else:
            self._change(lambda draft, before: draft.written(before=before), f"token {len(draft.ids) + 1:,}")

    def action_backward(self) -> None:
        """Look at the distribution that the token before was chosen from."""
        draft = self.draft
        if draft is None or self._waits(self.action_backward):
            return
        if draft.place:
            self._go(draft.place - 1)
        else:
            self.say("the tokens before were given: / edits them")

    def _go(self, place: int) -> None:
        if self.history is not None:
            self.history.current = self.history.current.moved(place)
            self._look()

    def action_write_on(self) -> None:
        """Write until the text ends; once more halts."""
        if self._goes_on:
            self._stop()
            return
        self._goes_on = True
        if self.draft is not None and not self._writing:
            self._go(len(self.draft.states) - 1)
            self._write_more()

    def _next(self) -> None:
        """What keys asked for meanwhile; else the next token, where the text is written on."""
        while self._waiting and not self._writing and self.is_current:
            self._waiting.popleft()()
        if not self.is_current:
            self._waiting.clear()
        if self._goes_on and not self._writing:
            self.call_after_refresh(self._write_more)

    def _write_more(self) -> None:
        if self._goes_on and not self._writing:
            self.action_forward()

    @on(LineList.Chosen)
    def _choose(self, event: LineList.Chosen) -> None:
        """Write the token under the cursor; what was after it is left out."""
        draft, found = self.draft, self.found
        if draft is None or found is None or found.draft is not draft:
            return
        token = found.choices.listed[event.index].token
        if token == draft.chosen:
            self._go(draft.place + 1)
        else:
            what = f"token {len(draft.state.ids) + 1:,}"
            self._change(lambda draft, before: draft.written(token, before), what, push=True)

    @on(TokenText.Chosen)
    def _clicked(self, event: TokenText.Chosen) -> None:
        draft = self.draft
        if draft is not None and event.place >= draft.state.prompt:
            self._stop()
            self._go(event.place - draft.state.prompt)

    def _stop(self) -> bool:
        """End what is being written; whether there was something."""
        was = self._goes_on or self._writing
        self._forget()
        self.worker.cancel(WRITE)
        if was:
            self.requests.doing = ""
            self.show_lines()
        return was

    def _waits(self, action: Callable[[], None]) -> bool:
        """End writing on, and let an action wait for the token that is being computed; whether it has to."""
        self._goes_on = False
        if self._writing:
            self._waiting.append(action)
        return self._writing

    def _forget(self) -> None:
        """Nothing is being written, and nothing will be."""
        self._writing = self._goes_on = False
        self._waiting.clear()
