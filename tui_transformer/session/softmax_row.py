"""The softmax as it is written, e^s ÷ Σ e^s, beside the one that is computed, of the row that is looked at, in words.

With e^(s − max) ÷ Σ e^(s − max) both are the same number as long as no exponential overflows: in float32 e^s is
infinite above 88.72, and ∞ ÷ ∞ is no number; where every e^s is 0, below −103.97, nor is 0 ÷ 0 (Goodfellow et al. 2016,
§4.1).
"""

from __future__ import annotations

import math

import numpy as np

from tui_transformer.engine.axis import Axis, Region
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax, SoftmaxWithSink
from tui_transformer.engine.program import Step
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session

NONE = "there is no softmax here: go to the weights of an attention, or to the probabilities"
SINK = "the softmax here has a sink beside the scores: only one of scores alone is shown, as that of the probabilities"
NOT_BROKEN = "neither softmax gives shares here: it takes finite scores, and no infinite one"

MOST_TOLD = 12
"""Scores of a row that are told, the largest."""

TRIES = 100
"""Numbers that are tried from the limit of the largest score on: rounding moves it by a few."""


@dataclass(frozen=True, eq=False)
class Softmaxes:
    """A row of scores and both ways to its shares, all in the precision of the scores.

    Naive: `powers` e^s, and `naive` e^s ÷ Σ e^s. Safe: `shifted` s − max, `safe_powers` e^(s − max), and `safe`, these
    ÷ their sum.
    """

    scores: Host
    powers: Host
    naive: Host
    shifted: Host
    safe_powers: Host
    safe: Host

    @property
    def breaks(self) -> bool:
        """True if the naive shares are no numbers where the safe ones are."""
        return bool((np.isnan(self.naive) & ~np.isnan(self.safe)).any())

    @property
    def apart(self) -> float:
        """The largest difference of the two."""
        return float(np.abs(self.naive - self.safe).max())


@np.errstate(all="ignore")
def softmaxes(scores: Host, raised: float = 0.0) -> Softmaxes:
    """Both softmaxes of a row, all of whose scores are raised by a number."""
    scores = scores + scores.dtype.type(raised)
    powers = np.exp(scores)
    shifted = scores - scores.max()
    safe = np.exp(shifted)
    return Softmaxes(scores, powers, powers / powers.sum(), shifted, safe, safe / safe.sum())


def breaking_point(scores: Host) -> float | None:
    """The smallest whole number by which scores have to be raised for the naive softmax to break.

    Where one more is less than a score can hold, it is that number's precision; nothing where no row breaks: without a
    finite score, and beside an infinite one, the safe shares are no numbers either.
    """
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return None
    limit = math.log(float(np.finfo(scores.dtype).max))
    first = float(math.ceil(limit - float(finite.max())))
    step = max(1.0, float(np.abs(finite).max()) * float(np.finfo(scores.dtype).eps))
    tried = (first + each * step for each in range(TRIES))
    return next((raised for raised in tried if softmaxes(scores, raised).breaks), None)


# The row that is looked at


@dataclass(frozen=True)
class ScoresRow:
    """A row of scores that goes into a softmax.

    Attributes:
        step: The softmax.
        region: The row, in the step that it reads.
        columns: The axis of the row.
        where: The step and the row, in words.
    """

    step: Step
    region: Region
    columns: Axis
    where: str

    def scores(self, session: Session) -> Host:
        """The numbers, computed."""
        return np.array(session.trace.window(self.step.inputs[0], self.region)).reshape(-1)


def scores_row(session: Session, position: Position) -> ScoresRow | None:
    """The row of the softmax that is looked at, or of that of the same attention; None where there is none."""
    program, place = session.trace.program, position.place
    own, scope = program.aliases.get(position.stop, position.stop), position.stop.rpartition(".")[0]
    steps = [step for step in program.steps if type(step.op) is Softmax]
    near = next((step for step in steps if step.name.rpartition(".")[0] == scope), None)
    step = next((step for step in steps if step.name == own), near)
    if step is None:
        return None
    *before, columns = program.axes(step.inputs[0])
    heads, rows = before[:-1], before[-1:]  # the labels of a sentence have no rows
    at = [min(place.row, axis.size - 1) for axis in rows]
    numbers = [min(place.head, axis.size - 1) for axis in heads]
    head = "".join(f" · head {number} of {axis.size}" for number, axis in zip(numbers, heads, strict=True))
    row = "".join(f" · row {number} {session.labels.of(axis)(number)}" for number, axis in zip(at, rows, strict=True))
    where = f"{step.name}{head}{row}"
    region = (*(range(each, each + 1) for each in (*numbers, *at)), range(columns.size))
    return ScoresRow(step, region, columns, where)


def lacking(session: Session, position: Position) -> str:
    """Why there is no such row."""
    program, scope = session.trace.program, position.stop.rpartition(".")[0]
    sinks = (step.name.rpartition(".")[0] for step in program.steps if isinstance(step.op, SoftmaxWithSink))
    return SINK if scope in sinks else NONE


def largest(scores: Host, most: int) -> Host:
    """The columns of the largest scores, in their order."""
    best = np.argsort(-np.nan_to_num(scores, neginf=-np.inf), kind="stable")[:most]
    return np.sort(best)


def lesson(computed: Softmaxes, raised: float) -> str:
    """What is to be learned of both, in words."""
    if computed.breaks:
        what = "overflows: ∞ ÷ ∞" if np.isinf(computed.powers).any() else "is 0 everywhere: 0 ÷ 0"
        return f"The naive softmax is broken: e^s {what} is no number. The safe one gives the same shares as before."
    if not np.isfinite(computed.safe).all():
        return "Neither gives shares: both take finite scores, and no infinite one. A row that is all masked stays 0."
    more = "" if raised else " Raising all scores by one number changes neither, until e^s overflows."
    return f"Both are the same to {computed.apart:.1e}.{more}"


def describe(session: Session, position: Position, how: str) -> str:
    """Both softmaxes of the row as sentences; `how`: "break", or a number that is added to all scores first.

    Raises:
        InputError: There is no softmax here, or it is asked for otherwise.
    """
    row = scores_row(session, position)
    if row is None:
        raise InputError(lacking(session, position))
    scores = row.scores(session)
    raised = _raised(scores, how)
    computed = softmaxes(scores, raised)
    columns = {
        "s": computed.scores,
        "e^s": computed.powers,
        "naive": computed.naive,
        "s − max": computed.shifted,
        "e^(s − max)": computed.safe_powers,
        "safe": computed.safe,
    }
    label, chosen = session.labels.of(row.columns), largest(scores, MOST_TOLD)
    lines = []
    for i in chosen:
        numbers = ", ".join(f"{name} {spoken(float(each[i]))}" for name, each in columns.items())
        lines.append(f"{label(int(i)) or i}: {numbers}")
    left = f"; {scores.size - chosen.size:,} smaller ones are left out" if scores.size > chosen.size else ""
    added = f", all scores {'−' if raised < 0 else '+'} {abs(raised):g}" if raised else ""
    with np.errstate(all="ignore"):
        totals = {name: float(each.sum()) for name, each in columns.items() if name not in ("s", "s − max")}
    sums = ", ".join(f"Σ {name} {spoken(total)}" for name, total in totals.items())
    told = "; ".join(lines)
    return f"Softmax of {row.where}, in {scores.dtype}{added}: {told}{left}; {sums}. {lesson(computed, raised)}"


def _raised(scores: Host, how: str) -> float:
    if how != "break":
        try:
            raised = float(how or 0)
        except ValueError:
            raised = np.nan
        if not np.isfinite(raised):
            raise InputError(f"softmax {how[:20]!r}: write break, or a number that is added to all scores")
        return raised
    point = breaking_point(scores)
    if point is None:
        raise InputError(NOT_BROKEN)
    return point
