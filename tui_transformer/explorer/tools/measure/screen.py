"""The choice of a metric: its name, and the words that it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.screen import Screen

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import Form
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.measure.fields import FIELDS, TOKENS, read, said_of, takes_words, values_of
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure

Opener = Callable[[Screen[Any], Callable[[Any], None]], None]
NO_WORDS = "this model has no logits of words: it is measured by the relative change of what its last step holds"


@dataclass(frozen=True)
class Taken:
    """The choice that was made."""

    measure: Measure | None


def open_from(port: Port) -> None:
    """Choose; ablations and patches are measured by it from then on."""
    choose(
        port,
        port.open,
        lambda changed: port.change(changed(port.session)),
        lambda: port.say(f"measured by: {said_of(port.session, port.session.measure)}"),
    )


def choose(
    port: Port, put: Opener, change: Callable[[Callable[[Session], Session]], None], done: Callable[[], None]
) -> None:
    """Ask, and put it into what is explored; says so where the model has no logits of words.

    Args:
        port: The explorer.
        put: Puts a screen in front.
        change: Changes what is explored.
        done: Called once something else was chosen.
    """
    if not port.session.trace.program.logits:
        port.say(NO_WORDS)
        return

    def finish(taken: Taken | None) -> None:
        if taken is not None and taken.measure != port.session.measure:
            change(lambda session: session.with_measure(taken.measure))
            done()

    put(MeasureScreen(port.session), finish)


class MeasureScreen(Dialog[Taken]):
    """A metric and its words; under them what is measured, or what is wrong."""

    ACTIONS = FORM
    HELP_TOPIC = "ablate"

    def __init__(self, session: Session) -> None:
        super().__init__("Measured by")
        self._session = session
        self._form = Form((FIELDS,), values_of(session), lambda _: self._show())
        self._taken: Taken | None = None

    def body(self) -> ComposeResult:
        """The form."""
        yield self._form

    def on_mount(self) -> None:
        """Say what is chosen."""
        self._show()

    def _show(self) -> None:
        """Say what is measured, or why it cannot be."""
        form = self._form
        form.show_field(TOKENS, shown=takes_words(form.values))
        try:
            self._taken = Taken(read(self._session, form.values))
        except InputError as error:
            self._taken = None
            form.show_status(str(error), wrong=True)
        else:
            form.show_status(said_of(self._session, self._taken.measure))

    def action_submit(self) -> None:
        """Take it over, where it can be."""
        if self._taken is not None:
            self.dismiss(self._taken)
