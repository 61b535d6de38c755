"""A model that writes on, token by token: what every key does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from tui_transformer.errors import InputError
from tui_transformer.explorer.asking import AT_ONCE
from tui_transformer.explorer.generate.cache import sublayers
from tui_transformer.explorer.generate.draft import Draft
from tui_transformer.explorer.generate.look import Look, look
from tui_transformer.explorer.generate.stage import GenerateStage
from tui_transformer.explorer.generate.wording import token_texts
from tui_transformer.explorer.history import History
from tui_transformer.explorer.position import Position
from tui_transformer.explorer.screens.generate_settings import GREEDY, GenerateSettings
from tui_transformer.explorer.screens.prompt import PromptScreen
from tui_transformer.explorer.session import PROBABILITIES, Session
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.token_text import TokenText
from tui_transformer.explorer.worker import Task
from tui_transformer.generation.defaults import defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.guide.texts import help_text
from tui_transformer.views.step_view import Place

if TYPE_CHECKING:
    from tui_transformer.explorer.main_screen import MainScreen

WRITE, LOOK = "write", "look"
"""Kinds of work: another draft, and what is shown of one."""

MOST_WAITING = 16
"""Steps that keys ask for while a token is being computed."""

EDITS_LEFT_OUT = "the model writes without the edits of the explorer"


def open_from(screen: MainScreen) -> None:
    """Write on from the sentence that is explored."""
    session = screen.session
    try:
        defaults = defaults_of(session.model)
        writer = Writer(session.model, defaults.settings, defaults.rules, session.encoding.ids)
    except InputError as error:
        screen.say(str(error))
        return
    screen.app.push_screen(GenerateScreen(screen, writer))
    for note in filter(None, (defaults.note, EDITS_LEFT_OUT if session.edits else "")):
        screen.say(note, severity="warning")


class GenerateScreen(GenerateStage):
    """Everything that a key can do. The worker alone uses the writer."""

    def __init__(self, main: MainScreen, writer: Writer) -> None:
        """Nothing is written yet."""
        super().__init__(main.worker, main.session)
        self._main, self._writer = main, writer
        self._writing = False
        self._goes_on = False
        self._waiting: deque[Callable[[], None]] = deque(maxlen=MOST_WAITING)

    def on_mount(self) -> None:
        """Read the prompt."""
        self.query_one(LineList).focus()
        self._begin(self._writer, self.session)
        self.show_lines()

    # Writing

    def _begin(self, writer: Writer, session: Session) -> None:
        """Read the prompt of a session; undo has the text back that was there."""
        settings = writer.settings if self.draft is None else self.draft.settings
        target = session.decoder_encoding
        prompt = session.encoding.ids if target is None else target.ids

        def work(task: Task) -> Draft:
            task.report(f"{len(prompt):,} tokens of the prompt")
            writer.settings = settings
            return Draft(writer, settings, (writer.begin(prompt),))

        self._write(work, push=True)

    def _change(self, change: Callable[[Draft], Draft], what: str, *, push: bool = False) -> None:
        """Another draft, made from this one."""
        draft = self.draft
        if draft is None or self._writing:
            return

        def work(task: Task) -> Draft:
            task.report(what)
            return change(draft)

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

    def _failed(self, error: Exception) -> None:
        self._forget()
        super()._failed(error)

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
            self._change(Draft.written, f"token {len(draft.ids) + 1:,}")

    def action_backward(self) -> None:
        """Look at the distribution that the token before was chosen from."""
        self._goes_on = False
        draft = self.draft
        if draft is None or self._writing:
            self._waiting.append(self.action_backward)
        elif draft.place:
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
        while self._waiting and not self._writing:
            self._waiting.popleft()()
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
            self._change(lambda draft: draft.written(token), what, push=True)

    @on(TokenText.Chosen)
    def _clicked(self, event: TokenText.Chosen) -> None:
        draft = self.draft
        if draft is not None and event.place >= draft.state.prompt:
            self._stop()
            self._go(event.place - draft.state.prompt)

    # Changes that can be undone

    def action_undo(self) -> None:
        """The text as it was before a choice."""
        self._restore(History.undo)

    def action_redo(self) -> None:
        """The choice again."""
        self._restore(History.redo)

    def _restore(self, restore: Callable[[History[Draft]], bool]) -> None:
        self._stop()
        if self.history is not None and restore(self.history):
            self._look()
        else:
            self.say(f"there is nothing to {restore.__name__}")

    def action_settings(self, field: str = GREEDY) -> None:
        """Ask how the next token is to be chosen."""
        self._stop()
        if self.draft is not None:
            self.app.push_screen(GenerateSettings(self.draft.settings, field), self._use)

    def _use(self, settings: Settings | None) -> None:
        if settings is not None and self.draft is not None and settings != self.draft.settings:
            self._change(lambda draft: draft.chosen_by(settings), "the distribution", push=True)

    def action_sentence(self) -> None:
        """Ask for another prompt; of an encoder–decoder for another source."""
        self._stop()
        session, found = self.session, list[Session]()

        def check(text: str) -> None:
            found[:] = [session.with_text(text)]

        title = "Source sentence" if session.model.has_decoder else "Prompt"
        value = session.text or session.encoding.text
        self.app.push_screen(
            PromptScreen(title, value=value, hint="u takes it back", check=check),
            lambda text: self._read(found[0]) if text is not None else None,
        )

    def _read(self, session: Session) -> None:
        """Begin with another prompt or source."""
        self.session = session
        writer = self._writer
        if session.model.has_decoder:
            writer = Writer(session.model, None, writer.rules, session.encoding.ids)
        self._begin(writer, session)

    # What is shown

    def action_other_layer(self, step: int) -> None:
        """The cache of another layer."""
        if self.draft is not None:
            self.cache_layer = (self.cache_layer + step) % len(sublayers(self.draft.writer))
            self._look()

    def action_help(self) -> None:
        """What there is on this screen, with formulas and sources."""
        from tui_transformer.explorer.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(help_text("generate"), "Help"))

    # Leaving

    def _stop(self) -> bool:
        """End what is being written; whether there was something."""
        was = self._goes_on or self._writing
        self._forget()
        self.worker.cancel(WRITE)
        if was:
            self.doing = ""
            self.show_lines()
        return was

    def _forget(self) -> None:
        """Nothing is being written, and nothing will be."""
        self._writing = self._goes_on = False
        self._waiting.clear()

    def action_leave(self) -> None:
        """End what is being written; else go back to the steps."""
        if not self._stop() or self.draft is None:
            self.worker.cancel(LOOK)
            self.dismiss()

    def action_explore(self) -> None:
        """Open the text up to the place in the explorer, at the probabilities of the token that comes next."""
        self._stop()
        draft = self.draft
        if draft is None:
            return
        ids, source = draft.state.ids, draft.writer.source
        try:
            session = replace(
                self.session, text="", ids=source or ids, decoder_text="", decoder_ids=ids if source else None, edits=()
            )
            _ = session.trace
        except InputError as error:
            self.say(str(error), severity="error")
            return
        self.dismiss()
        self._main.position = Position(PROBABILITIES, Place(row=len(ids) - 1, column=draft.marked))
        self._main.change(session)

    def action_export(self) -> None:
        """Ask for a file, and write the text to it."""
        draft = self.draft
        if draft is None:
            return
        text = "".join(token_texts(draft.writer.model, draft.ids))
        self.app.push_screen(
            PromptScreen("Write the text to", value="text.txt", check=lambda name: _write_text(name, text)),
            lambda name: self.say(f"written: {name}") if name is not None else None,
        )


def _write_text(name: str, text: str) -> None:
    """Write a text to the file that a person names."""
    from tui_transformer.files import write_whole

    if not name.strip():
        raise InputError("give the file a name")
    write_whole(Path(name.strip()), f"{text}\n".encode(errors="replace"))
