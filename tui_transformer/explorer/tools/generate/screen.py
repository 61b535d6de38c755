"""A model that writes on, token by token: what every key does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.history import History
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import PROBABILITIES, Session
from tui_transformer.explorer.tools.generate.cache import sublayers
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.tools.generate.settings import GREEDY, GenerateSettings
from tui_transformer.explorer.tools.generate.wording import token_texts
from tui_transformer.explorer.tools.generate.writing import LOOK, WritingStage
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.generation.defaults import defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.guide.texts import help_text
from tui_transformer.views.step_view import Place

EDITS_LEFT_OUT = "the model writes without the edits of the explorer"


def open_from(port: Port) -> None:
    """Write on from the sentence that is explored."""
    session = port.session
    try:
        defaults = defaults_of(session.model)
        writer = Writer(session.model, defaults.settings, defaults.rules, session.encoding.ids)
    except InputError as error:
        port.say(str(error))
        return
    port.open(GenerateScreen(port, writer))
    for note in filter(None, (defaults.note, EDITS_LEFT_OUT if session.edits else "")):
        port.say(note, severity="warning")


class GenerateScreen(WritingStage):
    """What can be done with the text beside writing it."""

    def __init__(self, port: Port, writer: Writer) -> None:
        """Nothing is written yet."""
        super().__init__(port.worker, port.session)
        self.port, self._writer = port, writer

    def on_mount(self) -> None:
        """Read the prompt."""
        self.query_one(LineList).focus()
        self._begin(self._writer, self.session)
        self.show_lines()

    # Changes that can be undone

    def action_undo(self) -> None:
        """The text as it was before a choice."""
        if not self._waits(self.action_undo):
            self._restore(History.undo)

    def action_redo(self) -> None:
        """The choice again."""
        if not self._waits(self.action_redo):
            self._restore(History.redo)

    def _restore(self, restore: Callable[[History[Draft]], bool]) -> None:
        if self.history is not None and restore(self.history):
            self._look()
        else:
            self.say(f"there is nothing to {restore.__name__}")

    def action_settings(self, field: str = GREEDY) -> None:
        """Ask how the next token is to be chosen."""
        if self.draft is not None and not self._waits(partial(self.action_settings, field)):
            self.open(GenerateSettings(self.draft.settings, field), self._use)

    def _use(self, settings: Settings | None) -> None:
        if settings is not None and self.draft is not None and settings != self.draft.settings:
            self._change(lambda draft, _: draft.chosen_by(settings), "the distribution", push=True)

    def action_sentence(self) -> None:
        """Ask for another prompt; of an encoder–decoder for another source."""
        if self._waits(self.action_sentence):
            return
        session, found = self.session, list[Session]()

        def check(text: str) -> None:
            found[:] = [session.with_text(text)]

        title = "Source sentence" if session.model.has_decoder else "Prompt"
        value = session.text or session.encoding.text
        self.open(
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

    def _begin(self, writer: Writer, session: Session) -> None:
        """Read the prompt of a session; undo has the text back that was there."""
        settings = writer.settings if self.draft is None else self.draft.settings
        target = session.decoder_encoding
        prompt = session.encoding.ids if target is None else target.ids

        def work(task: Task) -> Draft:
            writer.settings = settings
            begun = writer.begin(prompt, lambda step: task.report(f"{len(prompt):,} tokens of the prompt: {step.name}"))
            return Draft(writer, settings, (begun,))

        self._write(work, push=True)

    # What is shown

    def action_other_layer(self, step: int) -> None:
        """The cache of another layer."""
        if self.draft is not None:
            self.cache_layer = (self.cache_layer + step) % len(sublayers(self.draft.writer))
            self._look()

    def action_help(self) -> None:
        """What there is on this screen, with formulas and sources."""
        from tui_transformer.explorer.shell.help import HelpScreen

        self.open(HelpScreen(help_text("generate"), "Help"))

    # Leaving

    def action_leave(self) -> None:
        """End what is being written; else go back to the steps."""
        if not self._stop() or self.draft is None:
            self.worker.cancel(LOOK)
            self.dismiss()

    def action_explore(self) -> None:
        """Open the text up to the place in the explorer, at the probabilities of the token that comes next."""
        draft = self.draft
        if draft is None or self._waits(self.action_explore):
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
        self._stop()
        self.dismiss()
        self.port.change(session, Position(PROBABILITIES, Place(row=len(ids) - 1, column=draft.marked)))

    def action_export(self) -> None:
        """Ask for a file, and write the text to it."""
        draft = self.draft
        if draft is None or self._waits(self.action_export):
            return
        text = "".join(token_texts(draft.writer.model, draft.ids))
        self.open(
            PromptScreen("Write the text to", value="text.txt", check=lambda name: _write_text(name, text)),
            lambda name: self.say(f"written: {name}") if name is not None else None,
        )


def _write_text(name: str, text: str) -> None:
    """Write a text to the file that a person names."""
    from tui_transformer.files import write_whole

    if not name.strip():
        raise InputError("give the file a name")
    write_whole(Path(name.strip()), f"{text}\n".encode(errors="replace"))
