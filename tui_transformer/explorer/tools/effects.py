"""A search for effects: what is ablated, each alone, what is known of it, finding the rest, and how it is written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from weakref import WeakKeyDictionary

from rich.text import Text

from tui_transformer.analysis.effects import Effect, answer_step, by_size, effect, effects
from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import KINDS, Target, every
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.records import dataclass, field
from tui_transformer.session.answer_summary import (
    Guess,
    guesses,
    measure_of,
    metric_of,
    metric_said,
    on_targets,
    percent,
    signed_percent,
)
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure
from tui_transformer.text.display import cells, fit
from tui_transformer.views.numbers import BarScale

NUMBER, NAME, LEAST_BAR = 11, 34, 4
"""Columns of a number, of a name at most, and of a bar at least."""

OF_SHARES, OF_NATS, OF_LOGITS = BarScale(1.0), BarScale(1.0, "nat", signed=True), BarScale(5.0, "logits", signed=True)
"""What bars of effects stand for, in every table: shares and relative changes, changes of ln p, changes of a logit."""

PAUSE = 0.05
"""Seconds after which what was found so far is shown."""

Effects = Sequence[tuple[Target, Effect]]


@dataclass(frozen=True)
class Scope:
    """Which targets a table lists: all of a kind, or those of one place."""

    kind: str
    place: str | None = None

    def targets(self, program: Program) -> tuple[Target, ...]:
        return every(program, f"{self.kind}:{self.place}" if self.place else self.kind)

    @property
    def title(self) -> str:
        """`heads`, `positions entering encoder.1`."""
        word = "entering" if self.kind == "position" else "of"
        return f"{self.kind}s {word} {self.place}" if self.place else f"{self.kind}s"


def places(program: Program, kind: str) -> Sequence[str | None]:
    """The places among which one is chosen; one None where all are listed together, nothing where there are none."""
    steps_of = KINDS[kind].places(program)
    if kind not in ("position", "neuron", "feature"):  # of these only those of one place are listed
        return (None,) if steps_of else ()
    backwards = reversed(list(steps_of.items()))
    first = {tuple(program.step(name).name for name in steps): place for place, steps in backwards}
    return tuple(place for place in steps_of if place in first.values())


def scopes(program: Program, stop: str = "") -> list[Scope]:
    """One place of every kind that the model has: the first; of neurons those of the layer of a stop."""
    layer = program.by_name[stop].layer if stop in program.by_name else None
    found = []
    for kind in KINDS:
        if among := places(program, kind):
            here = (place for place in among if place and layer is not None and place.startswith(f"{layer}."))
            found.append(Scope(kind, next(here, among[0]) if kind == "neuron" else among[0]))
    return found


@dataclass(eq=False)
class Known:
    """Effects so far, and the most likely words before, where the answer is at one position."""

    effects: dict[Target, Effect] = field(default_factory=dict)
    before: tuple[Guess, ...] = ()


_KNOWN: WeakKeyDictionary[Trace, dict[tuple[object, ...], Known]] = WeakKeyDictionary()
"""Effects of each trace, which stay as long as it does."""


@dataclass(frozen=True, eq=False)
class Search:
    """Targets, each ablated alone.

    Attributes:
        mean: Set to the mean over the positions instead of 0.
        positions: Where the answer is read.
    """

    session: Session
    scope: Scope
    mean: bool
    positions: range

    @property
    def measure(self) -> Measure | None:
        return measure_of(self.session)

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        return self.scope.targets(self.program)

    @property
    def program(self) -> Program:
        """The steps of what is ablated, with the edits that there are."""
        return self.session.trace.program

    @property
    def known(self) -> Known:
        """Known effects of these targets, and of others that were set to the same and measured by the same."""
        way = self.mean, self.positions, self.measure, self.session.targets
        return _KNOWN.setdefault(self.session.trace, {}).setdefault(way, Known())

    @property
    def missing(self) -> list[Target]:
        return [target for target in self.targets if target not in self.known.effects]

    @property
    def in_words(self) -> bool:
        return answer_step(self.session.trace) == self.program.logits

    @property
    def scale(self) -> BarScale:
        """What bars stand for: the change of ln p or of the metric, or how far the last step changes of itself."""
        if not self.program.logits:
            return OF_SHARES
        return OF_NATS if self.measure is None else scale_of(self.measure.name)

    def order(self, *, reverse: bool) -> list[int]:
        """The targets whose effect is known, the largest first, or last."""
        effects = self.known.effects
        known = [index for index, target in enumerate(self.targets) if target in effects]
        known.sort(key=lambda index: by_size(effects[self.targets[index]]))
        return known[::-1] if reverse else known

    def find(self, hand_over: Callable[[Effects], object], task: Task) -> Effects:
        """On the worker: find what is missing, hand it over every now and then, and give the rest."""
        missing, new, shown = self.missing, list[tuple[Target, Effect]](), time.monotonic()
        left, trace = len(missing), self.session.trace

        def report(_: object) -> None:
            task.report(self.progress(left))

        if self.in_words and len(self.positions) == 1 and not self.known.before:
            trace.compute((self.program.logits,), before=report)
            self.known.before = guesses(self.session, self.positions.start, 1)
        metric, where = metric_of(self.session), self.positions
        instead = [target for target in missing if self._replaces(target)]
        others = [target for target in missing if target not in instead]
        kept = ((each, self.session.with_edits(*each.edits(self.program, mean=self.mean)).trace) for each in instead)
        alone = ((each, effect(trace, changed, where, metric=metric)) for each, changed in kept)
        found = effects(trace, others, mean=self.mean, positions=where, metric=metric, before=report)
        for pair in chain(found, alone):
            new.append(pair)
            left -= 1
            if time.monotonic() - shown > PAUSE:
                hand_over(new)
                new, shown = [], time.monotonic()
            report(pair)  # several come from one pass, without a step between them
        return new

    def _replaces(self, target: Target) -> bool:
        """Whether its mean takes the place of edits of the same cells: it is that of what was before those."""
        edits, base = self.session.edits, self.session.base
        if not self.mean or not edits:
            return False
        own, there = (
            {(each.name, each.region) for each in (edit.placed(base.program, base.givens) for edit in some)}
            for some in (target.edits(self.program, mean=True), edits)
        )
        return not own.isdisjoint(there)

    # In words

    def title(self, *, reverse: bool) -> str:
        order = "smallest effect first" if reverse else "largest effect first"
        set_to = "set to its mean over the positions" if self.mean else "set to 0"
        return f"Ablate · {self.scope.title} · each alone {set_to} · {order}"

    @property
    def where(self) -> str:
        """Where the answer is read, and what it is, or the metric without an ablation."""
        first, single = self.positions.start, len(self.positions) == 1
        if not self.in_words:
            return f"change of {answer_step(self.session.trace)}"
        at = position_text(self.session, first) if single else f"positions {first} to {self.positions.stop - 1}"
        if self.measure is not None:
            known = next(iter(self.known.effects.values()), None)
            metric = metric_said(self.session)
            if known is not None and known.value is not None:
                metric += f" {number(known.value - (known.change or 0.0))} as it is"
            return metric if on_targets(self.measure) else f"{metric} at {at}"
        likely = "".join(f": {guess}" for guess in self.known.before[:1])
        return f"answer at {at}{likely}" if single else f"answers at {at}"

    def progress(self, left: int) -> str:
        return f"{len(self.targets) - left:,} of {len(self.targets):,} {self.scope.kind}s"

    def change(self, effect: Effect) -> str:
        if effect.value is not None and effect.change is not None:
            was = number(effect.value - effect.change)
            return f"{metric_said(self.session)} {was} → {number(effect.value)}   change {signed(effect.change, 4)}"
        if effect.change is None or effect.divergence is None:
            return f"relative change {number(effect.size)}"
        text = f"change of ln p {signed(effect.change, 4)}   divergence {effect.divergence:.4g} nats"
        likely = next(iter(self.known.before), None)
        if likely is None:
            return text
        after = percent(min(likely.share * (1 + share(effect.change)), 1.0))
        return f"p({likely.name}) {percent(likely.share)} → {after}   {text}"

    # In lines

    @cached_property
    def columns(self) -> Sequence[tuple[str, Callable[[Effect], str]]]:
        """The measures that the model's kind of answer has, with their titles."""
        if not self.program.logits:
            return (("relative", lambda effect: number(effect.size)),)
        if self.measure is not None:
            return (
                ("metric", lambda effect: number(effect.value or 0.0)),
                ("change", lambda effect: number(effect.change or 0.0, "+")),
            )
        return (
            ("Δ ln p", lambda effect: number(effect.change or 0.0, "+")),
            ("KL, nats", lambda effect: number(effect.size)),
            ("Δp ÷ p", lambda effect: signed_percent(share(effect.change or 0.0))),
        )[: 3 if len(self.positions) == 1 else 2]

    def name(self, target: Target) -> str:
        """`layer 0 · head 3`, with the stack where there are two; a position by its token."""
        if target.kind == "position":
            axis = self.program.axes(KINDS["position"].steps(self.program, target.place)[0])[-2]
            label = self.session.labels.of(axis)(target.number or 0)
            return f"{target.number} {label}" if label != str(target.number) else f"position {target.number}"
        if target.kind in ("neuron", "feature"):
            return f"{target.kind} {target.number}"
        stack, _, rest = target.place.partition(".")
        layer, _, sublayer = rest.partition(".")
        several = len({each.place.split(".")[0] for each in self.targets}) > 1
        parts = [f"{stack} layer {layer}" if several else f"layer {layer}"]
        parts += ["cross"] if sublayer.startswith("cross") else []
        parts += [] if target.number is None else [f"head {target.number}"]
        return " · ".join(parts)

    @cached_property
    def _name_width(self) -> int:
        return min(max(map(cells, map(self.name, self.targets)), default=0), NAME)

    def header(self, width: int) -> str:
        titles = "".join(f"{title:>{NUMBER}}" for title, _ in self.columns)
        bar = f"  {self.scale.says}" if self._bar_width(width) >= LEAST_BAR else ""
        return fit(f" {fit('ablated', self._name_width)}{titles}{bar}", width)

    def line(self, target: Target, width: int, color: str) -> Text:
        """One target: its name, its numbers, and a bar of the change."""
        effect, room = self.known.effects[target], self._bar_width(width)
        values = "".join(f"{written(effect):>{NUMBER}}" for _, written in self.columns)
        text = Text(f" {fit(self.name(target), self._name_width)}{values}", no_wrap=True)
        if room >= LEAST_BAR:
            change = effect.size if effect.change is None else effect.change
            text.append("  ").append(self.scale.bar(change, room), color)
        return text

    def _bar_width(self, width: int) -> int:
        return width - self._name_width - NUMBER * len(self.columns) - 5


def position_text(session: Session, position: int) -> str:
    """`position 7, !`."""
    axis = session.trace.program.axes(answer_step(session.trace))[-2]
    label = session.labels.of(axis)(position)
    return f"position {position}" + (f", {label}" if label != str(position) else "")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, which is one character wide."""
    return "+?" if math.isnan(value) else f"{'+' * (value >= 0)}{spoken(value, digits)}"


def share(change: float) -> float:
    """A change of ln p as the relative change of p."""
    return math.expm1(min(change, 700.0))  # more is no number


def scale_of(metric: str) -> BarScale:
    """What bars of changes of a metric stand for."""
    return OF_LOGITS if metric in ("logit", "difference") else OF_NATS


def number(value: float, sign: str = "") -> str:
    """Four decimals, or one and a power of ten; `sign` "+" for a sign that is always there."""
    if not math.isfinite(value):
        return "?" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if abs(value) >= 0.0001 or not value:
        return minus(f"{value:{sign}.4f}")
    return f"{sign * (value > 0)}{spoken(value, 2)}"
