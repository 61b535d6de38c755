"""Changes of what is explored, each of which can be undone: another sentence, vocabulary, cell, direction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tui_transformer.engine.edits import Change, Edit
from tui_transformer.engine.explanation import Index
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.recent import recent, remember
from tui_transformer.explorer.shell.requests import AT_ONCE
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.state.overlay import GRADIENT, NOTHING
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.state.written_edits import written
from tui_transformer.views.step_view import index_of

HINT = "STEP[2:4] *= 0.5, = 0, = mean or += 4*'one text' - 4*'another'; {undo} takes it back"
"""How edits are written."""


class Editing:
    """Asks for changes and makes them."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Port) -> None:
        """Change what a presenter shows."""
        self._explored, self._presenter, self._port = explored, presenter, port

    def undo(self) -> None:
        """Take the last change back."""
        if self._explored.history.undo():
            self._presenter.show_session()
        else:
            self._port.say("there is nothing to undo")

    def redo(self) -> None:
        """Make the change again."""
        if self._explored.history.redo():
            self._presenter.show_session()
        else:
            self._port.say("there is nothing to redo")

    def turn_around(self) -> bool:
        """Walk backwards from the loss or the metric, or forwards; False where targets have to be set first."""
        session = self._explored.session
        if session.backward:
            self._port.change(session.with_overlay(NOTHING))
        elif (session.targets is None and session.scalar is None) or not session.has_loss:
            return False
        else:
            self._port.change(session.with_overlay(GRADIENT))
        return True

    # The text

    def sentence(self) -> None:
        """Ask for another sentence."""
        session = self._explored.session
        if not session.model.config.vocab_size:
            self._port.say(self._port.hint("this model reads no sentence: edit Q, K and V with {cell.edit}"))
            return
        title = "Source sentence" if session.model.has_decoder else "Sentence"
        self._ask_text(title, session.text or session.encoding.text, session.with_text)

    def target(self) -> None:
        """Ask for another target of a decoder beside an encoder."""
        session = self._explored.session
        if session.decoder_encoding is None:
            self._port.say("this model reads one sentence")
        elif session.model.vocabulary is None:
            self._ask_text("Target", session.decoder_encoding.text, session.with_decoder_text)
        else:
            self._ask_text("Target, after the start token", session.decoder_text, session.with_decoder_text)

    def _ask_text(self, title: str, value: str, changed_by: Callable[[str], Session]) -> None:
        """Ask for a text, and let every pane follow while it is typed."""
        explored, session = self._explored, self._explored.session
        hint = "token IDs" if session.model.vocabulary is None else f"up to {session.model.most_tokens:,} tokens"
        position, trail, lately = explored.position, explored.trail, recent("sentences")

        def check(text: str) -> None:
            explored.history.current = session if text == value else changed_by(text)

        def show() -> None:
            explored.position, explored.trail = position, trail
            self._presenter.show_session()

        def preview(text: str) -> None:
            with suppress(InputError):
                check(text)
                show()

        def finish(text: str | None) -> None:
            changed, explored.history.current = explored.history.current, session
            if text is not None and changed is not session:
                explored.history.push(changed)
                remember("sentences", text)
            show()

        self._port.open(
            PromptScreen(title, value=value, hint=hint, check=check, preview=preview, lately=lately), finish
        )

    # A number

    def cell(self) -> None:
        """Ask for the value of the cell under the cursor, or for an edit of any step or weight."""
        session, here = self._explored.session, self._cell()
        asked: list[Callable[[], None]] = []

        def check(text: str) -> None:
            asked[:] = [self._by_notation(text, here) if "=" in text else self._by_hand(text, here)]

        def finish(text: str | None) -> None:
            if text is not None:
                asked[0]()

        title = "Edit" if here is None else f"Set {here[0]}[{', '.join(map(str, here[1]))}]"
        hint = self._port.hint(f"a number, += 0.5 or *= 2 of this cell; {HINT}" if here is not None else HINT)
        value = _stored(session, here)
        prompt = PromptScreen(title, value=value, hint=hint, check=check, lately=recent("edits"), replaces=True)
        self._port.open(prompt, finish)

    def _cell(self) -> tuple[str, Index] | None:
        """The step and the cell under the cursor, where there is a number that can be edited."""
        scene, program = self._explored.scene, self._explored.session.trace.program
        if scene is None or scene.view.integer or scene.view.name in program.givens:
            return None
        return scene.view.name, index_of(program.axes(scene.view.name), scene.place)

    def _by_hand(self, text: str, here: tuple[str, Index] | None) -> Callable[[], None]:
        """A number in the cell under the cursor."""
        session = self._explored.session
        if here is None:
            raise InputError("there is no number here: name a step or a weight")
        changed = session.with_edits(Edit(*here, read_number(text, session.model.backend.dtype)))
        return lambda: self._port.change(changed)

    def _by_notation(self, text: str, here: tuple[str, Index] | None) -> Callable[[], None]:
        """An edit as `--edit` takes it; texts whose means are asked for are read by the worker."""
        from tui_transformer.explorer.tools.ablation.perform import perform

        model, base, port = self._explored.session.model, self._explored.session.base, self._port
        typed = written(base.program, text, here)
        typed.place.placed(base.program, base.givens)
        given = None if typed.runs else typed.change(model).placed(base.program, base.givens)

        def make(change: Change) -> None:
            now = port.session.base
            try:
                perform(port, (change.placed(now.program, now.givens),))
            except InputError as error:  # the sentence became another meanwhile
                port.say(str(error))

        def work(task: Task) -> Change:
            task.report("the mean of a text")
            return typed.change(model)

        def do() -> None:
            remember("edits", text)
            if given is None:
                port.ask("edit", AT_ONCE + 1, work, make)
            else:
                make(given)

        return do


def _stored(session: Session, here: tuple[str, Index] | None) -> str:
    """Value of a cell, as Python writes it."""
    if here is None:
        return ""
    name, index = here
    return repr(float(session.trace.window(name, tuple(range(i, i + 1) for i in index)).reshape(())))


def read_number(text: str, dtype: np.dtype[Any]) -> float:
    """A number as a person writes it, finite in the model's precision."""
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError as error:
        raise InputError(f"{text!r} is not a number") from error
    if not abs(value) <= float(np.finfo(dtype).max):
        raise InputError(f"{text!r} does not fit into {dtype}: the cell has to stay finite")
    return value
