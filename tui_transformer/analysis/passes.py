"""Experiments on one sentence, several in a pass: what lies before their edits is shared, what follows is a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TypeVar

from tui_transformer.engine.edits import Change
from tui_transformer.engine.trace import Trace

ROWS = 512
"""Rows of a pass at most: from there on a product of matrices takes as long for each row, however many there are."""

What = TypeVar("What")


def in_passes(
    trace: Trace, experiments: Iterable[tuple[What, Sequence[Change]]], item: int = 0, rows: int = ROWS
) -> Iterator[tuple[tuple[What, ...], Trace, range]]:
    """Some experiments at a time, the trace of a pass, and which of its sentences are theirs; nothing is kept of it.

    Neighbours that change the same steps share a pass, where the trace is of one sentence. How many do so depends on
    its length alone, so that the numbers are the same whatever is kept.

    Args:
        trace: The sentence.
        experiments: What each is, and its edits.
        item: Which sentence of a batch is meant.
        rows: How many rows a pass has at most.
    """
    most = _most(trace, rows)
    for names, alike in groupby(experiments, lambda each: frozenset(change.name for change in each[1])):
        size = most if names.isdisjoint(trace.program.weights) else 1
        while some := tuple(islice(alike, size)):
            whats, edits = zip(*some, strict=True)
            if len(some) > 1:
                yield whats, trace.edited_each(edits, budget=0), range(len(some))
            else:
                yield whats, trace.edited(edits[0], budget=0), range(item, item + 1)


def _most(trace: Trace, rows: int) -> int:
    if trace.batch != 1:
        return 1
    return max(1, rows // max(step.shape[-2] for step in trace.program.steps if len(step.axes) > 1))
