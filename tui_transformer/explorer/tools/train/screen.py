"""A model that learns in view, the ways out of its screen, and a line over the main one while its run is open."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.base import ExplorerScreen, Port
from tui_transformer.explorer.shell.keymap import first_key, hint, key_line
from tui_transformer.explorer.shell.prompt import PickScreen, asking
from tui_transformer.explorer.tools.checkpoints import open_run
from tui_transformer.explorer.tools.runs import Turned, session_of, show_in
from tui_transformer.explorer.tools.settings import read_number, written_number
from tui_transformer.explorer.tools.train.driver import Status, Training
from tui_transformer.explorer.tools.train.panel import TrainPanel, brief
from tui_transformer.explorer.tools.train.plan import FIRST, TEXTS, Plan, TrainForm
from tui_transformer.explorer.widgets.labels import Written, inks_of, spread
from tui_transformer.learning.settings import is_run
from tui_transformer.model import Model
from tui_transformer.model.local_models import trained_models
from tui_transformer.records import replace
from tui_transformer.text.display import cells, visible

OFTEN, SELDOM = 0.25, 1.0
"""Seconds between two looks at where the run stands, and where it is one line over the main screen."""

HIGHEST_RATE = 1e6

GO_ON, PAUSE, CLOSE = "go on", "pause", "close"
"""What becomes of the run where its screen is left."""


def open_from(port: Port) -> None:
    """Train: the run that is open, or one that a form asks for."""
    training = port.background.job
    if isinstance(training, Training) and training.alive:
        port.open(TrainScreen(port, training))
        return

    def begin(plan: Plan) -> Training:
        port.background.job = begun = Training(plan.name, plan.opened, lambda work: port.worker.between(work).result())
        return begun

    name, folder = port.session.model.name, port.session.model.folder
    run = next((path for path in (folder, folder.parent.parent) if is_run(path)), "") if folder else ""
    text = name if name in trained_models() and name in TEXTS else FIRST
    form = TrainForm(str(run), begin, text)
    port.open(form, lambda opened: None if opened is None else port.open(TrainScreen(port, opened)))


def doing(status: Status) -> str:
    """The state of a run, in a word or two."""
    return status.doing or (f"all {status.steps:,} steps are made" if status.state == "done" else status.state)


class TrainScreen(ExplorerScreen[None]):
    """One run. The training's thread alone uses it: keys ask for what is to be done."""

    ACTIONS = TOOLS["train"]
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
        self.closing: Callable[[], object] | None = None
        """What is done once the run is saved and closed; None where it is not being closed."""
        self._written = Written(self)

    @property
    def settled(self) -> bool:
        return self.training.status.state == "training" or self.panel.settled

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield self.panel
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self.panel.fit(self.app.size)
        self.training.changed = lambda: self.port.worker.post(self.while_there(self._show_change))
        self.set_interval(OFTEN, self._tick)
        self._show(everything=True)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._show(everything=True))

    def on_unmount(self) -> None:
        self.training.changed = lambda: None

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.is_there:
            self._show(everything=True)

    def on_resize(self, event: Resize) -> None:
        self.panel.fit(event.size)
        self.call_after_refresh(self._show, everything=True)

    def _tick(self) -> None:
        """Look where the run stands; where it is to be closed, go on once it is, or stay where it cannot be saved."""
        training, then = self.training, self.closing
        if training.error is not None:
            raise training.error
        if then is None and not training.alive:  # it was left while it was opened
            if self.is_active:  # no dialog lies over it
                self.say(training.status.problem or "the run is closed")
                self.dismiss()
        elif then is None:
            if training.status is not self.panel.status:
                self._show_change()
        elif not training.alive:
            self.closing = None
            then()
        elif not training.ending:
            self.closing = None

    def _show_change(self) -> None:
        if self.is_current and self.is_there:
            self._show(everything=self.training.status.state != "training")

    def _show(self, *, everything: bool) -> None:
        """Title, keys and parts; what takes longer to draw is drawn less often, unless everything has to be."""
        run, status, width, inks = self.training.run, self.training.status, self.size.width, inks_of(self)
        what = "" if run is None else f"{run.trainer.settings.task} · {run.trainer.model.config.summary}"
        title = Text(" Train  ", inks.accent).append(visible(self.training.name), inks.plain + Style(bold=True))
        title.append(f"   {visible(what)}", inks.quiet)
        self._written.write("title", spread(title, Text(f"{doing(status)} ", inks.accent), width))
        words = {"step.on": "pause" if status.state == "training" else "train"}
        actions = [replace(each, short=words.get(each.id, each.short)) for each in self.ACTIONS]
        self._written.write("keys", key_line(actions, self.app, width))
        self.panel.show(everything=everything)

    # Training

    def action_go_on(self) -> None:
        if self.training.status.state == "training":
            self.training.pause()
        else:
            self._make(math.inf)

    def action_one(self) -> None:
        self._make(1)

    def _make(self, steps: float) -> None:
        status = self.training.status
        if status.state == "done":
            self.say(f"all {status.steps:,} steps are made: close the run, and open it again with more steps")
        else:
            self.training.go_on(steps)

    def action_scale_rate(self, factor: float) -> None:
        rate = min(self.training.rate * factor, HIGHEST_RATE)
        self.training.set_rate(rate)
        self.say(f"learning rate {rate:.3g} from the next step on")

    def action_rate(self) -> None:

        def read(text: str) -> float:
            rate = read_number("", text, float)
            if not 0 < rate <= HIGHEST_RATE:
                raise InputError(f"{text!r}: a learning rate is above 0, as 0.001")
            return rate

        value, hint = written_number(self.training.rate), "the highest of the schedule, from the next step on"
        self.open(*asking("Learning rate", read, self.training.set_rate, value=value, hint=hint, replaces=True))

    def action_save(self) -> None:
        told = self.while_there(partial(self.say, f"the model is saved in {self.training.name}"))
        self.training.save(lambda: self.port.worker.post(told))

    def action_turn(self, what: Turned, by: int) -> None:
        self.panel.turn(what, by)

    def action_other_part(self, by: int) -> None:
        self.panel.turn_part(by)
        self.call_after_refresh(self._show, everything=True)

    def action_checkpoints(self) -> None:
        run = self.training.run
        if run is not None:
            open_run(self.port, run.folder, self.open, self._to_main)

    # Ways out

    def action_leave(self) -> None:
        going = self.training.status.state == "training"
        offers = {
            **({GO_ON: "training goes on in the background"} if going else {}),
            PAUSE: hint(self.app, "the run stays open where it is, saved; {train} comes back"),
            CLOSE: "the run is saved and closed",
        }

        def leave(description: str | None) -> None:
            if description == CLOSE:
                self._close(self.dismiss)
            elif description is not None:
                if description == PAUSE:
                    self.training.pause()
                    self.training.save()
                self._to_main()

        self.open(PickScreen("Leave", offers), leave)

    def action_quit(self) -> None:
        self._close(self.app.exit)

    def _close(self, then: Callable[[], object]) -> None:
        self.training.ask_to_end()
        self.closing = then

    def action_explore(self) -> None:
        """Explore a copy of the model as it is now, and ask whether training goes on meanwhile."""
        if self.training.status.state != "training":
            self._explore(GO_ON)
            return
        offers = {GO_ON: "training goes on meanwhile", PAUSE: "training pauses"}
        note = hint(self.app, "You explore a copy of the weights as they are now; {train} comes back.")
        self.open(PickScreen("Explore the model", offers, note), self._explore)

    def _explore(self, picked: str | None) -> None:
        if picked == PAUSE:
            self.training.pause()

        def show(model: Model) -> None:
            made = self.training.snapshots
            if made is None or not self.is_active:
                return
            try:
                session = session_of(self.port.session, model, made.examples.sample)
            except InputError as error:
                self.say(str(error), "error")
                return
            self._to_main()
            show_in(self.port, session, self.panel.heads, self.panel.selection)

        if picked is not None:
            self.training.copy_model(lambda model: self.port.worker.post(self.while_there(show), model))

    def _to_main(self) -> None:
        self.dismiss()
        self.port.banner(TrainingLine(self.training))


class TrainingLine(Static):
    """Says where a run stands, and how to get back to it; goes away with it."""

    DEFAULT_CSS = """
    TrainingLine {
        dock: top;
        height: 1;
        width: 1fr;
        padding: 0 1;
        background: $panel;
        color: $foreground;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self, training: Training) -> None:
        super().__init__(markup=False)
        self._training = training

    def on_mount(self) -> None:
        self.set_interval(SELDOM, self.look)
        self.look()

    def look(self) -> None:
        training = self._training
        if training.error is not None:
            raise training.error
        if not training.alive:
            self.remove()
            return
        status = training.status
        problem = f" · {visible(status.problem)}" if status.problem else ""
        first = f"{visible(training.name)} {doing(status)} · {first_key(self.app, 'train')} opens it{problem} · "
        self.update(first + brief(status, max(self.app.size.width - 2 - cells(first), 0)).rstrip())
