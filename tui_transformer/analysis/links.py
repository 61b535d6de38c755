"""Links: the largest attention weights, as a list of which token looks at which.

A link is a weight A_ij of one head. Padding and hidden tokens are left out, and so are queries that may look at one key
only: their weight is 1 by necessity. (Vig 2019, "A Multiscale Visualization of Attention", draws the same weights as
lines.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.analysis.attention_rows import Reader, Rows
from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.progress import Report, prepared, silent
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace


@dataclass(frozen=True, order=True)
class Link:
    """A weight, and where it is; links sort by their weight."""

    weight: float
    layer: int = field(compare=False)
    head: int = field(compare=False)
    query: int = field(compare=False)
    key: int = field(compare=False)
    step: str = field(compare=False)


@dataclass(frozen=True)
class Wanted:
    """Which links: how many, of which head (None: all), and whether a token's link to itself counts."""

    top: int
    head: int | None = None
    itself: bool = True


def links(
    trace: Trace, steps: Iterable[Attention], reader: Reader, wanted: Wanted, report: Report = silent
) -> Iterator[tuple[Link, ...]]:
    """The strongest links of the steps that were read so far, the strongest first; once after every step."""
    best: tuple[Link, ...] = ()
    for step in steps:
        best = strongest((*best, *links_of(trace, step, reader, wanted, report)), wanted.top)
        yield best


def strongest(candidates: Iterable[Link], top: int) -> tuple[Link, ...]:
    """The so many strongest, in falling order; equal ones in the order of layer, head, query and key."""
    return tuple(sorted(candidates, key=lambda link: (-link.weight, link.layer, link.head, link.query, link.key))[:top])


def links_of(trace: Trace, step: Attention, reader: Reader, wanted: Wanted, report: Report = silent) -> list[Link]:
    """The strongest links of one step, in no order; of every block that is read, so many as are wanted."""
    counted = reader.counted(prepared(trace, step.name, report), step)
    heads = range(step.heads) if wanted.head is None else range(wanted.head, wanted.head + 1)
    best: list[Link] = []
    for rows in reader.rows(trace, step, [range(step.queries.size)], heads):
        report(f"{step.name} · query {rows.queries[0]:,} of {step.queries.size:,}")
        eligible = rows.visible & (counted[rows.queries] & (rows.seen > 1))[:, None]
        if not wanted.itself:
            eligible &= np.arange(step.keys.size) != rows.own[:, None]
        best += _largest(step, heads, rows, eligible, wanted.top)
    return best


def _largest(step: Attention, heads: range, rows: Rows, eligible: Host, top: int) -> list[Link]:
    """The largest weights of a block, by partial selection."""
    flat = np.where(eligible, rows.weights, -1.0).ravel()
    picked = np.argpartition(flat, -top)[-top:] if top < flat.size else np.arange(flat.size)
    picked = picked[flat[picked] >= 0.0]
    places = zip(*np.unravel_index(picked, rows.weights.shape), strict=True)
    return [
        Link(float(weight), step.layer, heads[int(head)], int(rows.queries[row]), int(key), step.name)
        for weight, (head, row, key) in zip(flat[picked].tolist(), places, strict=True)
    ]
