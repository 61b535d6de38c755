"""Direct logit attribution: a line for every head, layer, embedding and bias, by what it adds to a logit."""

from __future__ import annotations

from functools import partial

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.attribution import LOGITS, Attribution, Term, attribute
from tui_transformer.analysis.effects import answer_positions
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.explorer.shell.actions.tools import TERMS
from tui_transformer.explorer.shell.overview import Overview, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation.table import bar, number
from tui_transformer.explorer.tools.measure.screen import choose
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.answer_summary import measure_of
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import fit

NUMBER, LEAST_NAME, LEAST_BAR = 11, 24, 6


def open_from(port: Port) -> None:
    """The terms; says so where the model has no logits of words."""
    step = port.session.trace.program.by_name.get(LOGITS)
    if step is None or step.axes[-1].name != "vocabulary":
        port.say("the model has no logits of words: attribution reads these")
        return
    port.open(TermsScreen(port))


class TermsScreen(Overview):
    """The terms of a logit, the largest first or in the order of the data."""

    ACTIONS = TERMS
    DEFAULT_CSS = "TermsScreen #terms { height: 1fr; }"
    HELP_TOPIC, KIND = "terms", "terms"

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.neurons = self.in_order = False
        self.attribution: Attribution | None = None

    def content(self) -> ComposeResult:
        """The list."""
        yield LineList(id="terms")

    def on_mount(self) -> None:
        """Work the terms out."""
        self.query_one(LineList).focus()
        self.compute()

    def compute(self) -> None:
        """Take the logit apart, on the worker."""
        work = partial(_attributed, self.session, self.neurons)
        self.requests.ask(self.KIND, AT_ONCE + 1, work, self._take)
        self.show_lines()

    def _take(self, attribution: Attribution) -> None:
        self.attribution = attribution
        self.query_one(LineList).show(len(attribution.terms), self._line)
        self._put_in_order()

    def _put_in_order(self) -> None:
        lines, terms = self.query_one(LineList), self._terms
        by_size = sorted(range(len(terms)), key=lambda index: -abs(terms[index].value))
        order = list(range(len(terms))) if self.in_order else by_size
        lines.filter(order)
        lines.cursor = order[0] if order else None
        self.show_lines()

    @property
    def _terms(self) -> tuple[Term, ...]:
        return () if self.attribution is None else self.attribution.terms

    def _line(self, index: int) -> Text:
        """Name, number, and a bar that says how large it is beside the largest."""
        terms, width = self._terms, self.query_one(LineList).size.width
        term, room = terms[index], max(LEAST_NAME, min(width // 2, 52))
        text = Text(f" {fit(str(term), room)}{fit(term.kind, 10)}{number(term.value, '+'):>{NUMBER}}", no_wrap=True)
        left = width - room - 10 - NUMBER - 4
        if left >= LEAST_BAR:
            largest = max(abs(each.value) for each in terms)
            color = "" if self.app.no_color else "cyan" if term.value >= 0 else "magenta"
            text.append("  ").append(bar(abs(term.value), largest, left), color)
        return text

    # What is said

    def heading(self) -> str:
        """The logit, or the difference of two."""
        if self.attribution is None:
            return "Direct logit attribution"
        token, other = self.attribution.tokens
        label = self.session.model.target_label
        of = f"logit of {label(token)}" + ("" if other is None else f" less that of {label(other)}")
        return f"Direct logit attribution · {of} at position {self.attribution.position}"

    def note(self) -> str:
        """The sum, and what rounding leaves of it."""
        if self.attribution is None:
            return ""
        count, logit, rest = len(self._terms), self.attribution.logit, self.attribution.remainder
        return f"{count} terms sum to {minus(f'{logit:.4f}')}, remainder {spoken(rest, 2)} · norms frozen"

    def detail(self) -> tuple[str, str]:
        """The term under the cursor."""
        index = self.query_one(LineList).cursor
        if self.attribution is None or index is None:
            return "taking the logit apart", ""
        term = self._terms[index]
        share = term.value / self.attribution.logit if self.attribution.logit else float("nan")
        first = f"{term} · {term.kind}   {number(term.value, '+')}   {in_percent(share, '+.1%')} of the logit"
        keys = "{measure} on this screen chooses words, {cursor.choose} goes to the step"
        return first, self.port.hint(f"a negative one speaks against it; {keys}")

    # What keys do

    def action_kind(self) -> None:
        """Layers whole, or their neurons."""
        self.neurons = not self.neurons
        self.compute()

    def action_order(self) -> None:
        """The largest first, or the order of the data."""
        self.in_order = not self.in_order
        self._put_in_order()

    def action_measure(self) -> None:
        """Another word, or two."""
        choose(self.port, self.open, self.change, self.compute)

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        index = self.query_one(LineList).cursor
        if self.attribution is None or index is None:
            return
        term, row = self._terms[index], self.attribution.position
        if term.kind == "head":
            leave_to(self, term.name, term.number or 0, row=row)
        elif term.kind == "neuron":
            leave_to(self, term.name, row=row, column=term.number)
        elif term.kind == "bias":
            leave_to(self, term.name)
        else:
            leave_to(self, term.name, row=row)


def _attributed(session: Session, neurons: bool, task: Task) -> Attribution:  # noqa: FBT001 - as it is asked for
    """On the worker: the terms of the logit that is measured, or of that of the most likely token."""
    trace = session.trace
    trace.compute(before=lambda step: task.report(step.name))
    task.report("the terms of the logit")
    position = answer_positions(trace, folder=session.model.folder).start
    measure = measure_of(session)
    tokens = () if measure is None else measure.tokens
    if not tokens:
        words = range(trace.program.shape(LOGITS)[-1])
        tokens = (int(np.argmax(trace.window(LOGITS, (range(position, position + 1), words))[0])),)
    return attribute(trace, *tokens, position=position, neurons=neurons)
