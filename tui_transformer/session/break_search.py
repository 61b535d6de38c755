"""Searches about a break: the smallest change that turns the answer, and a sentence on which the break matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.effects import effects
from tui_transformer.diagnosis.breaking import Broken, Slider, rounded
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import KINDS, Target, every
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.answer_summary import answer_position, answers
from tui_transformer.session.break_effect import AnswerChange, Outcome, outcome, trial
from tui_transformer.session.other_sentences import Pair, examples, tried
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.text.display import visible

MATTERS = 0.05
"""On a sentence where the answer moves as far, a break matters, though the word stays."""

MOST_HEADS = 64
"""Heads that are tried for the one that matters most."""

MOST_HALVINGS, MOST_DIGITS = 20, 6

SMALL, MOST_KEPT = 50_000_000, 1 << 24
"""Operations of a sentence whose values are kept, and bytes of all that are."""

CLOSE = 0.02
"""A shorter number is taken where it is no further from that which was found, as a share of it."""


# The head that is broken first


def telling_head(session: Session, report: Report) -> str:
    """The head that the answer hangs on most, as `encoder.0.self_attention:2`; "" where there are none.

    Where there are very many it is the first head of the last attention.
    """
    program = session.trace.program
    heads = heads_of(program)
    if not heads:
        return ""
    best = heads[-1] if len(heads) > MOST_HEADS else None
    if best is None:
        where = answer_position(session) if answers(session) else None
        found = effects(session.trace, heads, positions=where, before=lambda step: report(str(step)))
        best = max(found, key=lambda pair: pair[1].size)[0]
    return f"{best.place}:{best.number}"


def heads_of(program: Program) -> tuple[Target, ...]:
    """The heads of a program."""
    return every(program) if KINDS["head"].places(program) else ()


# The smallest change that turns the answer


@dataclass(frozen=True, eq=False)
class Turn:
    """The number nearest to the right one with which the answer is another word.

    Attributes:
        number: None where the answer stays with every number that was tried.
        was: The answer with the right number.
        becomes: The answer with this one, worked out with it; that with the right one where there is none.
        tried: How many numbers were tried before the last were halved.
        slider: The numbers.
    """

    number: float | None
    was: Outcome
    becomes: Outcome
    tried: int
    slider: Slider

    def said(self, made: Broken) -> str:
        """`scores ÷ √d_k × 0.31 turns the answer from question to statement`."""
        if self.was.label is None:
            return "the answer is a vector: there is no word that turns"
        if self.number is None:
            low, high = (spoken(each, 4) for each in (self.slider.low, self.slider.high))
            return f"nothing from {low} to {high} turns the answer: {self.was.name} with all {self.tried} numbers tried"
        what = replace(made, number=self.number).title
        return f"{what} turns the answer from {self.was.name} to {self.becomes.name}: the smallest change that does"


def turning(session: Session, made: Broken, slider: Slider, report: Report) -> Turn:
    """The smallest change of the number of a break that turns the answer: all stops are tried, the nearest first.

    Between the last that keeps it and the first that turns it the number is halved, and then written as short as turns
    the answer still. `report` may raise to end it.
    """
    was = outcome(session, session.trace, report)
    kept = dict.fromkeys((False, True), slider.right)
    found: list[tuple[float, Outcome]] = []
    count = 0

    def answer_at(number: float) -> Outcome:
        report(f"the answer with {spoken(number, 4)}")
        return outcome(session, trial(session, replace(made, number=rounded(number))))

    stops = sorted(slider.stops, key=slider.distance) if was.label is not None else []
    for stop in (each for each in stops if slider.distance(each) > 0):
        up = stop > slider.right
        if up not in kept:
            continue  # this way it is turned already, and nearer
        count += 1
        becomes = answer_at(stop)
        if becomes.best != was.best:
            found.append(_narrowed(slider, kept.pop(up), stop, was, becomes, answer_at))
        else:
            kept[up] = stop
        if found and min(map(slider.distance, kept.values()), default=math.inf) >= slider.distance(found[0][0]):
            break
    number, becomes = min(found, key=lambda each: slider.distance(each[0]), default=(None, was))
    return Turn(number, was, becomes, count, slider)


def _narrowed(
    slider: Slider, keeps: float, turns: float, was: Outcome, becomes: Outcome, answer_at: Callable[[float], Outcome]
) -> tuple[float, Outcome]:
    """The shortest number near the place where the answer turns, on the side where it is turned."""
    for _ in range(MOST_HALVINGS):
        middle = rounded(slider.between(keeps, turns))
        if middle in (keeps, turns) or abs(turns - keeps) < 1e-4 * max(abs(turns), abs(keeps)):
            break
        between = answer_at(middle)
        if between.best == was.best:
            keeps = middle
        else:
            turns, becomes = middle, between
    for digits in range(1, MOST_DIGITS):
        short = _outward(turns, digits, up=turns > slider.right)
        if slider.low <= short <= slider.high and abs(short - turns) <= CLOSE * max(abs(turns), abs(slider.right)):
            shorter = answer_at(short)
            if shorter.best != was.best:
                return short, shorter
    return turns, becomes


def _outward(number: float, digits: int, *, up: bool) -> float:
    """A number with so many digits, rounded away from the right one."""
    if not number:
        return 0.0
    unit = 10.0 ** (int(np.floor(np.log10(abs(number)))) + 1 - digits)
    return rounded(float((np.ceil if up else np.floor)(number / unit - (1e-9 if up else -1e-9)) * unit))


# A sentence on which a break matters


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """What was found where a break was tried on other sentences.

    Attributes:
        pair: The sentence on which it matters; None where none was found.
        change: The answer there, and with the break.
        tried: How many sentences were tried.
    """

    pair: Pair | None = None
    change: AnswerChange | None = None
    tried: int = 0

    @property
    def said(self) -> str:
        """`matters on “did the cat sleep”: question 88 % → statement 60 %`."""
        if self.pair is None or self.change is None:
            many = f"of {self.tried} tried" if self.tried else "as there is none to try"
            return f"no sentence found on which it matters, {many}"
        beside = f" → {visible(self.pair[1])}" if self.pair[1] else ""
        return f"matters on “{visible(self.pair[0])}{beside}”: {self.change.said}"


@dataclass(eq=False)
class Examples:
    """Other sentences, each with its answer; of a small model both are kept for all breaks."""

    session: Session
    _kept: dict[Pair, Session] = field(default_factory=dict, repr=False)

    @cached_property
    def _forward(self) -> Session:
        return replace(self.session, overlay=NOTHING, targets=None)

    @cached_property
    def _pairs(self) -> tuple[Pair, ...]:
        return tuple(examples(self._forward)) if self._forward.model.config.vocab_size else ()

    def search(self, made: Broken, report: Report) -> Elsewhere:
        """The first sentence on which a break turns the answer; else that on which it moves most, if it matters."""
        best, count, largest = Elsewhere(), 0, MATTERS
        for place, pair in enumerate(self._pairs):
            report(f"sentence {place + 1} of {len(self._pairs)}")
            other = self._session(pair)
            if other is None or not made.steps(other.base):
                continue
            count += 1
            change = AnswerChange(outcome(other, other.trace), outcome(other, trial(other, made)))
            if change.turns:
                return Elsewhere(pair, change, count)
            if change.size >= largest:
                largest, best = change.size, Elsewhere(pair, change)
        return replace(best, tried=count)

    def _session(self, pair: Pair) -> Session | None:
        if pair in self._kept:
            return self._kept[pair]
        other = tried(self._forward, pair)
        if other is not None and sum(map(other.base.program.flops, other.base.program.steps)) <= SMALL:
            bytes_with_it = sum(each.base.plan.bytes for each in (other, *self._kept.values()))
            if bytes_with_it <= MOST_KEPT:
                self._kept[pair] = other
        return other
