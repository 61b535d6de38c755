"""How the next token is chosen, changed in a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from textual.app import ComposeResult

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.choice import OFF_ON
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import Field, Form
from tui_transformer.generation.sampling import Settings

GREEDY, CACHE = "greedy", "use_cache"
NUMBERS: Mapping[str, Callable[[str], float]] = {
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "seed": int,
    "max_new_tokens": int,
}
"""How each number is read."""
DRAWING = ("temperature", "top_k", "top_p", "seed")
"""Fields that matter only where tokens are drawn: writing in one turns greedy off."""
FIELDS = (
    Field(GREEDY, "greedy", "The most likely token is taken; nothing is drawn.", OFF_ON),
    Field("temperature", "temperature", "Logits are divided by it; near 0 the most likely token wins."),
    Field("top_k", "top-k", "Only so many of the most likely tokens; 0 for all."),
    Field("top_p", "top-p", "Only the fewest tokens that make up this share; 1 for all."),
    Field("seed", "seed", "Of the draws: the same seed writes the same text."),
    Field("max_new_tokens", "at most", "New tokens after the prompt."),
    Field(CACHE, "KV cache", "Keys and values are kept; without it every token computes all rows again.", OFF_ON),
)


class GenerateSettings(Dialog[Settings]):
    """A form of the settings; gives them, or None where it is left."""

    ACTIONS = FORM
    DEFAULT_CSS = """
    GenerateSettings #box { width: 66; }
    """

    def __init__(self, settings: Settings, field: str = GREEDY) -> None:
        written = {key: f"{getattr(settings, key):g}" for key in NUMBERS}
        switched = {key: OFF_ON[bool(getattr(settings, key))] for key in (GREEDY, CACHE)}
        super().__init__("How the next token is chosen")
        self._settings = settings
        self._form = Form((FIELDS,), written | switched, self._changed, first=field)

    def body(self) -> ComposeResult:
        """The form."""
        yield self._form

    def _changed(self, key: str) -> None:
        """Clear the error; a setting of draws is of use only where tokens are drawn."""
        self._form.show_status("")
        if key in DRAWING:
            self._form.put(GREEDY, OFF_ON[0])

    def action_submit(self) -> None:
        """Give the settings, if they can be."""
        values = self._form.values
        try:
            numbers = {key: _number(key, values[key]) for key in NUMBERS}
            switches = {key: values[key] == OFF_ON[1] for key in (GREEDY, CACHE)}
            self.dismiss(replace(self._settings, **numbers, **switches))  # type: ignore[arg-type]
        except InputError as error:
            self._form.show_status(str(error), wrong=True)


def _number(key: str, text: str) -> float:
    """A number as a person writes it."""
    read = NUMBERS[key]
    try:
        return read(text.strip().replace(",", "."))
    except ValueError as error:
        kind = "a whole number" if read is int else "a number"
        raise InputError(f"{key} {text!r} is not {kind}") from error
