"""The form before training: what to learn from, where the run is kept, how long and how large; and what that gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import TEXT, Field, Form
from tui_transformer.explorer.tools.runs import RUNS, path_of
from tui_transformer.explorer.tools.settings import COLUMNS, read_number
from tui_transformer.explorer.tools.train.driver import Training, plain_names
from tui_transformer.files import is_file, make_folder, write_whole
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.run import Run, check_new, newest_checkpoint
from tui_transformer.learning.settings import UNITS, Settings, is_run, read_settings
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model.word_vectors import NORMAL
from tui_transformer.records import dataclass, field
from tui_transformer.text.files import shown_path

FILE = "a file"

FIRST = "dates"
"""The text that is offered where the model that is open was trained on none of these."""


@dataclass(frozen=True)
class Text:
    """A text to learn from, and the values of the form's fields that suit it.

    Attributes:
        about: What is learned, in a few words.
        lines: How many are made; 0 for a file of the user's.
    """

    about: str
    lines: int
    values: Mapping[str, str]


def _values(task: str, tokens: str, **sizes: str) -> Mapping[str, str]:
    usual = {"steps": "1000", "learning_rate": "0.003", "batch": "32", "length": "32", "dropout": "0"}
    model = {"embedding": NORMAL, "layers": "1", "d_model": "64", "heads": "4"}
    return {"task": task, "tokens": tokens, **usual, **model, **sizes}


TEXTS: Mapping[str, Text] = {
    "dates": Text(
        "dates as people write them → as 2021-05-03", 5000, _values("pairs", "characters", steps="1500", length="40")
    ),
    "question": Text("is a line a question or a statement?", 4000, _values("classify", "words", d_model="32")),
    "story": Text("small stories, word by word", 4000, _values("next-word", "words", layers="2", length="48")),
    "copy": Text(
        "letters that are repeated: induction heads",
        8000,
        _values("next-word", "words", layers="2", length="64", steps="4000"),
    ),
    FILE: Text("lines of a file of yours", 0, _values("next-character", "characters", length="64", dropout="0.1")),
}

SIZES = ("layers", "d_model", "heads")
FIELDS = (
    Field(
        "folder",
        "run folder",
        "Where the run and its model are kept. A folder that holds a run is gone on from.",
        longest=TEXT,
    ),
    Field("text", "text", "What the model learns from.", tuple(TEXTS)),
    Field(
        "file", "  its path", "Lines of text; for pairs and classify with a tab between the two parts.", longest=TEXT
    ),
    Field("task", "task", "What the model predicts; it decides the architecture.", tuple(TASKS)),
    Field("tokens", "tokens", "What the vocabulary is built of.", UNITS),
    Field("steps", "steps", "Batches that are learned from."),
    Field("learning_rate", "learning rate", "How far a step goes, at most: it rises first and then falls."),
    Field("batch", "batch", "Examples of a step."),
    Field("length", "length", "Tokens of an example, at most."),
    *(each for column in COLUMNS for each in column if each.key in (*SIZES, "embedding")),
    Field("dropout", "dropout", "Share of values that are dropped in a step, so that none is relied on."),
)
NUMBERS: Mapping[str, Callable[[str], float]] = {
    **dict.fromkeys(("steps", "batch", "length", *SIZES), int),
    **dict.fromkeys(("learning_rate", "dropout"), float),
}
"""How each number is read."""


@dataclass(frozen=True)
class Plan:
    """A run that can be opened: what it is called, what it is, and the way to open it."""

    name: str
    about: str
    opened: Callable[[], Run] = field(repr=False)


def saved_run(folder: str) -> Settings | None:
    """The settings of the run in a folder, None where there is none.

    Raises:
        InputError: Its file is damaged.
    """
    return read_settings(path_of(folder))[0] if folder.strip() and is_run(path_of(folder)) else None


def plan(values: Mapping[str, str]) -> Plan:
    """The run of a form.

    Raises:
        InputError: A value that cannot be.
    """
    if not values["folder"].strip():
        raise InputError("the run folder is empty: name a folder")
    folder, settings = path_of(values["folder"]), saved_run(values["folder"])
    if settings is None:
        return _new(values, folder)
    newest, steps = newest_checkpoint(folder), int(_read(values, "steps"))
    step = 0 if newest is None else int(newest.name)
    if steps < step:
        raise InputError(f"steps {steps:,}: {step:,} are made already: write more")
    about = f"{settings.task} on {Path(settings.file).name} · step {step:,} of {steps:,}"
    given = {"steps": steps} if steps != settings.steps else {}
    return Plan(folder.name, about, lambda: Run.resume(folder, given))


def _new(values: Mapping[str, str], folder: Path) -> Plan:
    name, text, file = values["text"], TEXTS[values["text"]], folder / f"{values['text']}.txt"
    if not text.lines:
        if not values["file"].strip():
            raise InputError("the text's path is empty: give the path of a text file")
        file = path_of(values["file"])
        if not is_file(file):
            raise InputError(f"{shown_path(file)} is no file: give the path of a text file")
    numbers: dict[str, Any] = {key: _read(values, key) for key in NUMBERS if key not in SIZES}
    sizes = {key: _read(values, key) for key in SIZES}
    words: dict[str, Any] = {"tokens": values["tokens"], "embedding": values["embedding"]}
    warm_up = min(100, max(numbers["steps"] // 10, 1))
    settings = Settings(values["task"], str(file), sizes=sizes, warm_up=warm_up, **words, **numbers)
    check_new(folder, str(file))

    def opened() -> Run:
        if text.lines:  # made by the program's own rules, beside the run that learns from it
            make_folder(folder)
            write_whole(file, "".join(f"{line}\n" for line in lines_of(name, text.lines)).encode())
        return Run.start(folder, settings)

    return Plan(folder.name, f"a new run in {shown_path(folder)} · {text.about}", opened)


def _read(values: Mapping[str, str], key: str) -> float:
    label = next(each.label.strip() for each in FIELDS if each.key == key)
    return read_number(label, values[key], NUMBERS[key])


class TrainForm(Dialog[Training]):
    """Asks what to train; gives the training once its run is open."""

    DEFAULT_CSS = """
    TrainForm {
        #box { width: 84; }
        #status { min-height: 2; }
    }
    """
    ACTIONS = FORM

    def __init__(self, folder: str, begin: Callable[[Plan], Training], text: str = FIRST) -> None:
        """Ask, beginning with a text that is known; `begin` starts to open a run."""
        values = {"folder": folder or _folder(text), "text": text, "file": "", **TEXTS[text].values}
        self._form = Form((FIELDS,), values, self._changed, apply="open")
        super().__init__("Train a model", self._form)
        self._begin = begin
        self._own: set[str] = {"folder"} if folder else set()
        self._opening: Training | None = None

    def on_mount(self) -> None:
        self._show()

    def _changed(self, key: str) -> None:
        """Let what nobody has changed follow the text; say what would be opened."""
        if key != "text":
            self._own.add(key)
        else:
            text = self._form.values["text"]
            for name, value in {"folder": _folder(text), **TEXTS[text].values}.items():
                if name not in self._own:
                    self._form.put(name, value)
        self._show()

    def _show(self) -> None:
        values = self._form.values
        try:
            run = saved_run(values["folder"])
        except InputError:
            run = None
        if "steps" not in self._own:  # also no longer those of a run that was named before
            self._form.put("steps", TEXTS[values["text"]].values["steps"] if run is None else str(run.steps))
        for each in FIELDS:
            shown = each.key != "file" or values["text"] == FILE
            if run is not None:  # the others are as they were
                shown = each.key in ("folder", "steps")
            self._form.show_field(each.key, shown=shown)
        self._plan()

    def _plan(self) -> Plan | None:
        """The plan of the fields, which is also shown; None where they make none."""
        try:
            wanted = plan(self._form.values)
        except InputError as error:
            self._form.show_status(plain_names(str(error)), wrong=True)
            return None
        self._form.show_status(wanted.about)
        return wanted

    def action_submit(self) -> None:
        if self._opening is None and (wanted := self._plan()) is not None:
            self._form.show_status("opening the run …")
            self._opening = self._begin(wanted)
            self._look(self._opening)

    def _look(self, opening: Training) -> None:
        """Give the training once its run is open, or say why it cannot be."""
        if opening.error is not None:
            raise opening.error
        if opening.status.state == "opening":
            later(self, 0.1, partial(self._look, opening))
        elif opening.run is None:
            self._opening = None
            self._form.show_status(opening.status.problem, wrong=True)
        else:
            self.dismiss(opening)

    def action_leave(self) -> None:
        if self._opening is not None:
            self._opening.ask_to_end()
        super().action_leave()


def _folder(text: str) -> str:
    return str(RUNS / ("text" if text == FILE else text))
