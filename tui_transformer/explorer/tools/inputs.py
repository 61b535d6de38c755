"""Attribution of the metric to tokens: gradient × input and integrated gradients, a line a token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.input_attribution import (
    POINTS,
    InputAttribution,
    gradient_times_input,
    integrated_gradients,
)
from tui_transformer.analysis.metrics import Metric
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import READER
from tui_transformer.explorer.shell.dialog import Dialog, Page
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.session.answer_summary import metric_of
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible

WORD, BAR = 12, 7
"""Columns of a token, and of a bar to one side: a line fits into 80 columns."""

TITLES = (" gradient × input", " integrated gradients")


@dataclass(frozen=True, eq=False)
class Attributed:
    """Attributions to the tokens, and their metric."""

    metric: Metric
    positions: range
    product: InputAttribution
    integrated: InputAttribution


def open_from(port: Port) -> None:
    """Work it out, and show it."""
    session, program = port.session, port.session.trace.program
    cost = 3 * (POINTS + 1) * sum(map(program.flops, program.steps))
    port.ask(
        "inputs", cost, lambda task: attributed(session, task), lambda each: port.open(InputsScreen(session, each))
    )


def attributed(session: Session, task: Task) -> Attributed:
    """Both, of the metric that was chosen, or of the logit of the most likely token."""
    trace = session.trace
    positions = answer_positions(trace, folder=session.model.folder)
    metric = metric_of(session)
    if metric is None:
        words = range(trace.program.shape(trace.program.logits)[1])
        metric = Metric("logit", (int(trace.window(trace.program.logits, (positions[:1], words))[0].argmax()),))
    if metric.name == "divergence":
        raise InputError("the divergence from the sentence itself has gradient 0: choose another metric with #")
    mean = np.asarray(trace[trace.program.step("embedding.output").name], np.float64).mean(axis=0)
    product = gradient_times_input(trace, metric, positions)
    integrated = integrated_gradients(trace, metric, positions, baseline=mean, report=task.report)
    return Attributed(metric, positions, product, integrated)


class InputsScreen(Dialog[None]):
    """A line a token, with bars to both sides of 0; around them the metric, and what they sum to."""

    ACTIONS = READER

    def __init__(self, session: Session, attributed: Attributed) -> None:
        self.session, self.attributed = session, attributed
        super().__init__(f"What every token adds to: {attributed.metric.said(session.model.target_label)}")

    def body(self) -> ComposeResult:
        attributed = self.attributed
        where = "" if attributed.metric.targets else f" at position {attributed.positions.start}"
        measured = f"{attributed.metric.name}{where}: {minus(f'{attributed.integrated.value:.4f}')}"
        table = Static(Content("\n").join(self._lines()), markup=False)
        table.styles.text_wrap, table.styles.text_overflow = "nowrap", "ellipsis"
        choose = hint(self.app, "{measure} on the main screen chooses another")
        with Page():
            yield Static(f"{measured} · {choose}\n", markup=False)
            yield table
            yield Static("\n" + "\n".join(_sums(attributed.integrated)), markup=False)

    def _lines(self) -> list[Content]:
        product, integrated = self.attributed.product, self.attributed.integrated
        axis = self.session.trace.program.axes(product.step)[-2]
        titles = "  ".join(f"{title:<{BAR * 2 + 11}}" for title in TITLES)
        lines = [Content.styled(f"{'':>4} {fit('token', WORD)} {titles}", "$foreground 65%")]
        columns = [(each.rows, float(np.abs(each.rows).max(initial=0.0))) for each in (product, integrated)]
        for row in range(axis.size):
            word = visible(self.session.labels.of(axis)(row))
            values = "  ".join(_bar(float(rows[row]), most) for rows, most in columns)
            lines.append(Content(f"{row:>4} {fit(word, WORD)} {values}"))
        return lines


def _sums(integrated: InputAttribution) -> tuple[str, ...]:
    total, value, baseline = (
        minus(f"{each:.4f}") for each in (integrated.cells.sum(), integrated.value, integrated.baseline)
    )
    baseline = f"({baseline})" if baseline.startswith("−") else baseline
    return (
        "Gradient × input: Σ_j x_ij ∂f/∂x_ij, to first order (Shrikumar et al. 2016).",
        "Integrated gradients: Σ_j (x_ij − x′_ij) ∫ ∂f/∂x_ij dα, x′ their mean over i (Sundararajan et al. 2017).",
        f"They sum to {total} = {value} − {baseline} of the baseline, "
        f"remainder {minus(f'{integrated.remainder:.1e}')}.",
    )


def _bar(value: float, most: float) -> str:
    """A number, and a bar from the middle to its side."""
    length = round(abs(value) / most * BAR) if most else 0
    left = ("━" * length if value < 0 else "").rjust(BAR)
    right = ("━" * length if value > 0 else "").ljust(BAR)
    return minus(f"{value:+9.4f} {left}│{right}")
