"""The form before training: what to learn from, where the run is kept, how long and how large."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.app import ComposeResult

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.timers import later
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import Form
from tui_transformer.explorer.tools.runs.paths import RUNS
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.plan import (
    FIELDS,
    FILE,
    OF_A_RUN,
    TEXTS,
    Plan,
    plain_names,
    plan,
    saved_run,
)

FIRST = "dates"
"""The text that is offered where the model that is open was trained on none of these."""

OFTEN = 0.1
"""Seconds between two looks at a run that is being opened."""


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
        super().__init__("Train a model")
        self._form = Form((FIELDS,), values, self._changed, apply="open")
        self._begin = begin
        self._own: set[str] = {"folder"} if folder else set()
        self._opening: Training | None = None

    def body(self) -> ComposeResult:
        """The form."""
        yield self._form

    def on_mount(self) -> None:
        """Begin with the folder."""
        self._show()

    # Values

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
        """Show the fields that there are, and what would be opened."""
        values = self._form.values
        try:
            run = saved_run(values["folder"])
        except InputError:
            run = None
        if run is not None and "steps" not in self._own:
            self._form.put("steps", str(run.settings.steps))
        for field in FIELDS:
            shown = field.key in OF_A_RUN if run else field.key != "file" or values["text"] == FILE
            self._form.show_field(field.key, shown=shown)
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

    # Opening

    def action_submit(self) -> None:
        """Open the run, if it can be."""
        if self._opening is None and (wanted := self._plan()) is not None:
            self._form.show_status("opening the run …")
            self._opening = self._begin(wanted)
            self._look(self._opening)

    def _look(self, opening: Training) -> None:
        """Give the training once its run is open, or say why it cannot be."""
        if opening.error is not None:
            raise opening.error
        if opening.status.state == "opening":
            later(self, OFTEN, partial(self._look, opening))
        elif opening.run is None:
            self._opening = None
            self._form.show_status(opening.status.problem, wrong=True)
        else:
            self.dismiss(opening)

    def action_leave(self) -> None:
        """Close the form; a run that is being opened is closed again."""
        if self._opening is not None:
            self._opening.ask_to_end()
        super().action_leave()


def _folder(text: str) -> str:
    return str(RUNS / ("text" if text == FILE else text))
