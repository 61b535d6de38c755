"""Effects: how much the answer of a model hangs on one of its heads, layers, positions or neurons.

The target is ablated: set to 0, or to its mean over the positions, and what lies downstream is computed again (heads:
Michel et al. 2019, "Are Sixteen Heads Really Better than One?", §2.3; setting a part and looking at the answer: Vig et
al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022, "Locating
and Editing Factual Associations in GPT"). With the shares p before and q after, at every asked position i:

- change = Σ_i ln q_i(t_i) − ln p_i(t_i), where t_i is the most likely token before;
- divergence = Σ_i Σ_t p_i(t) (ln p_i(t) − ln q_i(t)), the Kullback–Leibler divergence, in nats.

With a metric (`analysis/metrics.py`), change = metric after − metric before instead. A model without a vocabulary head
has no such answer. Its effect is ‖x' − x‖ ÷ ‖x‖ (Frobenius) of what its last step holds at the positions.

The mean of many sentences, x̄ = Σ x ÷ N over all real tokens, of every head and column alone, takes out what tells one
sentence from another, and leaves what all have in common (Wang et al. 2022, "Interpretability in the Wild", §2.2: mean
ablation over a reference distribution).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tui_transformer.analysis.found import found
from tui_transformer.analysis.measurable import Positions, positions_in
from tui_transformer.analysis.metrics import AnyMetric, divergences, log_shares, metric_from
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.axis import Region, cells, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Change, single
from tui_transformer.engine.names import find
from tui_transformer.engine.program import array_of_numbers
from tui_transformer.engine.targets import Target, every, parse
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.recipes import answers_first
from tui_transformer.records import dataclass

ROWS = 512
"""Rows of a pass at most: from there on a product of matrices takes as long for each row, however many there are."""

What = TypeVar("What")


@dataclass(frozen=True)
class Effect:
    """Effect of edits on the answer.

    `change`: of ln p of the most likely token, in nats, or of a metric; `divergence`: in nats; `relative`: of the last
    step, of a model without a vocabulary head; `value`: the metric after the edits, where one was chosen.
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


def by_size(effect: Effect) -> float:
    """To sort by, the largest first; what is no number before all."""
    return -math.inf if math.isnan(effect.size) else -effect.size


def _cells(found: tuple[Target, Effect]) -> Iterator[dict[str, Any]]:
    target, effect = found
    yield {"target": str(target), **vars(target), **vars(effect)}


@found(_cells)
def effects(
    trace: Trace,
    targets: Iterable[Target | str] | str,
    *,
    mean: bool = False,
    means: Mapping[str, Host] | None = None,
    positions: Positions | None = None,
    item: int | None = None,
    metric: AnyMetric | None = None,
    before: Watch | None = None,
    rows: int = ROWS,
) -> Iterator[tuple[Target, Effect]]:
    """The effect of each target as it is found; only what lies downstream is computed again, for several at once.

    Args:
        trace: The model on a sentence.
        targets: What is ablated, each alone: targets, as `head:decoder.0.self_attention:1`, or all of a kind: "head",
            "layer", "position", "neuron:decoder.0.feed_forward".
        mean: Set to the mean over the positions instead of 0.
        means: Set to the mean over a data set instead (see `means`), by step.
        positions: Where the answer is read; see `answer_positions`.
        item: Which sentence of a batch.
        metric: What is measured, instead of the change of the most likely token and the divergence; any
            function of a trace will do.
        before: As in `Trace.compute`: told of every step that runs, and may end the work.
        rows: How many rows are computed at a time, at most.

    Raises:
        InputError: There is no such target or position.
    """
    if isinstance(targets, str):
        wanted = list(every(trace.program, targets))
    else:
        wanted = [parse(target) if isinstance(target, str) else target for target in targets]
    item = item_of(trace, item)
    experiments = ((target, target.edits(trace.program, mean=mean, means=means)) for target in wanted)
    yield from _experiments(trace, experiments, positions, item, metric, before, rows)


@found(lambda effect: [vars(effect)])
def effects_of(
    trace: Trace,
    edits: Iterable[Change | Sequence[Change]],
    *,
    metric: AnyMetric | None = None,
    positions: Positions | None = None,
    item: int | None = None,
    before: Watch | None = None,
    rows: int = ROWS,
) -> Iterator[Effect]:
    """The effect of any edits, each edit or list of edits alone, in their order; the arguments are those of `effects`.

    Those that change the same steps share a pass, wherever they stand.

    Raises:
        InputError: As `Trace.edited`, or the metric cannot be measured.
    """
    lists = (each if isinstance(each, Iterable) else [each] for each in edits)
    alone = [list(single(each, trace.program)) for each in lists]
    item = item_of(trace, item)
    alike = sorted(enumerate(alone), key=lambda each: sorted(_changed(trace, each[1])))
    known = dict(_experiments(trace, alike, positions, item, metric, before, rows))
    return (known[number] for number in range(len(alone)))


def _experiments(
    trace: Trace,
    experiments: Iterable[tuple[What, Sequence[Change]]],
    positions: Positions | None,
    item: int,
    metric: AnyMetric | None,
    before: Watch | None,
    rows: int,
) -> Iterator[tuple[What, Effect]]:
    trace.compute(before=before)
    measured = _measuring(trace, answer_positions(trace, positions, item), item, metric, before)
    keep = metric is not None and metric_from(metric).reads_any
    for group, edited, items in in_passes(trace, experiments, item, rows, keep=keep):
        yield from zip(group, measured(edited, items), strict=True)


def effect(
    trace: Trace,
    edited: Trace,
    positions: Positions | None = None,
    item: int | None = None,
    metric: AnyMetric | None = None,
) -> Effect:
    """Effect of any edits of a trace on its answer; with a metric, on that.

    Raises:
        InputError: There is no such position, the metric cannot be measured, or the traces have other tokens.
    """
    item, answer = item_of(trace, item), answer_step(trace)
    if answer not in edited.program.by_name or trace.program.shape(answer) != edited.program.shape(answer):
        raise InputError(f"an effect is between traces of one model and length: {answer} has other shapes here")
    measured = _measuring(trace, answer_positions(trace, positions, item), item, metric)
    return measured(edited, range(item, item + 1))[0]


def answer_step(trace: Trace) -> str:
    """Where the answer is read: the logits, or the last step of a model without them."""
    rows = (step.name for step in reversed(trace.program.steps) if len(step.axes) > 1)
    return trace.program.logits or next(rows)


def answer_positions(
    trace: Trace, positions: Positions | None = None, item: int = 0, *, folder: Path | None = None
) -> range:
    """The positions that are asked for; by default the last real token, or all of them where there are no logits.

    Where the model of `folder` was trained to answer at its first token alone, that is the default. InputError where
    there is no such position.
    """
    name = answer_step(trace)
    if positions is not None:
        return positions_in(trace.program.axes(name)[-2].size, positions)
    real = counted_positions(trace, item)
    if name != trace.program.logits:
        return real
    return real[:1] if answers_first(folder) else real[-1:]


def counted_positions(trace: Trace, item: int = 0) -> range:
    """From the first to the last real token of the answer."""
    axis = trace.program.axes(answer_step(trace))[-2]
    real = np.flatnonzero(real_tokens(trace, axis, item))
    return range(int(real[0]), int(real[-1]) + 1)


def _measuring(
    trace: Trace, positions: range, item: int, metric: AnyMetric | None, before: Watch | None = None
) -> Callable[[Trace, range], list[Effect]]:
    """Gives the effect of edits on some sentences of a batch; the answer before them is read once where it is small."""
    if metric is not None:
        measurable = metric_from(metric)
        own = measurable.measure(trace, trace, positions, item, before)

        def on_metric(edited: Trace, items: range) -> list[Effect]:
            values = measurable.measure_each(edited, trace, positions, items, item, before)
            return [Effect(value - own, value=value) for value in values]

        return on_metric

    name = answer_step(trace)
    *heads, _, columns = trace.program.shape(name)
    region = *map(range, heads), positions, range(columns)

    def read(part: Region) -> Host:
        return trace.window(name, part, item).astype(np.float64)

    read_before = cache(read) if cells(region) <= trace.block else read

    def on_answer(edited: Trace, items: range) -> list[Effect]:
        has_words = name == trace.program.logits
        sums = np.zeros((len(items), 2))
        for part, rows in edited.blocks(name, region, None, before):
            old, new = read_before(part), (rows[each].astype(np.float64) for each in items)
            if has_words:  # the change of the most likely token's ln p, and the divergence
                own = log_shares(old)
                likely = own.argmax(axis=-1, keepdims=True)
                for at, each in enumerate(map(log_shares, new)):
                    change = np.take_along_axis(each, likely, -1) - np.take_along_axis(own, likely, -1)
                    sums[at] += change.sum(), divergences(own, each).sum()
            else:
                sums += [(np.square(each - old).sum(), np.square(old).sum()) for each in new]
        if has_words:
            return [Effect(change, max(divergence, 0.0)) for change, divergence in sums.tolist()]
        return [Effect(relative=math.sqrt(moved / size) if size else float(moved > 0)) for moved, size in sums.tolist()]

    return on_answer


def _changed(trace: Trace, edits: Iterable[Change]) -> frozenset[str]:
    return frozenset(trace.program.named(change.name) for change in edits)


def pass_size(trace: Trace, rows: int = ROWS) -> int:
    """How many experiments share a pass of so many rows, at most."""
    longest = max(step.shape[-2] for step in trace.program.steps if len(step.axes) > 1)
    return max(1, rows // longest) if trace.batch == 1 else 1


def in_passes(
    trace: Trace,
    experiments: Iterable[tuple[What, Sequence[Change]]],
    item: int = 0,
    rows: int = ROWS,
    *,
    keep: bool = False,
) -> Iterator[tuple[tuple[What, ...], Trace, range]]:
    """Some experiments at a time, the trace of a pass, and which of its sentences are theirs.

    Nothing is kept of it or, where `keep` says so, as much as the trace's budget allows. An experiment is named, and
    has edits of one sentence of the batch. Neighbours that change the same steps share a pass, of so many rows at most,
    where the trace is of one sentence. How many do so depends on its length alone, so that the numbers are the same
    whatever is kept.
    """
    most = pass_size(trace, rows)
    budget = None if keep else 0
    for names, alike in groupby(experiments, lambda each: _changed(trace, each[1])):
        size = most if names.isdisjoint(trace.program.weights) else 1
        while some := tuple(islice(alike, size)):
            whats, edits = zip(*some, strict=True)
            if len(some) > 1:
                yield whats, trace.edited_each(edits, budget), range(len(some))
            else:
                yield whats, trace.edited(edits[0], budget), range(item, item + 1)


# The mean over a data set, which an ablation sets a part to


def means(traces: Iterable[Trace], names: Sequence[str]) -> dict[str, Host]:
    """The mean of steps over the real tokens of all traces: (heads ×) 1 × columns each, float64, by their own names.

    Args:
        traces: One at a time; none is held longer than it takes. Several sentences in one are all counted.
        names: Steps with a row for each token; a name may be a pattern, as `*.context`.

    Raises:
        InputError: There is no trace or no such step, or a step has no row for each token or differs in its columns.
    """
    if isinstance(names, str):
        raise UsageError(f"names are a list: [{names!r}]")
    sums: dict[str, Host] = {}
    counts: dict[str, int] = {}
    for trace in traces:
        wanted = (each for name in names for each in find((*trace.program.names, *trace.program.weights), name))
        for name in dict.fromkeys(array_of_numbers(trace.program, name)[0] for name in wanted):
            total, count = _sum_of_rows(trace, name)
            if name in sums and sums[name].shape != total.shape:
                shapes = " and ".join(shape_text(each.shape) for each in (sums[name], total))
                raise InputError(f"{name} has {shapes} of different sentences: it has no mean over them")
            sums[name] = total + sums.get(name, 0.0)
            counts[name] = counts.get(name, 0) + count
    if not sums:
        raise InputError("there is no sentence to take a mean over")
    return {name: total / counts[name] for name, total in sums.items()}


def _sum_of_rows(trace: Trace, name: str) -> tuple[Host, int]:
    axes = trace.program.axes(name)
    if name in trace.program.weights or len(axes) < 2 or not axes[-2].sequence:
        raise InputError(f"{name} has no row for each token: it has no mean over them")
    total, count = np.zeros((*(axis.size for axis in axes[:-2]), 1, axes[-1].size)), 0
    for item in range(trace.batch):
        real = real_tokens(trace, axes[-2], item)
        count += int(real.sum())
        for (*heads, rows, _), values in trace.blocks(name, item=item):
            kept = np.asarray(values, np.float64)[..., real[rows.start : rows.stop], :]
            place = tuple(slice(part.start, part.stop) for part in heads)
            total[place] += kept.sum(axis=-2, keepdims=True)
    return total, count
