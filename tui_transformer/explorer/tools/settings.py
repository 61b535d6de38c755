"""The settings of a model as a form: a table of fields, and the model that changed values give."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from textual.timer import Timer

from tui_transformer.engine.backend import DTYPES
from tui_transformer.engine.parts import keep_plan
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import OFF_ON, TEXT, Field, Form, Values
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.files import expanded
from tui_transformer.machine import parse_size, readable
from tui_transformer.model.description import NORM_PLACES, POSITIONS
from tui_transformer.model.layers import ACTIVATIONS
from tui_transformer.model.model import Model
from tui_transformer.model.word_vectors import NORMAL, STARTS, STARTS_SAID
from tui_transformer.records import dataclass, replace
from tui_transformer.text.dispatch import load_vocabulary
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import built_in_vocabularies

FILE, MOTION = "file", "motion"
NONE, SAME = "none", "as it is"
"""A vocabulary that is not there, or that is neither built in nor a file; both are kept."""

COLUMNS = (
    (
        Field("vocabulary", "vocabulary", "The words that the model knows: a built-in list or a file."),
        Field("file", "  its path", "A list of words separated by white space. Applying reads it again.", (), TEXT),
        Field("seed", "seed", "Where the random weights start; the same seed gives the same weights."),
        Field("layers", "layers", "How often attention and feed-forward follow each other."),
        Field("decoder_layers", "decoder layers", "The same for the decoder of an encoder–decoder."),
        Field("d_model", "d_model", "Numbers in each token's vector; the heads share them equally."),
        Field("heads", "heads", "Attention heads in each layer; d_model is divisible by them."),
        Field("d_ff", "d_ff", "Width of the hidden layer of the feed-forward network."),
        Field("max_length", "max length", "The most tokens that a sentence may have."),
        Field("embedding", "embedding", STARTS_SAID, (NORMAL, *STARTS)),
    ),
    (
        Field("norm", "layer norm", "After each add (post, 2017) or before each sublayer (pre).", NORM_PLACES),
        Field("activation", "activation", "Between the two layers of the feed-forward.", tuple(ACTIVATIONS)),
        Field("positions", "positions", "What tells the model the order of the tokens.", POSITIONS),
        Field("bias", "bias", "Add a bias after each product with a weight matrix.", OFF_ON),
        Field("scale_embedding", "√d_model", "Multiply the embedding by √d_model before positions are added.", OFF_ON),
        Field("tie_output", "tied output", "The output uses the embedding table instead of its own weights.", OFF_ON),
        Field("causal", "causal mask", "No query may look at a later key.", OFF_ON),
        Field("padding_mask", "padding mask", "No query may look at padding at the end of the sentence.", OFF_ON),
        Field("dtype", "precision", "Numbers of 32 bits, or of 64 to compare with.", DTYPES),
        Field("device", "device", "Where it is computed; auto takes a GPU for large models.", ("auto", "cpu", "gpu")),
        Field(
            "budget",
            "memory",
            "What values may take, as 512MiB; the rest is made again where it is looked at.",
            longest=TEXT,
        ),
        Field(MOTION, "motion", "A step is half a second on its way, where the terminal is quick enough.", OFF_ON),
    ),
)
NUMBERS = frozenset({"seed", "layers", "decoder_layers", "d_model", "heads", "d_ff", "max_length"})
FREE = frozenset({"vocabulary", "file", "dtype", "device", "budget", MOTION})
"""Settings of a model that was read from a folder which can change."""

KIND = "settings"


def open_from(port: Port) -> None:
    """Change sizes, seed, masks, vocabulary, precision, device and memory of what is explored."""
    session = port.session
    target = session.decoder_encoding
    lengths = max(len(session.encoding.tokens), 1), 1 if target is None else len(target.tokens)
    memory = Memory(session.budget, session.trace.held_bytes, *lengths)
    settings = SettingsScreen(port.worker, session.model, memory, moves=port.view.motion)

    def finish(model: Model | None) -> None:
        budget, now = settings.memory.budget, port.session
        if model is None:
            return
        if settings.moves != port.view.motion:
            port.look(motion=settings.moves)
        if model is now.model and budget == now.budget:
            return
        now = now if budget == now.budget else now.with_budget(budget)
        try:
            changed = now if model is now.model else now.with_model(model, is_the_same=is_the_same(model, now.model))
        except InputError as error:
            port.say(str(error), severity="error")
            return
        port.change(changed)
        if (now.edits or now.breaks) and not (changed.edits or changed.breaks):
            port.say(port.hint("what was edited or broken was of the other model: {undo} brings it back"))

    port.open(settings, finish)


@dataclass(frozen=True)
class Memory:
    """Memory that a trace may keep and holds now, and its tokens (with those of a decoder, if there is one)."""

    budget: int
    held: int
    length: int
    decoder_length: int = 1

    def changed(self, text: str) -> Memory:
        """With the budget that is written in the form.

        Raises:
            InputError: It is not an amount of memory.
        """
        if text.strip() == readable(self.budget):
            return self
        budget = parse_size(text)
        if budget is None:
            raise InputError(f"memory “{visible(text)}” is not an amount of memory: write 512MiB, 2GiB or 0")
        return replace(self, budget=budget)

    def describe(self, model: Model) -> str:
        """Memory that a model's values would take, and how much would be kept; nothing is computed for that."""
        length = min(self.length, model.config.max_length)
        plan = keep_plan(model.program(length, self.decoder_length), model.backend.dtype.itemsize, self.budget)
        kept = "all kept" if plan.everything else f"{readable(plan.bytes)} kept"
        return f"{length:,} tokens: {readable(plan.total)} of values, {kept} · now held {readable(self.held)}"


# The values of a model


def values_of(model: Model) -> dict[str, str]:
    """The value of each setting that this model has, as the form writes it."""
    written = model.config.to_json()
    config = {field.key: written.get(field.key) for column in COLUMNS for field in column}
    start = None if model.embedding is None else model.embedding.start
    own = {"seed": model.seed, "embedding": start, "dtype": str(model.backend.dtype), "device": model.backend.device}
    decoder = {"causal": True} if getattr(model.config, "masks_future", False) else {}
    words, vocabulary = model.vocabulary, dict[str, str]()
    if model.config.vocab_size:
        vocabulary = {"vocabulary": NONE if words is None else SAME, "file": ""}
        if words is not None and words.path is not None:
            vocabulary = {"vocabulary": FILE, "file": str(words.path)}
            if words.name in built_in_vocabularies() and load_vocabulary(words.name).path == words.path:
                vocabulary = {"vocabulary": words.name, "file": ""}
    values = config | own | decoder | vocabulary
    return {
        key: OFF_ON[value] if isinstance(value, bool) else str(value)
        for key, value in values.items()
        if value is not None
    }


def fields_of(model: Model, values: Values) -> tuple[list[Field], ...]:
    """The fields of the settings that a model has; those that cannot be changed are locked."""

    def field_of(field: Field) -> Field:
        known = (*built_in_vocabularies(), FILE) if field.key == "vocabulary" else field.choices
        now = values[field.key]
        choices = known if not known or now in known else (now, *known)  # another value stays possible
        locked = (model.folder is not None and field.key not in FREE) or (field.key == "causal" and _is_decoder(model))
        return replace(field, choices=choices, locked=locked)

    return tuple([field_of(field) for field in column if field.key in values] for column in COLUMNS)


def _is_decoder(model: Model) -> bool:
    return getattr(model.config, "architecture", "") == "decoder"


def build(model: Model, values: Values) -> Model:
    """The model with these values; the same one where nothing differs. A vocabulary's file is read again.

    Raises:
        InputError: A value that cannot be.
    """
    old = values_of(model)
    changes: dict[str, Any] = {
        key: _parsed(key, value) for key, value in values.items() if value != old.get(key, value)
    }
    name, path = changes.pop("vocabulary", None), changes.pop("file", None)
    if values.get("vocabulary") == FILE:
        given = str(values["file"] if path is None else path).strip()
        if not given:
            raise InputError("the vocabulary's path is empty: give the path of a text file")
        changes["vocabulary"] = expanded(given)
    elif name not in (None, NONE, SAME):
        changes["vocabulary"] = name
    return model.changed(**changes) if changes else model


def is_the_same(model: Model, other: Model) -> bool:
    """Whether two models differ at most in where, and how precisely, they are computed."""
    words, known = model.vocabulary, other.vocabulary
    if words is not known and (words is None or known is None or words.words != known.words):
        return False
    settings = ({**values_of(each), "dtype": "", "device": ""} for each in (model, other))
    return model.config == other.config and next(settings) == next(settings)


def _parsed(key: str, value: str) -> int | bool | str:
    if value in OFF_ON:
        return value == OFF_ON[1]
    if key not in NUMBERS:
        return value
    digits = value.strip().replace(",", "")
    if not (digits.isascii() and digits.isdigit()):
        raise InputError(f"{key} “{visible(value)}” is not a whole number: use digits only")
    return int(digits)


def read_number(name: str, text: str, read: Callable[[str], float]) -> float:
    """A number as a person writes it; a whole one, where `read` is int, may have commas between its thousands.

    Raises:
        InputError: It is none.
    """
    try:
        plain = re.sub(r",(?=\d{3}(\D|$))", "", text) if read is int else text.replace(",", ".")
        return read(plain.strip())
    except ValueError as error:
        kind = "a whole number" if read is int else "a number"
        raise InputError(f"{name} {text!r} is not {kind}".lstrip()) from error


def written_number(value: float) -> str:
    """A number with every digit, as `read_number` has it back."""
    return repr(value).removesuffix(".0")


class SettingsScreen(Dialog[Model]):
    """A form of the model's settings; gives the changed model, or None where it is left or nothing differs.

    Where only the memory or the motion is another, the model is given as it was; `memory` and `moves` say what was set.
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

    def __init__(self, worker: Worker, model: Model, memory: Memory, *, moves: bool) -> None:
        """Show the settings of a model; the worker builds others, as a vocabulary may be large, and a GPU far."""
        values = values_of(model) | {"budget": readable(memory.budget), MOTION: OFF_ON[moves]}
        self._model, self.memory, self.moves, self._begun = model, memory, moves, values
        note = "A decoder always has the causal mask." if _is_decoder(model) else ""
        if model.folder is not None:
            note = "The sizes and weights are in the model's folder and stay as they are."
        self._form = Form(fields_of(model, values), values, self._changed, note=note)
        super().__init__("Settings", self._form)
        self._requests = Requests(self, worker, self._show_progress)
        self._timer: Timer | None = None

    @property
    def settled(self) -> bool:
        return self._timer is None and not self._requests.busy

    def on_mount(self) -> None:
        self._show_file()
        self._describe(self._model, self.memory)

    def _show_file(self) -> None:
        self._form.show_field("file", shown=self._form.values.get("vocabulary") == FILE)

    def _changed(self, key: str) -> None:
        if key == "vocabulary":
            self._show_file()
        self._wait()
        self._timer = later(self, 0.15, lambda: self._check(apply=False))  # once no key comes

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _check(self, *, apply: bool) -> None:
        """Say what would be built or what is wrong; or give the model."""
        self._wait()
        model, memory, values = self._model, self.memory, dict(self._form.values)
        same_model = {key for key, value in values.items() if value != self._begun.get(key)} == {MOTION}

        def work(_: Task) -> tuple[Model, Memory] | str:
            try:
                return model if same_model else build(model, values), memory.changed(values["budget"])
            except InputError as error:
                return str(error)

        def show(checked: tuple[Model, Memory] | str) -> None:
            if isinstance(checked, str):
                self._form.show_status(checked, wrong=True)
            elif not apply:
                self._describe(*checked)
            else:
                moves = values[MOTION] == OFF_ON[1]
                same = checked[0] is self._model and (checked[1], moves) == (self.memory, self.moves)
                self.memory, self.moves = checked[1], moves
                self.dismiss(None if same else checked[0])

        self._requests.ask(KIND, work, show)

    def _describe(self, model: Model, memory: Memory) -> None:
        count = model.program(1).weight_count()
        size = readable(count * model.backend.dtype.itemsize)
        status = visible(f"{model.config.summary} · {count:,} weights · {size}")
        self._form.show_status(f"{status}\n{memory.describe(model)}")

    def _show_progress(self) -> None:
        if self._requests.doing:
            self._form.show_status(self._requests.doing)

    def action_submit(self) -> None:
        self._check(apply=True)

    def action_leave(self) -> None:
        self._requests.cancel(KIND)
        super().action_leave()
