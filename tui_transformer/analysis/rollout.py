"""Rollout: how far the input tokens reach through all layers, if attention were all that mixes them.

Ã_l = (Ā_l + I) ÷ 2 with Ā_l the mean of the heads of layer l and I for the residual connection, rows made to sum to 1;
R_l = Ã_l R_(l−1), R_(−1) = I (Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", §3). Row i of R_l:
the shares of the input tokens in token i after layer l. Feed-forward, values and norms are not in it. In a causal
model the shares gather at the first tokens, which every later token may look at. Cross attention takes no part.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tui_transformer.analysis.attentions import (
    Attention,
    Reader,
    Report,
    attentions,
    chosen_group,
    in_layer,
    prepared,
    silent,
)
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.generation.sampling import leading
from tui_transformer.records import dataclass, field

KEPT = 256 << 20
"""Bytes of rolled-out layers that are kept, so that going back a layer is quick."""


@dataclass(eq=False)
class Rollout:
    """The rollout of one stack, a layer at a time: `steps` are the self-attention of every layer, in order.

    Nothing may be hidden in the `reader`; of rolled-out layers so many bytes are `kept`.
    """

    trace: Trace
    steps: tuple[Attention, ...]
    reader: Reader
    kept: int = KEPT
    _rolled: dict[int, Host] = field(default_factory=dict, repr=False)

    def after(self, layer: int, report: Report = silent) -> Host:
        """R after a layer: tokens × input tokens, in the model's precision, read-only; every row sums to 1."""
        nearest = max((at for at in self._rolled if at <= layer), default=-1)
        rolled = self._rolled.get(nearest)
        for at in range(nearest + 1, layer + 1):
            mixed = mixing(self.trace, self.steps[at], self.reader, report)
            report(f"rollout of layer {self.steps[at].layer}")
            rolled = mixed if rolled is None else np.matmul(mixed, rolled)
            rolled.flags.writeable = False
            self._rolled[at] = rolled
            for old in sorted(self._rolled)[: -max(1, self.kept // rolled.nbytes)]:
                del self._rolled[old]
        assert rolled is not None, "a layer is 0 or more"  # noqa: S101
        return rolled

    def holds(self, layer: int) -> bool:
        """True if a layer is there already."""
        return layer in self._rolled


def rollout(trace: Trace, layer: int | None = None, *, of: str | None = None, item: int | None = None) -> Host:
    """R after a layer, by default the last: tokens × input tokens; every row sums to 1.

    Args:
        trace: The sentence.
        layer: From 0.
        of: "encoder" or "decoder", where a model has both; by default the first.
        item: Which sentence of a batch.

    Raises:
        InputError: There is no such layer, or no self-attention.
    """
    program = trace.program
    steps = attentions(program, chosen_group(program, f"{of or ''} self-attention"))
    step = in_layer(steps, steps[-1].layer if layer is None else layer)[0]
    return Rollout(trace, steps, Reader(item=item_of(trace, item))).after(step.layer)


def mixing(trace: Trace, step: Attention, reader: Reader, report: Report = silent) -> Host:
    """Ã of one layer: tokens × tokens, in the model's precision."""
    size = step.queries.size
    mixed: Host = np.empty((size, step.keys.size), dtype=trace.weights.backend.dtype)
    for rows in reader.rows(prepared(trace, step.name, report), step, [range(size)]):
        report(f"{step.name} · query {rows.queries[0]:,} of {size:,}")
        mixed[rows.queries] = rows.weights.mean(axis=0)
        mixed[rows.queries, rows.own] += 1.0
    mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed


@dataclass(frozen=True, order=True)
class Link:
    """A weight, and where it is; links sort by their weight."""

    weight: float
    layer: int = field(compare=False)
    head: int = field(compare=False)
    query: int = field(compare=False)
    key: int = field(compare=False)
    step: str = field(compare=False)


def strongest(candidates: Iterable[Link], top: int) -> tuple[Link, ...]:
    """The so many strongest, in falling order; equal ones in the order of layer, head, query and key."""
    return tuple(sorted(candidates, key=lambda link: (-link.weight, link.layer, link.head, link.query, link.key))[:top])


def links_of(
    trace: Trace,
    step: Attention,
    reader: Reader,
    top: int,
    head: int | None = None,
    *,
    itself: bool = True,
    report: Report = silent,
) -> list[Link]:
    """The strongest links of one step, in no order; of every block that is read, so many as are wanted.

    They are of one `head`, None for all; `itself` says whether a token's link to itself counts.
    """
    counted = reader.counted(prepared(trace, step.name, report), step)
    heads = range(step.heads) if head is None else range(head, head + 1)
    best: list[Link] = []
    for rows in reader.rows(trace, step, [range(step.queries.size)], heads):
        report(f"{step.name} · query {rows.queries[0]:,} of {step.queries.size:,}")
        eligible = rows.visible & (counted[rows.queries] & (rows.seen > 1))[:, None]
        if not itself:
            eligible &= np.arange(step.keys.size) != rows.own[:, None]
        flat = np.where(eligible & (rows.weights >= 0.0), rows.weights, -1.0).ravel()  # of NaN there are no links
        picked = leading(flat, top)
        picked = picked[flat[picked] >= 0.0]
        places = zip(*np.unravel_index(picked, rows.weights.shape), strict=True)
        best += [
            Link(float(weight), step.layer, heads[int(at)], int(rows.queries[row]), int(key), step.name)
            for weight, (at, row, key) in zip(flat[picked].tolist(), places, strict=True)
        ]
    return best
