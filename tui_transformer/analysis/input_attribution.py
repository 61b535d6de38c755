"""Attribution of a chosen number to the input tokens, by gradients.

With the input x (n × d: what enters the first layer), a scalar f and a baseline x′:

- gradient × input: Σ_j x_ij ∂f/∂x_ij of token i (Shrikumar et al. 2016, "Not Just a Black Box", §2.1): how f would
  change if the token were scaled, to first order;
- integrated gradients: Σ_j (x_ij − x′_ij) ∫₀¹ ∂f/∂x_ij (x′ + α (x − x′)) dα (Sundararajan et al. 2017, "Axiomatic
  Attribution for Deep Networks", equation 1). They are complete: their sum is f(x) − f(x′) (proposition 1). What the
  sum leaves of that is the remainder of the integration, which is handed out.

The integral is Gauss–Legendre in t with α = t³: norms turn fastest near a baseline of 0, where the points then crowd.
Exactly at 0 a norm with a small ε jumps, which no integral sees: the remainder is then large, and another baseline, as
the mean of the rows, is to be preferred. With experts f itself jumps wherever a token on the way goes to another
expert. Proposition 1 asks for an f without jumps: no gradient sees them, however many points there are, and the
remainder is their sum.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.circuits import in_float64
from tui_transformer.analysis.measurable import Positions, at_least
from tui_transformer.analysis.metrics import AnyMetric, metric_from
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.changes import Set
from tui_transformer.engine.gradient import Gradients, Start, backward_from, gradients_from
from tui_transformer.engine.targets import START
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

POINTS = 64
CROWDING = 3
"""α = t to this power."""


@dataclass(frozen=True, eq=False)
class InputAttribution:
    """The share of every row of a step in a number.

    `cells`: rows × columns; `value`: the number, f(x); `baseline`: f(x′) of integrated gradients, None of gradient ×
    input.
    """

    step: str
    cells: Host
    value: float
    baseline: float | None = None

    @property
    def rows(self) -> Host:
        """Of every row: the sum of its cells."""
        return np.asarray(self.cells.sum(axis=-1))

    @property
    def remainder(self) -> float | None:
        """f(x) − f(x′) − Σ; None where there is no baseline."""
        return None if self.baseline is None else self.value - self.baseline - float(self.cells.sum())


def start_of(
    trace: Trace, metric: AnyMetric, positions: Positions | None = None, item: int = 0, before: Trace | None = None
) -> tuple[float, Start]:
    """A metric, and where the way back from it begins: at the logits. `before` is what a distance is from."""
    own = metric_from(metric)
    slope = own.slope(trace, before or trace, positions, item)
    value = own.measure(trace, before or trace, positions, item)
    return value, Start(trace.program.logits, slope, own.formula, own.said(trace.target_word))


def gradients_of(
    trace: Trace, metric: AnyMetric, positions: Positions | None = None, item: int | None = None
) -> Gradients:
    """The gradient of a metric at every step and weight.

    Args:
        trace: Its forward pass; the divergence is from this trace itself, so that its gradient is 0.
        metric: A logit, a difference of two, ln p, the loss.
        positions: Where the answer is read, by default at the last token that is no padding; several add up.
        item: Which sentence of a batch.

    Raises:
        InputError: The metric cannot be measured.
    """
    item = item_of(trace, item)
    value, start = start_of(trace, metric, positions, item)
    return gradients_from(trace, value, start, item)


def gradients_of_cell(trace: Trace, name: str, index: tuple[int, ...], item: int | None = None) -> Gradients:
    """The gradient of one cell of any step.

    Raises:
        InputError: There is no such cell, or it depends on no weight.
    """
    own, item = trace.program.step(name).name, item_of(trace, item)
    slope, index = np.zeros(trace.program.shape(own)), tuple(map(operator.index, index))
    if len(index) != slope.ndim or not all(0 <= i < size for i, size in zip(index, slope.shape, strict=True)):
        raise InputError(f"{own} has no cell {list(index)}")
    slope[index] = 1.0
    value = float(trace[own][(item, *index) if trace[own].ndim > slope.ndim else index])
    return gradients_from(trace, value, Start(own, slope, "1 at the cell", f"{own}{list(index)}"), item)


def gradient_times_input(
    trace: Trace,
    metric: AnyMetric,
    positions: Positions | None = None,
    step: str = START,
    *,
    report: Report = lambda _: None,
) -> InputAttribution:
    """The products x ∂f/∂x of every cell of the input, of one sentence.

    Args:
        trace: The sentence.
        metric: f.
        positions: Where it is read; by default at the last token that is no padding.
        step: The input x: a step with a row for each token.
        report: Told what is done, as often as the work may end; what it raises ends it.

    Raises:
        InputError: The metric cannot be measured, or does not depend on the step.
    """
    own, x = _input(trace, step)
    value, slope = _slope(trace, metric, positions, trace, own, partial(report, "the gradient"))
    return InputAttribution(own, x * slope, value)


@np.errstate(all="ignore")
def integrated_gradients(
    trace: Trace,
    metric: AnyMetric,
    positions: Positions | None = None,
    step: str = START,
    *,
    baseline: float | Host = 0.0,
    points: int = POINTS,
    report: Report = lambda _: None,
) -> InputAttribution:
    """(x − x′) × the mean gradient between a baseline and the input, of one sentence.

    Args:
        trace: The sentence.
        metric: f.
        positions: Where it is read; by default at the last token that is no padding.
        step: The input x: a step with a row for each token.
        baseline: x′: a number, a vector for every row, or rows × columns.
        points: At how many places between the two the gradient is taken.
        report: Told how far the work is; what it raises ends it.

    Raises:
        InputError: As `gradient_times_input`, or the baseline does not fit.
    """
    at_least(1, points=points)
    own, x = _input(trace, step)
    try:
        start = np.broadcast_to(np.asarray(baseline, np.float64), x.shape)
    except ValueError as error:
        raise InputError(f"a baseline of {np.shape(baseline)} does not fit the {x.shape} of {own}") from error

    def at(share: float) -> Trace:
        return trace.edited([Set(own, start + share * (x - start))])

    places, weights = np.polynomial.legendre.leggauss(points)
    total = np.zeros(x.shape)
    for number, (place, weight) in enumerate(zip((places + 1) / 2, weights / 2, strict=True), 1):
        said = f"{number} of {points} points"
        report(said)
        _, slope = _slope(at(place**CROWDING), metric, positions, trace, own, partial(report, said))
        total += weight * CROWDING * place ** (CROWDING - 1) * slope
    value, base = (metric_from(metric).measure(each, trace, positions) for each in (trace, at(0.0)))
    return InputAttribution(own, (x - start) * total, value, base)


def mean_of_tokens(trace: Trace, step: str = START) -> Host:
    """The mean of the rows of a step, as a baseline: of one sentence, without its padding."""
    own, rows = _input(trace, step)
    return np.asarray(rows[real_tokens(trace, trace.program.axes(own)[0])].mean(axis=0))


def _input(trace: Trace, step: str) -> tuple[str, Host]:
    own = trace.program.step(step)
    if len(own.shape) != 2 or own.op.integer or trace.batch > 1:
        raise InputError(f"{own.name} is no input of one sentence with a row for each token")
    return own.name, in_float64(trace, own.name)


def _slope(
    trace: Trace, metric: AnyMetric, positions: Positions | None, before: Trace, step: str, report: Callable[[], None]
) -> tuple[float, Host]:
    """A metric, and its gradient by a step; `report` is called with every step there and back."""
    if trace.program.logits:
        trace.prepare(trace.program.logits, lambda _: report())
    (value, start), slopes = start_of(trace, metric, positions, before=before), list[Host]()

    def visit(name: str, gradient: Array) -> None:
        report()
        if name == step:
            slopes.append(np.array(trace.backend.to_host(gradient)[0], np.float64))

    backward_from(trace, start, visit, before=lambda _: report())
    if not slopes:
        raise InputError(f"{start.description} does not depend on {step}, or that depends on no weight")
    return value, slopes[0]
