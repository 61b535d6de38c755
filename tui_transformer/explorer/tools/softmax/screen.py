"""The softmax of the cursor's row twice: as the formula has it, and as it is computed; a key breaks the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.analysis.naive_softmax import Softmaxes, breaking_point, softmaxes
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.guard.notifications import say
from tui_transformer.explorer.shell.actions.dialogs import SOFTMAX
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.pages import Page
from tui_transformer.explorer.shell.port import Port
from tui_transformer.session.softmax_row import NONE, NOT_BROKEN, largest, lesson, scores_row
from tui_transformer.text.display import cells, fit

MOST = 60
"""Columns of the row that are listed: the largest scores."""

RAISED = 10.0
LABEL, NUMBER = 11, 10
HEADINGS = ("s", "e^s", "naive", "s − max", "e^(s−max)", "safe")


def open_from(port: Port) -> None:
    """The softmax of the step that is shown, or of its attention; says so where there is none."""
    session, row = port.session, scores_row(port.session, port.position)
    if row is None:
        port.say(NONE)
        return
    label = session.labels.of(row.columns)

    def show(scores: Host) -> None:
        port.open(SoftmaxScreen(row.where, scores, [label(int(i)) for i in largest(scores, MOST)]))

    port.ask("softmax", row.columns.size, lambda _: row.scores(session), show)


class SoftmaxScreen(Dialog[None]):
    """A line a score, with every number on the way to its share."""

    ACTIONS = SOFTMAX

    def __init__(self, where: str, scores: Host, labels: Sequence[str]) -> None:
        super().__init__("Softmax, naive and safe")
        self.where, self.scores, self.labels = where, scores, labels
        self.raised = 0.0

    def body(self) -> ComposeResult:
        """The table."""
        with Page():
            yield Static(id="softmax", markup=False)

    def on_mount(self) -> None:
        """Show the row."""
        self._show()

    def action_raise(self, times: int) -> None:
        """Raise all scores; the safe shares stay as they are."""
        self.raised += times * RAISED
        self._show()

    def action_break(self) -> None:
        """Raise the scores just so far that the naive softmax breaks, or mend it."""
        broken = softmaxes(self.scores, self.raised).breaks
        raised = 0.0 if broken else breaking_point(self.scores)
        if raised is None:
            say(self.app, NOT_BROKEN)
            return
        self.raised = raised
        self._show()

    def _show(self) -> None:
        computed = softmaxes(self.scores, self.raised)
        quiet = "$foreground 65%"
        heading = fit("", LABEL) + "".join(f"{name:>{NUMBER}}" for name in HEADINGS)
        lines = [
            Content.styled(f"all scores + {self.raised:g} · {self.scores.dtype} · {self.where}", quiet),
            Content.styled(heading, "bold"),
            *(
                self._line(computed, int(i), label)
                for i, label in zip(largest(self.scores, MOST), self.labels, strict=True)
            ),
            Content(fit("Σ", LABEL) + _sums(computed)),
            Content(""),
            Content.styled(lesson(computed, self.raised), "bold $error" if computed.breaks else "$foreground"),
        ]
        self.query_one("#softmax", Static).update(Content("\n").join(lines))

    @staticmethod
    def _line(computed: Softmaxes, i: int, label: str) -> Content:
        naive = computed.scores, computed.powers, computed.naive
        safe = computed.shifted, computed.safe_powers, computed.safe
        text = "".join(f"{_number(float(column[i])):>{NUMBER}}" for column in (*naive, *safe))
        return Content.styled(fit(label, LABEL) + text, "$error" if np.isnan(computed.naive[i]) else "$foreground")


def _number(value: float) -> str:
    text = f"{value:.4f}" if abs(value) < 1e4 else f"{value:.3e}"
    return minus(text if cells(text) < NUMBER else f"{value:.1e}")


def _sums(computed: Softmaxes) -> str:
    with np.errstate(all="ignore"):
        sums = ("", computed.powers.sum(), computed.naive.sum(), "", computed.safe_powers.sum(), computed.safe.sum())
    return "".join(f"{value if isinstance(value, str) else _number(float(value)):>{NUMBER}}" for value in sums)
