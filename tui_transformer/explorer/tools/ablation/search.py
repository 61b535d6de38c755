"""A search for effects: what is known of a table of targets, and finding the rest on the worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

from tui_transformer.analysis.effects import Effect, answer_step, effects
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import Target
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation.table import Scope
from tui_transformer.session.answer_summary import Guess, guesses, measure_of, metric_of
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure

Effects = Sequence[tuple[Target, Effect]]


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
        scope: Which targets.
        mean: Set to the mean over the positions instead of 0.
        positions: Where the answer is read.
        pause: Seconds after which what was found so far is handed over.
    """

    session: Session
    scope: Scope
    mean: bool
    positions: range
    pause: float = 0.05

    @property
    def measure(self) -> Measure | None:
        """The metric of the effects; None for the usual."""
        return measure_of(self.session)

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The targets, in the order of the model."""
        return self.scope.targets(self.program)

    @property
    def program(self) -> Program:
        """The steps of what is ablated."""
        return self.trace.program

    @property
    def trace(self) -> Trace:
        """The trace that is ablated, with the edits that there are."""
        return self.session.trace

    @property
    def known(self) -> Known:
        """Known effects of these targets, and of others that were set to the same and measured by the same."""
        way = self.mean, self.positions, self.measure, self.session.targets
        return _KNOWN.setdefault(self.trace, {}).setdefault(way, Known())

    @property
    def missing(self) -> list[Target]:
        """The targets whose effect is not known."""
        return [target for target in self.targets if target not in self.known.effects]

    @property
    def in_words(self) -> bool:
        """Whether the answer is a word."""
        return answer_step(self.trace) == self.trace.program.logits

    @property
    def largest(self) -> float:
        """The largest effect that is known."""
        sizes = (self.known.effects[target].size for target in self.targets if target in self.known.effects)
        return max(filter(math.isfinite, sizes), default=0.0)

    def order(self, *, reverse: bool) -> list[int]:
        """The targets whose effect is known, the largest first, or last."""
        effects = self.known.effects
        known = [index for index, target in enumerate(self.targets) if target in effects]
        known.sort(key=lambda index: -effects[self.targets[index]].size)
        return known[::-1] if reverse else known

    def take(self, effects: Effects) -> None:
        """Remember what was found."""
        self.known.effects.update(effects)

    def find(self, hand_over: Callable[[Effects], object], said: Callable[[int], str], task: Task) -> Effects:
        """On the worker: find what is missing.

        Args:
            hand_over: Takes what was found since the last time, every now and then.
            said: How many are still missing, in words.
            task: Told of every step; may end the work.

        Returns:
            What was not handed over.
        """
        missing, new, shown = self.missing, list[tuple[Target, Effect]](), time.monotonic()
        left = len(missing)

        def report(_: object) -> None:
            task.report(said(left))

        self._find_before(report)
        metric = metric_of(self.session)
        measured = effects(self.trace, missing, mean=self.mean, positions=self.positions, metric=metric, before=report)
        for pair in measured:
            new.append(pair)
            left -= 1
            if time.monotonic() - shown > self.pause:
                hand_over(new)
                new, shown = [], time.monotonic()
            report(pair)  # several come from one pass, without a step between them
        return new

    def _find_before(self, report: Callable[[object], None]) -> None:
        if self.in_words and len(self.positions) == 1 and not self.known.before:
            self.trace.compute((self.trace.program.logits,), before=report)
            self.known.before = guesses(self.session, self.positions.start, 1)
