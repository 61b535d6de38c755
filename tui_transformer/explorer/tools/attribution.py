"""Attribution: what every head, layer and bias adds to a logit, and what every token adds to the metric."""

from __future__ import annotations

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.analysis.attribution import Attribution, Term, attribute
from tui_transformer.analysis.input_attribution import (
    POINTS,
    InputAttribution,
    gradient_times_input,
    integrated_gradients,
    mean_of_tokens,
)
from tui_transformer.analysis.metrics import Metric
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import READER
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.dialog import Dialog, Page
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.effects import OF_LOGITS, number, scale_of
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.records import dataclass
from tui_transformer.session.answer_summary import answer_position, measure_of, metric_of
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible

# Direct logit attribution: the terms of a logit


NUMBER, KIND, LEAST_NAME, WIDEST_NAME, LEAST_BAR = 11, 10, 24, 52, 6
"""Columns of a number, of a kind, of a name at least and at most, and of a bar at least."""


class TermsScreen(Overview, tool="terms"):
    """The terms of a logit, the largest first or in the order of the data."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.neurons = self.in_order = False
        self.attribution: Attribution | None = None
        self._terms: tuple[Term, ...] = ()

    def begin(self) -> None:
        session, neurons = self.session, self.neurons
        trace = session.trace

        def work(task: Task) -> Attribution:
            trace.compute(before=lambda step: task.report(step.name))
            task.report("the terms of the logit")
            position = answer_position(session)
            measure = measure_of(session)
            tokens = () if measure is None else measure.tokens
            if not tokens:
                words = range(trace.program.shape(LOGITS)[-1])
                tokens = (int(np.argmax(trace.window(LOGITS, (range(position, position + 1), words))[0])),)
            return attribute(trace, *tokens, position=position, neurons=neurons)

        self.compute(work, self._take)

    def _take(self, attribution: Attribution) -> None:
        self.attribution, self._terms = attribution, attribution.terms
        self.lines.show(len(self._terms), self._line)
        self._put_in_order()

    def _put_in_order(self) -> None:
        terms = self._terms
        by_size = sorted(range(len(terms)), key=lambda index: -abs(terms[index].value))
        order = list(range(len(terms))) if self.in_order else by_size
        self.lines.filter(order)
        self.lines.cursor = order[0] if order else None
        self.show_lines()

    def _line(self, index: int) -> Text:
        terms, width = self._terms, self.lines.size.width
        term, room = terms[index], max(LEAST_NAME, min(width // 2, WIDEST_NAME))
        text = Text(
            f" {fit(str(term), room - 1)} {fit(term.kind, KIND)}{number(term.value, '+'):>{NUMBER}}", no_wrap=True
        )
        left = width - room - KIND - NUMBER - 4
        if left >= LEAST_BAR:
            color = "" if self.app.no_color else "cyan" if term.value >= 0 else "magenta"
            text.append("  ").append(OF_LOGITS.bar(term.value, left), color)
        return text

    def texts(self) -> Texts:
        attribution, index = self.attribution, self.lines.cursor
        if attribution is None:
            return Texts("Direct logit attribution", "", ("taking the logit apart", ""))
        token, other = attribution.tokens
        label, logit, detail = self.session.model.target_label, attribution.logit, ("taking the logit apart", "")
        of = f"logit of {label(token)}" + ("" if other is None else f" less that of {label(other)}")
        left = f"remainder {spoken(attribution.remainder, 2)} · norms frozen"
        if index is not None:
            term = attribution.terms[index]
            share = in_percent(term.value / logit if logit else float("nan"), "+.1%")
            keys = "{measure} on this screen chooses words, {cursor.choose} goes to the step"
            detail = (
                f"{term} · {term.kind}   {number(term.value, '+')}   {share} of the logit",
                hint(self.app, f"a negative one speaks against it; {keys}", direct=True),
            )
        return Texts(
            f"Direct logit attribution · {of} at position {attribution.position}",
            f"{len(attribution.terms)} terms sum to {minus(f'{logit:.4f}')}, {left} · {OF_LOGITS.says}",
            detail,
        )

    def action_kind(self) -> None:
        self.neurons = not self.neurons
        self.begin()

    def action_order(self) -> None:
        self.in_order = not self.in_order
        self._put_in_order()

    def action_measure(self) -> None:
        choose(self.port, self.begin, self)

    def chosen(self) -> None:
        if self.attribution is None:
            return
        term = self._terms[self.lines.index]
        leave_to(
            self,
            term.name,
            (term.number or 0) if term.kind == "head" else 0,
            row=None if term.kind == "bias" else self.attribution.position,
            column=term.number if term.kind == "neuron" else None,
        )


# Gradient × input and integrated gradients: what every token adds to the metric


WORD, BAR = 12, 7
"""Columns of a token, and of a bar to one side: a line fits into 80 columns."""

TITLES = (" gradient × input", " integrated gradients")
FORMULAS = (
    "Gradient × input: Σ_j x_ij ∂f/∂x_ij, to first order (Shrikumar et al. 2016).",
    "Integrated gradients: Σ_j (x_ij − x′_ij) ∫ ∂f/∂x_ij dα, x′ their mean over i (Sundararajan et al. 2017).",
)


@dataclass(frozen=True, eq=False)
class Attributed:
    """Attributions to the tokens, and their metric."""

    metric: Metric
    positions: range
    product: InputAttribution
    integrated: InputAttribution


def open_inputs(port: Port) -> None:
    """Work it out, and show it.

    Raises:
        InputError: The metric has no gradient.
    """
    session, program, measure = port.session, port.session.trace.program, measure_of(port.session)
    if measure is not None and measure.name == "divergence":
        lacks = "the divergence from the sentence itself has gradient 0"
        raise InputError(port.hint(f"{lacks}: {{measure}} chooses another metric"))
    cost = 3 * (POINTS + 1) * sum(map(program.flops, program.steps))
    ask_of_now(
        port,
        "inputs",
        lambda task: attributed(session, task),
        lambda each: port.open(InputsScreen(session, each)),
        cost,
    )


@np.errstate(all="ignore")
def attributed(session: Session, task: Task) -> Attributed:
    """Both, of the metric that was chosen, or of the logit of the most likely token."""
    trace, metric = session.trace, metric_of(session)
    positions = session.answer_rows
    if metric is None:
        words = range(trace.program.shape(trace.program.logits)[1])
        metric = Metric("logit", (int(trace.window(trace.program.logits, (positions[:1], words))[0].argmax()),))
    product = gradient_times_input(trace, metric, positions, report=task.report)
    integrated = integrated_gradients(trace, metric, positions, baseline=mean_of_tokens(trace), report=task.report)
    return Attributed(metric, positions, product, integrated)


MISSED = 0.1
"""Share of what the largest token adds: a remainder above it is more than an inaccuracy."""

TOO_FAST = f"the gradient changes too fast between the two for {POINTS} points, integrated gradients say little here"


class InputsScreen(Dialog[None]):
    """A line a token, with bars to both sides of 0; around them the metric, and what they sum to."""

    ACTIONS = READER

    def __init__(self, session: Session, attributed: Attributed) -> None:
        self.session, self.attributed = session, attributed
        super().__init__(f"What every token adds to: {attributed.metric.said(session.model.target_label)}")

    def body(self) -> ComposeResult:
        attributed, integrated = self.attributed, self.attributed.integrated
        where = "" if attributed.metric.targets else f" at position {attributed.positions.start}"
        total, value, baseline = (
            minus(f"{each:.4f}") for each in (integrated.cells.sum(), integrated.value, integrated.baseline)
        )
        baseline = f"({baseline})" if baseline.startswith("−") else baseline
        remainder, size = integrated.remainder or 0.0, float(np.abs(integrated.rows).max())
        sums = f"They sum to {total} = {value} − {baseline} of the baseline, remainder {minus(f'{remainder:.1e}')}."
        if not abs(remainder) <= MISSED * size:
            sums = f"They should sum to {value} − {baseline} of the baseline, and sum to {total}: {TOO_FAST}."
        table = Static(Content("\n").join(self._lines()), markup=False)
        table.styles.text_wrap, table.styles.text_overflow = "nowrap", "ellipsis"
        choose, scale = hint(self.app, "{measure} on the main screen chooses another"), scale_of(attributed.metric.name)
        with Page():
            yield Static(f"{attributed.metric.name}{where}: {value} · {scale.says} · {choose}\n", markup=False)
            yield table
            yield Static("\n" + "\n".join((*FORMULAS, sums)), markup=False)

    def _lines(self) -> list[Content]:
        product, integrated = self.attributed.product, self.attributed.integrated
        axis = self.session.trace.program.axes(product.step)[-2]
        titles = "  ".join(f"{title:<{BAR * 2 + 11}}" for title in TITLES)
        lines = [Content.styled(f"{'':>4} {fit('token', WORD)} {titles}", "$foreground 65%")]
        scale = scale_of(self.attributed.metric.name)
        for row in range(axis.size):
            word = visible(self.session.labels.of(axis)(row))
            values = (float(each.rows[row]) for each in (product, integrated))
            bars = (f"{minus(f'{value:+9.4f}')} {scale.bar(value, 2 * BAR + 1)}" for value in values)
            lines.append(Content(f"{row:>4} {fit(word, WORD)} {'  '.join(bars)}"))
        return lines
