"""What gives a number of a trace: the form that metrics have, and functions of the caller as such.

A function is of the logits (`OfLogits`), or of the whole trace (`OfTrace`), which it may read wherever it likes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.axis import Region, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

Positions = range | int
"""Where an answer is read: a position, from 0 or from the end, or several."""

Word = Callable[[int], str]


class Measurable(ABC):
    """What gives a number of a trace."""

    reads_any: ClassVar[bool] = False
    """Whether it may read any step, and not the logits alone."""

    @property
    def formula(self) -> str:
        """How its slope is made, in words."""
        return "by a function of yours"

    @abstractmethod
    def said(self, word: Word = str) -> str:
        """In words: `logit of had less that of by`, `loss on 7 targets`; of a function its name, where it has one."""

    @abstractmethod
    def measure_each(
        self,
        trace: Trace,
        before: Trace,
        positions: Positions | None,
        items: range,
        item: int = 0,
        watch: Watch | None = None,
    ) -> list[float]:
        """The numbers of some sentences of a batch, each beside one sentence (`item`) without edits; as `measure`."""

    @abstractmethod
    def slope(
        self, trace: Trace, before: Trace | None = None, positions: Positions | None = None, item: int | None = None
    ) -> Host:
        """Its gradient by the logits of one sentence: rows × words, float64; errors as of `measure`."""

    def measure(
        self,
        trace: Trace,
        before: Trace | None = None,
        positions: Positions | None = None,
        item: int | None = None,
        watch: Watch | None = None,
    ) -> float:
        """The number of a trace, beside that without its edits.

        Args:
            trace: With edits.
            before: Without them: a distance is from its answer.
            positions: Where the answer is read; by default at the last token that is no padding.
            item: Which sentence of a batch.
            watch: As in `Trace.compute`.

        Raises:
            InputError: The model has no logits, or no such token or position, or not as many positions as there are
                targets.
        """
        item = item_of(trace, item)
        return self.measure_each(trace, before or trace, positions, range(item, item + 1), item, watch)[0]


@dataclass(frozen=True)
class OfLogits(Measurable):
    """A number of your own of the logits at the positions that are asked for: rows × words, float64, of one sentence.

    By default that is one row, of the last token that is no padding. `by_logits` gives its gradient by these logits, an
    array of their shape; without it there are no gradients of the number.
    """

    number: Callable[[Host], float]
    by_logits: Callable[[Host], Host] | None = None

    def said(self, word: Word = str) -> str:
        return _name_of(self.number, "the logits")

    def measure_each(
        self,
        trace: Trace,
        before: Trace,
        positions: Positions | None,
        items: range,
        item: int = 0,
        watch: Watch | None = None,
    ) -> list[float]:
        name, region = logits_of(trace.program), answer_region(trace, positions, item)
        parts = [part[items.start : items.stop] for _, part in trace.blocks(name, region, None, watch)]
        return [_one_number(self.number(rows.astype(np.float64))) for rows in np.concatenate(parts, axis=1)]

    def slope(
        self, trace: Trace, before: Trace | None = None, positions: Positions | None = None, item: int | None = None
    ) -> Host:
        if self.by_logits is None:
            raise InputError("nothing says how this number moves with the logits: give OfLogits its gradient by them")
        item = item_of(trace, item)
        name, region = logits_of(trace.program), answer_region(trace, positions, item)
        rows = trace.window(name, region, item).astype(np.float64)
        own, slope = np.asarray(self.by_logits(rows), np.float64), np.zeros(trace.program.shape(name))
        if own.shape != rows.shape:
            raise UsageError(f"the gradient is {shape_text(own.shape)}, and the logits are {shape_text(rows.shape)}")
        slope[region[0].start : region[0].stop] = own
        return slope


@dataclass(frozen=True)
class OfTrace(Measurable):
    """A number of your own of the trace of one sentence, read wherever the function likes, whatever is asked for.

    Sentences that are computed together are given to it one by one, as `Trace.sentence` has them. It has no gradients.
    """

    reads_any: ClassVar[bool] = True
    number: Callable[[Trace], float]

    def said(self, word: Word = str) -> str:
        return _name_of(self.number, "the trace")

    def measure_each(
        self,
        trace: Trace,
        before: Trace,
        positions: Positions | None,
        items: range,
        item: int = 0,
        watch: Watch | None = None,
    ) -> list[float]:
        trace.compute(before=watch)
        return [_one_number(self.number(trace.sentence(each))) for each in items]

    def slope(
        self, trace: Trace, before: Trace | None = None, positions: Positions | None = None, item: int | None = None
    ) -> Host:
        raise InputError("a function of a trace has no gradient: use a Metric, or OfLogits with its gradient")


def _one_number(given: object) -> float:
    value = np.asarray(given)
    if value.size != 1 or value.dtype.kind not in "fiub":
        what = f"{shape_text(value.shape)} of them" if value.dtype.kind in "fiub" else type(given).__name__
        raise UsageError(f"a metric is one number, and this function gave {what}")
    return float(value.item())


def _name_of(function: Callable[..., object], of: str) -> str:
    name = getattr(function, "__name__", "<")
    return f"a function of {of}" if name.startswith("<") else name


# Where an answer is read


def logits_of(program: Program, reads: str = "metrics are of these") -> str:
    """The step of the logits; InputError where the model has none of words, which says who `reads` them."""
    if not program.logits:
        raise InputError(f"the model has no logits of words: {reads}")
    return program.logits


def answer_region(trace: Trace, positions: Positions | None, item: int = 0) -> Region:
    """Rows and columns of the logits that are read; by default of the last token that is no padding."""
    length, words = trace.program.shape(logits_of(trace.program))
    return positions_in(length, last_position(trace, item) if positions is None else positions), range(words)


def last_position(trace: Trace, item: int = 0) -> int:
    """The last token of a sentence that is no padding, among those whose logits there are."""
    return int(np.flatnonzero(real_tokens(trace, trace.program.axes(trace.program.logits)[-2], item))[-1])


def at_least(least: int, **given: int) -> None:
    """Raise UsageError for a number that is smaller."""
    for name, number in given.items():
        if number < least:
            raise UsageError(f"{name} is {number}: use {least} or more")


def positions_in(length: int, positions: Positions) -> range:
    """Positions of an answer of so many tokens, counted from 0; InputError where there is no such position."""
    if not isinstance(positions, range | int | np.integer) or getattr(positions, "step", 1) != 1:
        raise UsageError(f"positions are a number, or a range of neighbours as range(2, 5), not {str(positions)[:40]}")
    if isinstance(positions, range):
        first, stop = positions.start, positions.stop
    else:
        first = positions + length if positions < 0 else positions
        stop = first + 1
    if not 0 <= first < stop <= length:
        wrong = positions if isinstance(positions, int) else first if first < 0 else stop - 1
        raise InputError(f"there is no position {wrong}: use 0 to {length - 1}")
    return range(first, stop)
