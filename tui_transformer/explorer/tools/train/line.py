"""A line over the main screen while a run is open: where it stands, and how to get back to it."""

from __future__ import annotations

from textual.widgets import Static

from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.lines import brief, doing
from tui_transformer.text.display import cells, visible

OFTEN = 1.0


class TrainingLine(Static):
    """Says where a run stands; goes away with it."""

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
        """Look now and again and again."""
        self.set_interval(OFTEN, self.look)
        self.look()

    def look(self) -> None:
        """Say where the run stands now."""
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
