"""Ways out of the Train screen: the run goes on, pauses, or is saved and closed."""

from __future__ import annotations

from collections.abc import Callable

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PickScreen
from tui_transformer.explorer.tools.runs.exploring import session_of, show_in
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.line import TrainingLine
from tui_transformer.explorer.tools.train.panel import TrainPanel
from tui_transformer.model import Model

GO_ON, PAUSE, CLOSE = "go on", "pause", "close"


class Leaving:
    """The ways to leave the screen of a run.

    Attributes:
        closing: What is done once the run is saved and closed; None where it is not being closed.
    """

    def __init__(self, screen: ExplorerScreen[None], port: Port, training: Training, panel: TrainPanel) -> None:
        self.closing: Callable[[], object] | None = None
        self._screen, self._port, self._training, self._panel = screen, port, training, panel

    def ask(self) -> None:
        """Ask whether training goes on, and leave."""
        going = self._training.status.state == "training"
        offers = {
            **({GO_ON: "training goes on in the background"} if going else {}),
            PAUSE: hint(self._screen.app, "the run stays open where it is, saved; {train} comes back"),
            CLOSE: "the run is saved and closed",
        }
        self._screen.open(PickScreen("Leave", offers), self._leave)

    def _leave(self, how: str | None) -> None:
        if how == CLOSE:
            self.close(self._screen.dismiss)
        elif how is not None:
            if how == PAUSE:
                self._training.pause()
                self._training.save()
            self._to_main()

    def close(self, then: Callable[[], object]) -> None:
        """Save the run and close it, then go on."""
        self._training.ask_to_end()
        self.closing = then

    def go_on(self) -> None:
        """Go on once the run is saved and closed; where it cannot be saved, it stays open."""
        then = self.closing
        if not self._training.alive and then is not None:
            self.closing = None
            then()
        elif not self._training.ending:
            self.closing = None

    def explore(self) -> None:
        """Explore a copy of the model as it is now, and ask whether training goes on meanwhile."""
        if self._training.status.state != "training":
            self._explore(GO_ON)
            return
        offers = {GO_ON: "training goes on meanwhile", PAUSE: "training pauses"}
        note = hint(self._screen.app, "You explore a copy of the weights as they are now; {train} comes back.")
        self._screen.open(PickScreen("Explore the model", offers, note), self._explore)

    def _explore(self, how: str | None) -> None:
        if how is None:
            return
        if how == PAUSE:
            self._training.pause()
        show = self._screen.while_there(self._show_in_explorer)
        self._training.copy_model(lambda model: self._port.worker.post(show, model))

    def _show_in_explorer(self, model: Model) -> None:
        """Show the model on the sample, at the head that was looked at."""
        made = self._training.snapshots
        if made is None or not self._screen.is_current:
            return
        try:
            session = session_of(self._port.session, model, made.examples.sample)
        except InputError as error:
            self._screen.say(str(error), "error")
            return
        self._to_main()
        show_in(self._port, session, self._panel.heads, self._panel.selection)

    def _to_main(self) -> None:
        self._screen.dismiss()
        self._port.banner(TrainingLine(self._training))
