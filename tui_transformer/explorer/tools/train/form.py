"""The form before training: what to learn from, where the run is kept, how long and how large."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.widgets import Input, Label, Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions import FORM
from tui_transformer.explorer.shell.choice import Choice
from tui_transformer.explorer.shell.dialog import Dialog, Keys, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.plan import (
    FIELDS,
    FILE,
    OF_A_RUN,
    TEXTS,
    Field,
    Plan,
    found_run,
    plain_names,
    plan,
)

LONGEST = 4096
OFTEN = 0.1
"""Seconds between two looks at a run that is being opened."""


class TrainForm(Dialog[Training]):
    """Asks what to train; gives the training once its run is open."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FORM)
    DEFAULT_CSS = """
    TrainForm {
        #box { width: 84; }
        #fields { height: auto; overflow-y: auto; scrollbar-size-vertical: 1; }
        .field {
            height: 1;
            padding: 0 1 0 0;
            Label { width: 16; padding: 0 1; color: $foreground 75%; }
            &.-here Label { color: $accent; text-style: bold; }
            &.-absent { display: none; }
            LineInput { width: 1fr; }
        }
        #status { min-height: 2; }
    }
    """

    def __init__(self, folder: str, begin: Callable[[Plan], Training]) -> None:
        """Ask; `begin` starts to open a run."""
        super().__init__("Train a model")
        self._begin = begin
        self._values = {"folder": folder, "text": "dates", "file": "", **TEXTS["dates"].values}
        self._own: set[str] = {"folder"} if folder else set()
        self._opening: Training | None = None
        if not folder:
            self._values["folder"] = _folder("dates")

    @property
    def keys(self) -> Keys:
        """Those of the whole form."""
        return {"↑↓": "field", "←→": "choose", "ctrl+s": "open", "esc": "leave"}

    def body(self) -> ComposeResult:
        """The fields, the help of one, and what would be opened or is wrong."""
        with Vertical(id="fields"):
            yield from map(self._row, FIELDS)
        yield Static(id="help", classes="quiet")
        yield Static(id="status")

    def _row(self, field: Field) -> Horizontal:
        value = self._values[field.key]
        control = (
            Choice(field.choices, value, id=field.key)
            if field.choices
            else LineInput(value, id=field.key, max_length=LONGEST)
        )
        return Horizontal(Label(field.label, markup=False), control, id=f"{field.key}-field", classes="field")

    def on_mount(self) -> None:
        """Begin with the folder."""
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        self.query_one("#folder").focus()
        self._show()

    def _fit(self) -> None:
        """Give the fields the room that the lines under them leave."""
        fields, box = self.query_one("#fields"), self.query_one("#box")
        others = sum(widget.outer_size.height for widget in box.children if widget.display and widget is not fields)
        fields.styles.max_height = max(self.size.height - box.gutter.height - others, 2)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what the field is for."""
        for row in self.query(".field"):
            row.set_class(row is event.widget.parent, "-here")
        texts = {field.key: field.help for field in FIELDS}
        self.query_one("#help", Static).update(plain(texts.get(event.widget.id or "", "")))

    # Values

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        key = str(event.input.id)
        if self._values[key] != event.value:
            self._own.add(key)
            self._values[key] = event.value
            self._show()

    @on(Choice.Changed)
    def _chose(self, event: Choice.Changed) -> None:
        key = str(event.choice.id)
        if self._values[key] == event.value:
            return
        self._values[key] = event.value
        if key == "text":
            self._suit(event.value)
        else:
            self._own.add(key)
        self._show()

    def _suit(self, text: str) -> None:
        """Let the fields that nobody has changed follow the text."""
        suited = {"folder": _folder(text), **TEXTS[text].values}
        for key, value in suited.items():
            if key not in self._own:
                self._put(key, value)

    def _put(self, key: str, value: str) -> None:
        self._values[key] = value
        control = self.query_one(f"#{key}")
        if isinstance(control, Choice):
            control.index = control.values.index(value)
        elif isinstance(control, LineInput):
            control.value = value

    def _show(self) -> None:
        """Show the fields that there are, and what would be opened."""
        try:
            found = found_run(self._values["folder"])
        except InputError:
            found = None
        if found is not None and "steps" not in self._own:
            self._put("steps", str(found.settings.steps))
        for field in FIELDS:
            absent = field.key not in OF_A_RUN if found else field.key == "file" and self._values["text"] != FILE
            self.query_one(f"#{field.key}-field").set_class(absent, "-absent")
        try:
            self._say(plan(self._values).about, wrong=False)
        except InputError as error:
            self._say(plain_names(str(error)), wrong=True)

    def _say(self, text: str, *, wrong: bool) -> None:
        status = self.query_one("#status", Static)
        status.update(plain(text) if text else Content())
        status.set_class(wrong, "problem")

    # Opening

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """Open the run, if it can be."""
        if self._opening is not None:
            return
        try:
            wanted = plan(self._values)
        except InputError as error:
            self._say(plain_names(str(error)), wrong=True)
            return
        self._say("opening the run …", wrong=False)
        self._opening = self._begin(wanted)
        self.set_timer(OFTEN, self._look)

    def _look(self) -> None:
        """Give the training once its run is open, or say why it cannot be."""
        opening = self._opening
        if opening is None:
            return
        if opening.error is not None:
            raise opening.error
        if opening.status.state == "opening":
            self.set_timer(OFTEN, self._look)
        elif opening.run is None:
            self._opening = None
            self._say(opening.status.problem, wrong=True)
        else:
            self.dismiss(opening)

    def action_leave(self) -> None:
        """Close the form; a run that is being opened is closed again."""
        if self._opening is not None:
            self._opening.ask_to_end()
        super().action_leave()


def _folder(text: str) -> str:
    return f"runs/{'text' if text == FILE else text}"
