"""Rollout: how far the input tokens reach through all layers, if attention were all that mixes them.

Ã_l = (Ā_l + I) ÷ 2 with Ā_l the mean of the heads of layer l and I for the residual connection, rows made to sum to 1;
R_l = Ã_l R_(l−1), R_(−1) = I (Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", §3). Row i of R_l:
the shares of the input tokens in token i after layer l. Feed-forward, values and norms are not in it. In a causal
model the shares gather at the first tokens, which every later token may look at. Cross attention takes no part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tui_transformer.analysis.attention_rows import Reader
from tui_transformer.analysis.attentions import Attention, attentions, chosen_group, in_layer
from tui_transformer.analysis.progress import Report, prepared, silent
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace

KEPT = 256 << 20
"""Bytes of rolled-out layers that are kept, so that going back a layer is quick."""


@dataclass(eq=False)
class Rollout:
    """The rollout of one stack, a layer at a time.

    Attributes:
        trace: Whose weights.
        steps: The self-attention of every layer, in order.
        reader: Reads the weights; nothing may be hidden in it.
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
            rolled = self._next(rolled, self.steps[at], report)
            self._keep(at, rolled)
        assert rolled is not None, "a layer is 0 or more"  # noqa: S101
        return rolled

    def holds(self, layer: int) -> bool:
        """Whether a layer is there already."""
        return layer in self._rolled

    def _keep(self, layer: int, rolled: Host) -> None:
        rolled.flags.writeable = False
        self._rolled[layer] = rolled
        most = max(1, self.kept // rolled.nbytes)
        for old in sorted(self._rolled)[:-most]:
            del self._rolled[old]

    def _next(self, rolled: Host | None, step: Attention, report: Report) -> Host:
        mixed = mixing(self.trace, step, self.reader, report)
        report(f"rollout of layer {step.layer}")
        return mixed if rolled is None else np.matmul(mixed, rolled)


def rollout(trace: Trace, layer: int | None = None, *, of: str | None = None, item: int = 0) -> Host:
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
    return Rollout(trace, steps, Reader(item=item)).after(step.layer)


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
