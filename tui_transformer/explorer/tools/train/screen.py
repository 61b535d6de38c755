"""A model that learns in view: what every key does."""

from __future__ import annotations

import math
from collections.abc import Callable

from textual.notifications import SeverityLevel

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.pick import PickScreen
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.runs.exploring import session_of, show_in
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.form import TrainForm
from tui_transformer.explorer.tools.train.line import TrainingLine
from tui_transformer.explorer.tools.train.plan import Plan
from tui_transformer.explorer.tools.train.stage import TrainStage
from tui_transformer.guide.texts import help_text
from tui_transformer.learning.run_file import is_run
from tui_transformer.model import Model
from tui_transformer.text.display import visible

GO_ON, PAUSE, CLOSE = "go on", "pause", "close"
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

    port.open(TrainForm(_run_of(port.session.model), begin), finish)


def _run_of(model: Model) -> str:
    """The run that a model is of; "" where it is of none."""
    folder = model.folder
    found = next((path for path in (folder, folder.parent.parent) if is_run(path)), None) if folder else None
    return "" if found is None else str(found)


class TrainScreen(TrainStage):
    """Everything that a key can do. The training's thread alone uses the run."""

    def __init__(self, port: Port, training: Training) -> None:
        """Show a run."""
        super().__init__(training)
        self.port = port

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
        prompt = PromptScreen("Learning rate", value=f"{self.training.status.rate:g}", hint=hint, check=_rate)
        self.open(prompt, lambda text: self.training.set_rate(_rate(text)) if text is not None else None)

    def action_save(self) -> None:
        """Write a checkpoint."""
        self.training.save()
        self.say(f"the model is saved in {self.training.name}")

    # The head

    def action_head(self, step: int) -> None:
        """Another head."""
        self._choose("with_head", step)

    def action_layer(self, step: int) -> None:
        """Another layer."""
        self._choose("with_layer", step)

    def action_kind(self) -> None:
        """The next kind of attention."""
        self._choose("with_next_kind")

    def _choose(self, how: str, *arguments: int) -> None:
        heads = self.heads
        if heads is not None and heads.attentions:
            self.chosen = getattr(self.chosen, how)(heads.attentions, *arguments)
            self.show_head()

    def action_other_part(self, step: int) -> None:
        """The next part, where one is shown at a time."""
        others = self.others
        if others:
            self.part = others[(others.index(self.part) + step) % len(others)]
            self.show_parts()
            self.call_after_refresh(self.show, all_of_it=True)

    # Leaving

    def action_explore(self) -> None:
        """Explore a copy of the model as it is now."""
        if self.training.status.state != "training":
            self._explore(GO_ON)
            return
        offers = {GO_ON: "training goes on meanwhile", PAUSE: "training pauses"}
        note = "You explore a copy of the weights as they are now; ctrl+l comes back."
        self.open(PickScreen("Explore the model", offers, note), self._explore)

    def _explore(self, how: str | None) -> None:
        if how is None:
            return
        if how == PAUSE:
            self.training.pause()
        self.training.snapshot(lambda model: self.port.worker.post(self.while_there(self._show_in_explorer), model))

    def _show_in_explorer(self, model: Model) -> None:
        """Show the model on the sample, at the head that was looked at."""
        looks, session = self.training.looks, self.port.session
        if looks is None or not self.is_current:
            return
        try:
            session = session_of(session, model, looks.examples.sample)
        except InputError as error:
            self.say(str(error), "error")
            return
        self._back_to_main()
        show_in(self.port, session, self.heads, self.chosen)

    def _back_to_main(self) -> None:
        """Leave the run open, and say over the main screen where it stands."""
        self.dismiss()
        self.port.banner(TrainingLine(self.training))

    def action_leave(self) -> None:
        """Ask whether training goes on."""
        training = self.training.status.state == "training"
        offers = {
            **({GO_ON: "training goes on in the background"} if training else {}),
            PAUSE: "the run stays open where it is, saved; ctrl+l comes back",
            CLOSE: "the run is saved and closed",
        }
        self.open(PickScreen("Leave", offers), self._leave)

    def _leave(self, how: str | None) -> None:
        if how == CLOSE:
            self._end(self.dismiss)
        elif how is not None:
            if how == PAUSE:
                self.training.pause()
                self.training.save()
            self._back_to_main()

    def action_quit(self) -> None:
        """Save, and quit."""
        self._end(self.app.exit)

    def _end(self, then: Callable[[], object]) -> None:
        """Save the run and close it, then go on."""
        self.training.ask_to_end()
        self.closing = then

    def action_scrub(self) -> None:
        """The checkpoints of this run."""
        from tui_transformer.explorer.tools.checkpoints.screen import open_run

        run = self.training.run
        if run is not None:
            open_run(self.port, run.folder, self.open)

    def action_help(self) -> None:
        """What there is on this screen."""
        from tui_transformer.explorer.shell.help import HelpScreen

        self.open(HelpScreen(help_text("train"), "Help"))

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""
        self.app.notify(visible(message), severity=severity, markup=False)


def _rate(text: str) -> float:
    """A learning rate as a person writes it."""
    try:
        rate = float(text.strip().replace(",", "."))
    except ValueError as error:
        raise InputError(f"{text!r} is not a number") from error
    if not 0 < rate <= HIGHEST_RATE:
        raise InputError(f"{text!r}: a learning rate is above 0, as 0.001")
    return rate
