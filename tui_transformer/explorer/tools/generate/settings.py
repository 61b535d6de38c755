"""How the next token is chosen, changed in a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import DescendantFocus
from textual.widgets import Input, Label, Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions import FORM
from tui_transformer.explorer.shell.choice import OFF_ON, Choice
from tui_transformer.explorer.shell.dialog import Dialog, Keys, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.generation.sampling import Settings

LONGEST = 20
"""Characters of a number."""


@dataclass(frozen=True)
class Field:
    """One setting: its name in `Settings`, how it is written and read, and a sentence of help."""

    key: str
    label: str
    read: Callable[[str], float]
    help: str


FIELDS = (
    Field("temperature", "temperature", float, "Logits are divided by it; near 0 the most likely token wins."),
    Field("top_k", "top-k", int, "Only so many of the most likely tokens; 0 for all."),
    Field("top_p", "top-p", float, "Only the fewest tokens that make up this share; 1 for all."),
    Field("seed", "seed", int, "Of the draws: the same seed writes the same text."),
    Field("max_new_tokens", "at most", int, "New tokens after the prompt."),
)
DRAWING = ("temperature", "top_k", "top_p", "seed")
"""Fields that matter only where tokens are drawn: writing in one turns greedy off."""

GREEDY, CACHE = "greedy", "use_cache"
SWITCHES = {
    GREEDY: ("greedy", "The most likely token is taken; nothing is drawn."),
    CACHE: ("KV cache", "Keys and values are kept; without it every token computes all rows again."),
}


class GenerateSettings(Dialog[Settings]):
    """A form of the settings; gives them, or None where it is left."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FORM)
    DEFAULT_CSS = """
    GenerateSettings {
        #box { width: 66; }
        .field {
            height: 1;
            padding: 0 1 0 0;
            Label { width: 15; padding: 0 1; color: $foreground 75%; }
            &.-here Label { color: $accent; text-style: bold; }
            LineInput { width: 1fr; }
        }
        #problem { display: none; }
        #problem.-said { display: block; }
    }
    """

    def __init__(self, settings: Settings, field: str = GREEDY) -> None:
        """Show settings, beginning on a field."""
        super().__init__("How the next token is chosen")
        self._settings, self._field = settings, field

    @property
    def keys(self) -> Keys:
        """Those of the whole form."""
        return {"↑↓": "field", "enter": "apply", "esc": "leave"}

    def body(self) -> ComposeResult:
        """A line for each setting, the help of one, and what is wrong."""
        yield self._switch(GREEDY)
        for field in FIELDS:
            value = LineInput(f"{getattr(self._settings, field.key):g}", id=field.key, max_length=LONGEST)
            yield Horizontal(Label(field.label, markup=False), value, classes="field")
        yield self._switch(CACHE)
        yield Static(id="help", classes="quiet")
        yield Static(id="problem", classes="problem")

    def _switch(self, key: str) -> Horizontal:
        value = OFF_ON[bool(getattr(self._settings, key))]
        return Horizontal(Label(SWITCHES[key][0], markup=False), Choice(OFF_ON, value, id=key), classes="field")

    def on_mount(self) -> None:
        """Begin on the field that was asked for."""
        self.query_one(f"#{self._field}").focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what the field is for."""
        for row in self.query(".field"):
            row.set_class(row is event.widget.parent, "-here")
        texts = {field.key: field.help for field in FIELDS} | {key: text for key, (_, text) in SWITCHES.items()}
        self.query_one("#help", Static).update(plain(texts.get(event.widget.id or "", "")))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        """What was wrong is being put right; a setting of draws is of use only where tokens are drawn."""
        self._say("")
        greedy = self.query_one(f"#{GREEDY}", Choice)
        if event.input.has_focus and event.input.id in DRAWING:
            greedy.index = 0

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """Give the settings, if they can be."""
        try:
            self.dismiss(self._read())
        except InputError as error:
            self._say(str(error))

    def _read(self) -> Settings:
        values = {field.key: _number(field, self.query_one(f"#{field.key}", LineInput).value) for field in FIELDS}
        switches = {key: self.query_one(f"#{key}", Choice).value == OFF_ON[1] for key in SWITCHES}
        return replace(self._settings, **values, **switches)  # type: ignore[arg-type]

    def _say(self, text: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(plain(text) if text else Content())
        line.set_class(bool(text), "-said")


def _number(field: Field, text: str) -> float:
    """A number as a person writes it."""
    try:
        return field.read(text.strip().replace(",", "."))
    except ValueError as error:
        kind = "a whole number" if field.read is int else "a number"
        raise InputError(f"{field.key} {text!r} is not {kind}") from error
