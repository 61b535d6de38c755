"""A model that learns in view."""

from __future__ import annotations

import math
from dataclasses import replace

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import TRAIN
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import key_line
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.runs.selection import Turned
from tui_transformer.explorer.tools.train import lines
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.form import FIRST, TrainForm
from tui_transformer.explorer.tools.train.leaving import Leaving
from tui_transformer.explorer.tools.train.panel import TrainPanel
from tui_transformer.explorer.tools.train.plan import TEXTS, Plan
from tui_transformer.explorer.widgets.labels import Written, inks_of
from tui_transformer.learning.settings import is_run
from tui_transformer.model import Model
from tui_transformer.model.local_models import trained_models

OFTEN = 0.25
"""Seconds between two looks at where the run stands."""

HIGHEST_RATE = 1e6


def open_from(port: Port) -> None:
    """Train: the run that is open, or one that a form asks for."""
    training = port.background.job
    if isinstance(training, Training) and training.alive:
        port.open(TrainScreen(port, training))
        return

    def begin(plan: Plan) -> Training:
        port.background.job = begun = Training(plan.name, plan.opened, lambda work: port.worker.between(work).result())
        return begun

    def finish(opened: Training | None) -> None:
        if opened is not None:
            port.open(TrainScreen(port, opened))

    model = port.session.model
    text = model.name if model.name in trained_models() and model.name in TEXTS else FIRST
    port.open(TrainForm(_run_of(model), begin, text), finish)


def _run_of(model: Model) -> str:
    """The run that a model is of; "" where it is of none."""
    folder = model.folder
    run = next((path for path in (folder, folder.parent.parent) if is_run(path)), None) if folder else None
    return "" if run is None else str(run)


class TrainScreen(ExplorerScreen[None]):
    """One run. The training's thread alone uses it: keys ask for what is to be done."""

    ACTIONS = TRAIN
    AUTO_FOCUS = ""
    HELP_TOPIC = "train"
    DEFAULT_CSS = """
    TrainScreen {
        layout: vertical;
        background: $background;
        #title, #keys { height: 1; width: 1fr; background: $surface; }
    }
    """

    def __init__(self, port: Port, training: Training) -> None:
        super().__init__()
        self.port, self.training = port, training
        self.panel = TrainPanel(training)
        self.leaving = Leaving(self, port, training, self.panel)
        self._written = Written(self)

    @property
    def settled(self) -> bool:
        """Whether it shows where the run stands, unless that changes all the time."""
        return self.training.status.state == "training" or self.panel.settled

    def compose(self) -> ComposeResult:
        """Title, what is known of the run, keys."""
        yield Static(id="title", markup=False)
        yield self.panel
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Look at the run again and again."""
        self.panel.fit(self.app.size)
        self.training.changed = lambda: self.port.worker.post(self.while_there(self._show_change))
        self.set_interval(OFTEN, self._tick)
        self._show(everything=True)

    def on_unmount(self) -> None:
        """Nobody is told any more."""
        self.training.changed = lambda: None

    def on_screen_resume(self) -> None:
        """Draw everything: another screen was in front."""
        super().on_screen_resume()
        if self.is_there:
            self._show(everything=True)

    def on_resize(self, event: Resize) -> None:
        """Show all parts, some, or one at a time, as the size allows."""
        self.panel.fit(event.size)
        self.call_after_refresh(self._show, everything=True)

    def _tick(self) -> None:
        """Look where the run stands."""
        if self.training.error is not None:
            raise self.training.error
        if self.leaving.closing is not None:
            self.leaving.go_on()
        elif self.training.status is not self.panel.status:
            self._show_change()

    def _show_change(self) -> None:
        if self.is_current and self.is_there:
            self._show(everything=self.training.status.state != "training")

    def _show(self, *, everything: bool) -> None:
        """Title, keys and parts; what takes longer to draw is drawn less often, unless everything has to be."""
        run, width = self.training.run, self.size.width
        what = "" if run is None else f"{run.trainer.settings.task} · {run.trainer.model.config.summary}"
        self._written.write("title", lines.title(self.training.name, what, self.training.status, width, inks_of(self)))
        words = {"step.on": "pause" if self.training.status.state == "training" else "train"}
        actions = [replace(each, short=words.get(each.id, each.short)) for each in TRAIN]
        self._written.write("keys", key_line(actions, self.app, width))
        self.panel.show(everything=everything)

    # Training

    def action_go_on(self) -> None:
        """Go on, or pause."""
        if self.training.status.state == "training":
            self.training.pause()
        else:
            self._make(math.inf)

    def action_one(self) -> None:
        """One step."""
        self._make(1)

    def _make(self, steps: float) -> None:
        status = self.training.status
        if status.state == "done":
            self.say(f"all {status.steps:,} steps are made: close the run, and open it again with more steps")
        else:
            self.training.go_on(steps)

    def action_scale_rate(self, factor: float) -> None:
        """Multiply the learning rate."""
        rate = min(self.training.status.rate * factor, HIGHEST_RATE)
        self.training.set_rate(rate)
        self.say(f"learning rate {rate:.3g} from the next step on")

    def action_rate(self) -> None:
        """Ask for the learning rate."""
        hint = "the highest of the schedule, from the next step on"
        prompt = PromptScreen(
            "Learning rate", value=f"{self.training.status.rate:g}", hint=hint, check=_rate, replaces=True
        )
        self.open(prompt, lambda text: self.training.set_rate(_rate(text)) if text is not None else None)

    def action_save(self) -> None:
        """Write a checkpoint."""
        self.training.save()
        self.say(f"the model is saved in {self.training.name}")

    # What is shown

    def action_turn(self, what: Turned, by: int) -> None:
        """Another head, layer or kind of attention."""
        self.panel.turn(what, by)

    def action_other_part(self, by: int) -> None:
        """The next part, where one is shown at a time."""
        self.panel.turn_part(by)
        self.call_after_refresh(self._show, everything=True)

    def action_checkpoints(self) -> None:
        """The checkpoints of this run."""
        from tui_transformer.explorer.tools.checkpoints.screen import open_run

        run = self.training.run
        if run is not None:
            open_run(self.port, run.folder, self.open)

    # Leaving

    def action_explore(self) -> None:
        """Explore a copy of the model as it is now."""
        self.leaving.explore()

    def action_leave(self) -> None:
        """Ask whether training goes on."""
        self.leaving.ask()

    def action_quit(self) -> None:
        """Save, and quit."""
        self.leaving.close(self.app.exit)


def _rate(text: str) -> float:
    """A learning rate as a person writes it."""
    try:
        rate = float(text.strip().replace(",", "."))
    except ValueError as error:
        raise InputError(f"{text!r} is not a number") from error
    if not 0 < rate <= HIGHEST_RATE:
        raise InputError(f"{text!r}: a learning rate is above 0, as 0.001")
    return rate
