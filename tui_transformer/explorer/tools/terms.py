"""Direct logit attribution: a line for every head, layer, embedding and bias, by what it adds to a logit."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from tui_transformer.analysis.attribution import LOGITS, Attribution, Term, attribute
from tui_transformer.analysis.effects import answer_positions
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation.search import bar, number
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.session.answer_summary import measure_of
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import fit

NUMBER, KIND, LEAST_NAME, WIDEST_NAME, LEAST_BAR = 11, 10, 24, 52, 6
"""Columns of a number, of a kind, of a name at least and at most, and of a bar at least."""


def open_from(port: Port) -> None:
    """The terms of the logit that is measured, or of the most likely token's."""
    port.open(TermsScreen(port))


class TermsScreen(Overview, tool="terms"):
    """The terms of a logit, the largest first or in the order of the data."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.neurons = self.in_order = False
        self.attribution: Attribution | None = None

    def begin(self) -> None:
        """Take the logit apart, on the worker."""
        session, neurons = self.session, self.neurons
        trace = session.trace

        def work(task: Task) -> Attribution:
            trace.compute(before=lambda step: task.report(step.name))
            task.report("the terms of the logit")
            position = answer_positions(trace, folder=session.model.folder).start
            measure = measure_of(session)
            tokens = () if measure is None else measure.tokens
            if not tokens:
                words = range(trace.program.shape(LOGITS)[-1])
                tokens = (int(np.argmax(trace.window(LOGITS, (range(position, position + 1), words))[0])),)
            return attribute(trace, *tokens, position=position, neurons=neurons)

        self.compute(AT_ONCE + 1, work, self._take)

    def _take(self, attribution: Attribution) -> None:
        self.attribution = attribution
        self.lines.show(len(attribution.terms), self._line)
        self._put_in_order()

    def _put_in_order(self) -> None:
        terms = self._terms
        by_size = sorted(range(len(terms)), key=lambda index: -abs(terms[index].value))
        order = list(range(len(terms))) if self.in_order else by_size
        self.lines.filter(order)
        self.lines.cursor = order[0] if order else None
        self.show_lines()

    @property
    def _terms(self) -> tuple[Term, ...]:
        return () if self.attribution is None else self.attribution.terms

    def _line(self, index: int) -> Text:
        terms, width = self._terms, self.lines.size.width
        term, room = terms[index], max(LEAST_NAME, min(width // 2, WIDEST_NAME))
        text = Text(f" {fit(str(term), room)}{fit(term.kind, KIND)}{number(term.value, '+'):>{NUMBER}}", no_wrap=True)
        left = width - room - KIND - NUMBER - 4
        if left >= LEAST_BAR:
            largest = max(abs(each.value) for each in terms)
            color = "" if self.app.no_color else "cyan" if term.value >= 0 else "magenta"
            text.append("  ").append(bar(abs(term.value), largest, left), color)
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
                self.port.hint(f"a negative one speaks against it; {keys}"),
            )
        return Texts(
            f"Direct logit attribution · {of} at position {attribution.position}",
            f"{len(attribution.terms)} terms sum to {minus(f'{logit:.4f}')}, {left}",
            detail,
        )

    def action_kind(self) -> None:
        self.neurons = not self.neurons
        self.begin()

    def action_order(self) -> None:
        self.in_order = not self.in_order
        self._put_in_order()

    def action_measure(self) -> None:
        choose(self.port, self.open, self.change, self.begin)

    def chosen(self) -> None:
        """To the step of the term, at the position of the logit."""
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
