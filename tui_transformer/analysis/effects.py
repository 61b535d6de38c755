"""Effects: how much the answer of a model hangs on one of its heads, layers, positions or neurons.

The target is ablated: set to 0, or to its mean over the positions, and what lies downstream is computed again (heads:
Michel et al. 2019, "Are Sixteen Heads Really Better than One?", §2.3; setting a part and looking at the answer: Vig et
al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022, "Locating
and Editing Factual Associations in GPT"). With the shares p before and q after, at every asked position i:

- change = Σ_i ln q_i(t_i) − ln p_i(t_i), where t_i is the most likely token before;
- divergence = Σ_i Σ_t p_i(t) (ln p_i(t) − ln q_i(t)), the Kullback–Leibler divergence, in nats.

With a metric (`analysis/metrics.py`), change = metric after − metric before instead. A model without a vocabulary head
has no such answer. Its effect is ‖x' − x‖ ÷ ‖x‖ (Frobenius) of what its last step holds at the positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tui_transformer.analysis.log_shares import log_shares
from tui_transformer.analysis.metrics import Metric, Positions, positions_in
from tui_transformer.analysis.real_tokens import real_tokens
from tui_transformer.engine.axis import Axis, Region, cells
from tui_transformer.engine.backend import Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.targets import Target, every, parse
from tui_transformer.engine.trace import Trace
from tui_transformer.learning.answering import answers_first

LOGITS = "output.logits"
Block = tuple[Region, Host]


@dataclass(frozen=True)
class Effect:
    """Effect of edits on the answer.

    Attributes:
        change: Of ln p of the most likely token, in nats; with a metric, of that.
        divergence: In nats.
        relative: Relative change of the last step, of a model without a vocabulary head.
        value: The metric after the edits, where one was chosen.
    """

    change: float | None = None
    divergence: float | None = None
    relative: float | None = None
    value: float | None = None

    @property
    def size(self) -> float:
        """Size by which effects are compared: the divergence, the relative change, or how far a metric moved."""
        if self.value is not None:
            return abs(self.change or 0.0)
        return next(value for value in (self.divergence, self.relative) if value is not None)


def effects(
    trace: Trace,
    targets: Iterable[Target | str] | str,
    *,
    mean: bool = False,
    means: Mapping[str, Host] | None = None,
    positions: Positions | None = None,
    item: int = 0,
    metric: Metric | None = None,
    before: Watch | None = None,
) -> Iterator[tuple[Target, Effect]]:
    """The effect of each target, one at a time as it is found; only what lies downstream is computed again.

    Args:
        trace: The model on a sentence.
        targets: What is ablated, each alone: targets, as `head:decoder.0.self_attention:1`, or all of a kind: "head",
            "layer", "position", "neuron:decoder.0.feed_forward".
        mean: Set to the mean over the positions instead of 0.
        means: Set to the mean over a data set instead (`analysis/means.py`), by step.
        positions: Where the answer is read; see `answer_positions`.
        item: Which sentence of a batch.
        metric: What is measured, instead of the change of the most likely token and the divergence.
        before: As in `Trace.compute`: told of every step that runs, and may end the work.

    Raises:
        InputError: There is no such target or position.
    """
    wanted = _targets(trace, targets)
    trace.compute(before=before)
    positions = answer_positions(trace, positions, item)
    if metric is not None:
        own = metric.measure(trace, trace, positions, item, before)
        for target in wanted:
            edited = trace.edited(target.edits(trace.program, mean=mean, means=means), budget=0)
            yield target, _of_metric(metric.measure(edited, trace, positions, item, before), own)
        return
    name = answer_step(trace)
    region = _region(trace, name, positions)
    old = list(trace.blocks(name, region, item)) if cells(region) <= trace.block else None
    for target in wanted:
        edited = trace.edited(target.edits(trace.program, mean=mean, means=means), budget=0)
        new = edited.blocks(name, region, item, before)
        yield target, _effect(trace, name, trace.blocks(name, region, item) if old is None else old, new)


def _targets(trace: Trace, targets: Iterable[Target | str] | str) -> Sequence[Target]:
    if isinstance(targets, str):
        return list(every(trace.program, targets))
    return [parse(target) if isinstance(target, str) else target for target in targets]


def effect(
    trace: Trace, edited: Trace, positions: Positions | None = None, item: int = 0, metric: Metric | None = None
) -> Effect:
    """Effect of any edits of a trace on its answer; with a metric, on that.

    Raises:
        InputError: There is no such position, or the metric cannot be measured.
    """
    positions = answer_positions(trace, positions, item)
    if metric is not None:
        return _of_metric(*(metric.measure(each, trace, positions, item) for each in (edited, trace)))
    name = answer_step(trace)
    region = _region(trace, name, positions)
    return _effect(trace, name, trace.blocks(name, region, item), edited.blocks(name, region, item))


def answer_step(trace: Trace) -> str:
    """Where the answer is read: the logits, or the last step of a model without them."""
    rows = (step.name for step in reversed(trace.program.steps) if len(step.axes) > 1)
    return trace.program.logits or next(rows)


def answer_positions(
    trace: Trace, positions: Positions | None = None, item: int = 0, *, folder: Path | None = None
) -> range:
    """The positions that are asked for; by default the last real token, or all of them where there are no logits.

    Where the model of `folder` was trained to answer at its first token alone, that is the default.

    Raises:
        InputError: There is no such position.
    """
    name = answer_step(trace)
    axis: Axis = trace.program.axes(name)[-2]
    if positions is None:
        real = counted_positions(trace, item)
        if name != trace.program.logits:
            return real
        return real[:1] if answers_first(folder) else real[-1:]
    return positions_in(axis.size, positions)


def counted_positions(trace: Trace, item: int = 0) -> range:
    """From the first to the last real token of the answer."""
    axis = trace.program.axes(answer_step(trace))[-2]
    real = np.flatnonzero(real_tokens(trace, axis, item))
    return range(int(real[0]), int(real[-1]) + 1)


def _region(trace: Trace, name: str, positions: range) -> Region:
    *heads, _, columns = trace.program.shape(name)
    return *map(range, heads), positions, range(columns)


def _effect(trace: Trace, name: str, old: Iterable[Block], new: Iterable[Block]) -> Effect:
    """From the answer before and after, a block at a time."""
    rows = ((a.astype(np.float64), b.astype(np.float64)) for (_, a), (_, b) in zip(old, new, strict=True))
    return _of_shares(rows) if name == trace.program.logits else _of_states(rows)


def _of_metric(value: float, own: float) -> Effect:
    return Effect(change=value - own, value=value)


def _of_shares(rows: Iterable[tuple[Host, Host]]) -> Effect:
    change = divergence = 0.0
    for old, new in rows:
        before, after = log_shares(old), log_shares(new)
        likely = before.argmax(axis=-1, keepdims=True)
        change += float((np.take_along_axis(after, likely, -1) - np.take_along_axis(before, likely, -1)).sum())
        divergence += float(
            np.multiply(np.exp(before), before - after, where=before > -np.inf, out=np.zeros_like(old)).sum()
        )
    return Effect(change, max(divergence, 0.0))


def _of_states(rows: Iterable[tuple[Host, Host]]) -> Effect:
    moved = size = 0.0
    for old, new in rows:
        moved += float(np.square(new - old).sum())
        size += float(np.square(old).sum())
    return Effect(relative=float(np.sqrt(moved / size)) if size else float(moved > 0))
