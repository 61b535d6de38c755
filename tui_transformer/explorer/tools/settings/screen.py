"""The settings of a model, changed in a form."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.timer import Timer

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.timers import later
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import Form
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.explorer.tools.settings.fields import FILE, Memory, build, describe, fields_of, note, values_of
from tui_transformer.model.model import Model
from tui_transformer.session.store import AT_ONCE

PATIENCE = 0.15
"""Seconds without a key after which what is typed is checked."""

KIND = "settings"

Checked = tuple[Model, Memory | None] | str
"""Outcome of the settings, or the mistake in them."""


def open_from(port: Port) -> None:
    """Change sizes, seed, masks, vocabulary, precision, device and memory of what is explored."""
    session = port.session
    target = session.decoder_encoding
    lengths = max(len(session.encoding.tokens), 1), 1 if target is None else len(target.tokens)
    settings = SettingsScreen(port.worker, session.model, Memory(session.budget, session.trace.held_bytes, *lengths))

    def finish(model: Model | None) -> None:
        if model is not None and settings.memory is not None:
            use(port, model, settings.memory.budget)

    port.open(settings, finish)


def use(port: Port, model: Model, budget: int) -> None:
    """Explore with another model or another memory budget."""
    session = port.session if budget == port.session.budget else port.session.with_budget(budget)
    try:
        port.change(session if model is session.model else session.with_model(model))
    except InputError as error:
        port.say(str(error), severity="error")


class SettingsScreen(Dialog[Model]):
    """A form of the model's settings; gives the changed model, or None where it is left or nothing differs.

    Where only the memory is another, the model is given as it was; `memory` says what was set.
    """

    ACTIONS = FORM
    DEFAULT_CSS = """
    SettingsScreen {
        #box { width: 80; }
        #status { min-height: 2; }
        &.-wide {
            #box { width: 110; }
            #fields { layout: horizontal; }
            #status { min-height: 1; }
            .column { width: 1fr; }
            .column:first-child { width: 1.25fr; }
        }
    }
    """

    def __init__(self, worker: Worker, model: Model, memory: Memory | None = None) -> None:
        """Show the settings of a model; the worker builds others, as a vocabulary may be large, and a GPU far."""
        values = values_of(model) | ({} if memory is None else {"budget": memory.written})
        super().__init__("Settings")
        self._model, self.memory = model, memory
        self._form = Form(fields_of(model, values), values, self._changed, note=note(model))
        self._requests = Requests(self, worker, self._show_progress)
        self._timer: Timer | None = None

    @property
    def settled(self) -> bool:
        """Whether everything that was typed is checked."""
        return self._timer is None and not self._requests.busy

    def body(self) -> ComposeResult:
        """The form."""
        yield self._form

    def on_mount(self) -> None:
        """Say what the model is."""
        self._show_file()
        self._describe(self._model, self.memory)

    def _changed(self, key: str) -> None:
        """Check what is written soon."""
        if key == "vocabulary":
            self._show_file()
        self._wait()
        self._timer = later(self, PATIENCE, lambda: self._check(apply=False))

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _show_file(self) -> None:
        self._form.show_field("file", shown=self._form.values.get("vocabulary") == FILE)

    def action_submit(self) -> None:
        """Give the model, if it can be built."""
        self._check(apply=True)

    def action_leave(self) -> None:
        """Close without a change."""
        self._requests.cancel(KIND)
        super().action_leave()

    def _check(self, *, apply: bool) -> None:
        self._wait()
        model, memory, values = self._model, self.memory, dict(self._form.values)

        def work(_: Task) -> Checked:
            try:
                return build(model, values), memory and memory.changed(values["budget"])
            except InputError as error:
                return str(error)

        self._requests.ask(KIND, AT_ONCE + 1, work, lambda checked: self._show(checked, apply=apply))

    def _show(self, checked: Checked, *, apply: bool) -> None:
        """Say what would be built or what is wrong; or give the model."""
        if isinstance(checked, str):
            self._form.show_status(checked, wrong=True)
            return
        model, memory = checked
        if not apply:
            self._describe(model, memory)
            return
        same = model is self._model and memory == self.memory
        self.memory = memory
        self.dismiss(None if same else model)

    def _describe(self, model: Model, memory: Memory | None) -> None:
        self._form.show_status(describe(model) + ("" if memory is None else f"\n{memory.describe(model)}"))

    def _show_progress(self) -> None:
        if self._requests.doing:
            self._form.show_status(self._requests.doing)
