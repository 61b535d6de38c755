"""The settings of a model, changed in a form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Button, Input, Label, Static
from textual.worker import get_current_worker

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions import FORM
from tui_transformer.explorer.shell.choice import OFF_ON, Choice
from tui_transformer.explorer.shell.dialog import Dialog, Keys, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.settings.fields import (
    COLUMNS,
    FILE,
    Field,
    Memory,
    Value,
    build,
    choices_of,
    describe,
    is_locked,
    note,
    values_of,
)
from tui_transformer.model.model import Model
from tui_transformer.text.display import visible

PATIENCE = 0.15
"""Seconds without a key after which what is typed is checked."""
LONGEST = {"number": 20, "text": 4096}


def open_from(port: Port) -> None:
    """Change sizes, seed, masks, vocabulary, precision, device and memory of what is explored."""
    session = port.session
    target = session.decoder_encoding
    lengths = max(len(session.encoding.tokens), 1), 1 if target is None else len(target.tokens)
    settings = SettingsScreen(session.model, Memory(session.budget, session.trace.held_bytes, *lengths))

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

    BINDINGS: ClassVar[list[BindingType]] = bindings(FORM)

    DEFAULT_CSS = """
    SettingsScreen {
        #box { width: 80; }
        #fields { height: auto; overflow-y: auto; scrollbar-size-vertical: 1; layout: vertical; }
        .column { height: auto; }
        .field {
            height: 1;
            padding: 0 1 0 0;
            Label { width: 15; padding: 0 1; color: $foreground 75%; }
            &.-here Label { color: $accent; text-style: bold; }
            LineInput { width: 1fr; }
        }
        #file-field { display: none; }
        #file-field.-wanted { display: block; }
        #status { min-height: 2; }
        #note { display: none; }
        #note.-said { display: block; }
        #buttons { height: 1; padding: 0 1; }
        #buttons Button { margin: 0 1 0 0; min-width: 9; background: $panel; color: $foreground; }
        #buttons Button:focus { background: $accent; color: $background; text-style: bold; }
        &.-short #buttons { display: none; }
        &.-wide {
            #box { width: 110; }
            #fields { layout: horizontal; }
            #status { min-height: 1; }
            .column { width: 1fr; }
            .column:first-child { width: 1.25fr; }
        }
    }
    """

    @dataclass
    class Checked(Message):
        """What the settings give: a model, or what is wrong."""

        result: Model | str
        memory: Memory | None
        apply: bool

    def __init__(self, model: Model, memory: Memory | None = None) -> None:
        super().__init__("Settings")
        self._model, self.memory = model, memory
        self._values = values_of(model) | ({} if memory is None else {"budget": memory.written})
        self._timer: Timer | None = None

    @property
    def keys(self) -> Keys:
        """Those of the whole form."""
        return {"ctrl+s": "apply", "esc": "leave"}

    def body(self) -> ComposeResult:
        """Why some fields are locked, the fields, the help of one, what will be built, and the buttons."""
        yield Static(plain(note(self._model)), id="note", classes="quiet -said" if note(self._model) else "quiet")
        with Vertical(id="fields"):
            for column in COLUMNS:
                with Vertical(classes="column"):
                    yield from (self._row(field) for field in column if field.key in self._values)
        yield Static(id="help", classes="quiet")
        yield Static(id="status")
        with Horizontal(id="buttons"):
            yield Button("Apply", id="apply", compact=True)
            yield Button("Leave", id="leave", compact=True)

    def _row(self, field: Field) -> Horizontal:
        """A label and what the setting is changed with."""
        return Horizontal(
            Label(field.label, markup=False), self._control(field), id=f"{field.key}-field", classes="field"
        )

    def _control(self, field: Field) -> Choice | LineInput:
        value, locked = self._values[field.key], is_locked(self._model, field.key)
        if field.kind == "switch":
            return Choice(OFF_ON, OFF_ON[bool(value)], id=field.key, disabled=locked)
        if field.kind == "choice":
            return Choice(choices_of(field, self._values), str(value), id=field.key, disabled=locked)
        return LineInput(str(value), id=field.key, max_length=LONGEST[field.kind], disabled=locked)

    def on_mount(self) -> None:
        """Begin on the first field that can be changed, and say what the model is."""
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        self._show_file()
        self._say(self._described(self._model, self.memory), wrong=False)
        next(control for control in self._controls() if not control.disabled).focus()

    def _controls(self) -> Iterator[Choice | LineInput]:
        yield from self.query("Choice, LineInput").results(Choice | LineInput)  # type: ignore[arg-type]

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what the field is for."""
        for row in self.query(".field"):
            row.set_class(row is event.widget.parent, "-here")
        texts = {field.key: field.help for column in COLUMNS for field in column}
        self.query_one("#help", Static).update(plain(texts.get(event.widget.id or "", "")))

    @on(Choice.Changed)
    def _choose(self, event: Choice.Changed) -> None:
        value: Value = event.value == OFF_ON[1] if event.choice.values == OFF_ON else event.value
        self._set(event.choice.id, value)
        self._show_file()

    @on(Input.Changed)
    def _type(self, event: Input.Changed) -> None:
        self._set(event.input.id, event.value)

    def _set(self, key: str | None, value: Value) -> None:
        """Take over a value and check it soon."""
        self._values[str(key)] = value
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PATIENCE, partial(self._check, apply=False))

    def _fit(self) -> None:
        """Give the fields the room that the lines under and over them leave."""
        fields, box = self.query_one("#fields"), self.query_one("#box")
        others = sum(widget.outer_size.height for widget in box.children if widget.display and widget is not fields)
        fields.styles.max_height = max(self.size.height - box.gutter.height - others, 2)

    def _show_file(self) -> None:
        for row in self.query("#file-field"):
            row.set_class(self._values.get("vocabulary") == FILE, "-wanted")

    @on(Input.Submitted)
    @on(Button.Pressed, "#apply")
    def action_submit(self) -> None:
        """Give the model, if it can be built."""
        if self._timer is not None:
            self._timer.stop()
        self._check(apply=True)

    @on(Button.Pressed, "#leave")
    def _leave(self) -> None:
        self.action_leave()

    def _check(self, *, apply: bool) -> None:
        self._build(dict(self._values), apply=apply)

    @work(thread=True, exclusive=True, group="settings")
    def _build(self, values: dict[str, Value], *, apply: bool) -> None:
        """In a thread, as a vocabulary may be large, and looking for a GPU takes seconds."""
        result: Model | str
        memory = self.memory
        try:
            result = build(self._model, values)
            memory = memory and memory.changed(str(values["budget"]))
        except InputError as error:
            result = str(error)
        if not get_current_worker().is_cancelled:
            self.post_message(self.Checked(result, memory, apply))

    def on_settings_screen_checked(self, message: Checked) -> None:
        """Say what would be built or what is wrong; or give the model."""
        if isinstance(message.result, str):
            self._say(plain(message.result), wrong=True)
        elif message.apply:
            same = message.result is self._model and message.memory == self.memory
            self.memory = message.memory
            self.dismiss(None if same else message.result)
        else:
            self._say(self._described(message.result, message.memory), wrong=False)

    def _described(self, model: Model, memory: Memory | None) -> Content:
        """The model, and what its values would take."""
        return plain(describe(model) + ("" if memory is None else f"\n{visible(memory.describe(model))}"))

    def _say(self, text: Content, *, wrong: bool) -> None:
        status = self.query_one("#status", Static)
        status.update(text)
        status.set_class(wrong, "problem")
