"""Changes of what is explored, each of which can be undone: another sentence, vocabulary, cell, direction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from tui_transformer.engine.edits import Change, Edit
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.session.answer_summary import answer_cost
from tui_transformer.session.edit_format import read_number, written
from tui_transformer.session.exploration import Exploration, Way
from tui_transformer.session.pane_fit import lines_edited
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS, Session
from tui_transformer.session.tour_stop import backwards
from tui_transformer.session.view_state import GRADIENT, NOTHING
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import index_of

HINT = "STEP[2:4] *= 0.5, = 0, = mean or += 4*'one text' - 4*'another'; {undo} takes it back"
"""How edits are written."""


class Editing:
    """Asks for changes and makes them."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Port) -> None:
        self._explored, self._presenter, self._port = explored, presenter, port

    def turn_back(self, way: Way) -> None:
        """Take the last change back, or make it again."""
        if not self._port.turn_back(way):
            self._port.say(f"there is nothing to {way}")

    def turn_around(self) -> None:
        """Walk backwards from the loss or the metric, or forwards.

        Where no targets were set, it begins at the second most likely answer: the gradients of one that is all but
        certain are 0.
        """
        session = self._explored.session
        if session.backward:
            self._port.change(session.with_overlay(NOTHING))
        elif not session.has_loss:
            open_tool("targets", self._port)
        elif session.targets is None and session.scalar is None:

            def set_out(found: Session) -> None:
                """Go back from the target that was found, unless something else is explored by now."""
                if session is not self._explored.session:
                    return
                self._port.change(found, Position(LOSS, self._port.position.place))
                target = next(each for each in found.loss_targets if each != NOT_COUNTED)
                says = f"backward from {visible(found.model.target_label(target))}, the second most likely"
                self._port.say(self._port.hint(f"{says}: {{targets}} sets other targets"))

            self._port.ask("targets", lambda task: backwards(session, task.report), set_out, answer_cost(session))
        else:
            self._port.change(session.with_overlay(GRADIENT), self._explored.beginning_back)

    def ask(self, what: Literal["sentence", "target", "cell"]) -> None:
        """Ask for another sentence, another target of a decoder, or the value of the cell under the cursor."""
        session, has_words = self._explored.session, self._explored.session.model.vocabulary is not None
        if what == "cell":
            self._ask_number()
        elif what == "sentence" and not session.model.config.vocab_size:
            self._port.say(self._port.hint("this model reads no sentence: edit Q, K and V with {cell.edit}"))
        elif what == "sentence":
            title = "Source sentence" if session.model.has_decoder else "Sentence"
            self._ask_text(title, session.text or session.encoding.text, session.with_text)
        elif session.decoder_encoding is None:
            self._port.say("this model reads one sentence")
        else:
            title, value = "Target, after the start token" if has_words else "Target", session.decoder_text
            written = value if has_words else session.decoder_encoding.text
            self._ask_text(title, written, session.with_decoder_text, target=True)

    def _ask_text(self, title: str, value: str, changed_by: Callable[[str], Session], *, target: bool = False) -> None:
        """Ask for a text, and let every pane follow while it is typed."""
        from tui_transformer.explorer.tools.sentence import BothSentences, prompt_for  # reads much, seldom

        explored, session = self._explored, self._explored.session
        position, trail = explored.position, explored.trail

        def follow(changed: Session | None) -> None:
            explored.history.current = changed or explored.session
            explored.change_view(unread=changed is None)
            explored.position, explored.trail = position, trail
            self._presenter.show_session()

        def room(lines: int) -> None:
            explored.change_view(edited=lines)
            self._presenter.show_now()

        def finish(text: str | None) -> None:
            changed, explored.history.current = both.session_of(text), session
            explored.change_view(edited=0)
            if changed is not session:
                explored.history.push(changed)
            follow(explored.session)

        panes = self._presenter.panes
        lines = partial(lines_edited, told=panes.told)
        both = BothSentences(
            self._port.worker, session, value, changed_by, follow=follow, room=room, lines=lines, target=target
        )
        self._port.open(prompt_for(title, value, both, panes.screen.query_one(SentencePane)), finish)

    # A number

    def _ask_number(self) -> None:
        """Ask for the value of the cell under the cursor, or for an edit of any step or weight."""
        explored, step, trace = self._explored, self._explored.step, self._explored.session.trace
        here: tuple[str, Index] | None = None
        title, value, hint = "Edit", "", HINT
        if step is not None and not step.view.integer and step.view.name not in trace.program.givens:
            name = step.view.name
            index = index_of(trace.program.axes(name), step.place)
            here, title = (name, index), f"Set {name}[{', '.join(map(str, index))}]"
            value = repr(float(trace.window(name, tuple(range(i, i + 1) for i in index)).reshape(())))
            hint = f"a number, += 0.5 or *= 2 of this cell; {HINT}"

        def read(text: str) -> Callable[[], None]:
            if "=" in text:
                return self._by_notation(text, here)
            if here is None:
                raise InputError("there is no number here: name a step or a weight")
            number = read_number(text, explored.session.model.backend.dtype)
            return partial(self._port.change, explored.session.with_edits(Edit(*here, number)))

        options = {"value": value, "hint": self._port.hint(hint), "lately": recent("edits"), "replaces": True}
        self._port.open(*asking(title, read, lambda change: change(), **options))

    def _by_notation(self, text: str, here: tuple[str, Index] | None) -> Callable[[], None]:
        """An edit as `--edit` takes it; texts whose means are asked for are read by the worker."""
        from tui_transformer.explorer.tools.ablation import perform

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
                port.ask("edit", work, make)
            else:
                make(given)

        return do
