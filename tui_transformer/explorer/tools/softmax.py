"""The softmax of the cursor's row twice: as the formula has it, and as it is computed; a key breaks the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from textual.content import Content

from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.actions.dialogs import SOFTMAX
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.session.softmax_row import (
    NOT_BROKEN,
    breaking_point,
    lacking,
    largest,
    lesson,
    scores_row,
    softmaxes,
)
from tui_transformer.text.display import cells, fit

MOST = 60
"""Columns of the row that are listed: the largest scores."""

LABEL, NUMBER = 11, 10


def open_from(port: Port) -> None:
    """The softmax of the step that is shown, or of its attention; says so where there is none."""
    session, row = port.session, scores_row(port.session, port.position)
    if row is None:
        port.say(lacking(session, port.position))
        return
    label = session.labels.of(row.columns)

    def show(scores: Host) -> None:
        port.open(SoftmaxScreen(row.where, scores, [label(int(i)) for i in largest(scores, MOST)]))

    port.ask("softmax", lambda _: row.scores(session), show, row.columns.size)


class SoftmaxScreen(Dialog[None]):
    """A line a score, with every number on the way to its share."""

    ACTIONS = SOFTMAX

    def __init__(self, where: str, scores: Host, labels: Sequence[str]) -> None:
        super().__init__("Softmax, naive and safe")
        self.where, self.scores, self.labels = where, scores, labels
        self.raised = 0.0

    def action_raise(self, times: int) -> None:
        self.raised += times * 10.0
        self.show_text()

    def action_break(self) -> None:
        """Raise the scores just so far that the naive softmax breaks, or mend it."""
        broken = softmaxes(self.scores, self.raised).breaks
        raised = 0.0 if broken else breaking_point(self.scores)
        if raised is None:
            self.say(NOT_BROKEN)
            return
        self.raised = raised
        self.show_text()

    def text(self) -> Content:
        computed = softmaxes(self.scores, self.raised)
        columns = {
            "s": computed.scores,
            "e^s": computed.powers,
            "naive": computed.naive,
            "s − max": computed.shifted,
            "e^(s−max)": computed.safe_powers,
            "safe": computed.safe,
        }
        lines = [
            Content.styled(f"all scores + {self.raised:g} · {self.scores.dtype} · {self.where}", "$foreground 65%"),
            Content.styled(fit("", LABEL) + "".join(f"{name:>{NUMBER}}" for name in columns), "bold"),
        ]
        for i, label in zip(largest(self.scores, MOST), self.labels, strict=True):
            numbers = "".join(_number(float(column[i])) for column in columns.values())
            style = "$error" if np.isnan(computed.naive[i]) else "$foreground"
            lines.append(Content.styled(fit(label, LABEL) + numbers, style))
        with np.errstate(all="ignore"):
            sums = (
                " " * NUMBER if name in ("s", "s − max") else _number(float(column.sum()))
                for name, column in columns.items()
            )
            total = fit("Σ", LABEL) + "".join(sums)
        learned = Content.styled(lesson(computed, self.raised), "bold $error" if computed.breaks else "$foreground")
        return Content("\n").join([*lines, Content(total), Content(""), learned])


def _number(value: float) -> str:
    text = f"{value:.4f}" if abs(value) < 1e4 else f"{value:.3e}"
    return f"{minus(text if cells(text) < NUMBER else f'{value:.1e}'):>{NUMBER}}"
