"""Path patching: the effect of one part of a model on another one alone, and by it on a metric.

After Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), §3.1. A sender s (a head, a feed-forward
layer, an embedding) has the values of another sentence; every other head and feed-forward layer is frozen to what it is
without, so that s reaches a receiver r (a head's Q, K or V, what a feed-forward layer reads, the logits) through the
residual stream alone. What r becomes by that is patched into the sentence, and the metric is measured. Norms on the way
are computed of the changed stream, not linearised; so is all else between the stream and r. (Wang et al. let
feed-forward layers on the way be computed anew; here they are frozen as heads are, and are senders of their own.) With
all senders at once the stream is that of the other sentence, and the logits are its logits.

The estimate is edge attribution patching (Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit
Discovery", arXiv:2310.10348): Δ = (s_other − s) · ∂m/∂s along that path, which is J_rsᵀ ∂m/∂r with J_rs the derivative
of r by s at the sentence itself, norms included. It takes a pass backwards for the metric and one a receiver, whatever
the number of senders, and is exact where all is linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, Literal, get_args

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.circuits import in_float64
from tui_transformer.analysis.effects import ROWS, in_passes, pass_size
from tui_transformer.analysis.input_attribution import start_of
from tui_transformer.analysis.measurable import Measurable, Positions, last_position
from tui_transformer.analysis.metrics import AnyMetric, Metric, metric_from
from tui_transformer.analysis.nodes import RECEIVERS, SENDERS, Names, Node, nodes, straight
from tui_transformer.engine.axis import Region, shape_text, slices, within
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Patch, of_sentence, with_means
from tui_transformer.engine.gradient import Start, backward_from
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

By = Literal["patching", "gradient"]
DIVERGENCE = Metric("divergence")


@dataclass(frozen=True, eq=False)
class Paths:
    """The metric with every path patched alone, or an estimate of it.

    `values`: senders × receivers, NaN where nothing leads straight from one to the other; `own` and `other`: the metric
    of the two sentences.
    """

    senders: tuple[Node, ...]
    receivers: tuple[Node, ...]
    values: Host
    own: float
    other: float
    by: By

    def __repr__(self) -> str:
        there = int((~np.isnan(self.values)).sum())
        return f"<Paths by {self.by}: {len(self.senders)} senders × {len(self.receivers)} receivers, {there} paths>"

    @property
    def changes(self) -> Host:
        """How far every path moves the metric."""
        return np.asarray(self.values - self.own)

    @property
    def shares(self) -> Host:
        """The same as shares of the way to the other sentence's metric; NaN where the two are the same."""
        way = self.other - self.own
        return self.changes / way + 0.0 if way else np.full(self.values.shape, np.nan)

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for every path that there is, for pandas and polars."""
        changes, shares = self.changes, self.shares
        return [
            {
                "sender": str(sender),
                "sender_layer": sender.layer,
                "sender_head": sender.head,
                "receiver": str(receiver),
                "receiver_layer": receiver.layer,
                "receiver_head": receiver.head,
                "value": float(self.values[i, j]),
                "change": float(changes[i, j]),
                "share": float(shares[i, j]),
            }
            for i, sender in enumerate(self.senders)
            for j, receiver in enumerate(self.receivers)
            if not np.isnan(self.values[i, j])
        ]


def paths(
    trace: Trace,
    other: Trace,
    senders: Names = tuple(SENDERS),
    receivers: Names = "logits",
    metric: AnyMetric = DIVERGENCE,
    *,
    by: By = "patching",
    positions: Positions | None = None,
    before: Watch | None = None,
    report: Report = silent,
    rows: int = ROWS,
) -> Paths:
    """The metric with each path from a sender to a receiver patched alone.

    Args:
        trace: The sentence.
        other: The one that senders have values from, with as many tokens.
        senders: A kind (`embedding`, `head`, `feed_forward`), a place (`head:decoder.0.self_attention`; the end of its
            name is enough), one (`head:decoder.0.self_attention:3`), or a list of these. What stands in a list within
            the list is patched together.
        receivers: The same of `query`, `key`, `value`, `feed_forward` and `logits`. Of keys and values that query heads
            share there is one for all of them.
        metric: What is measured; any function of a trace will do. By default how far the answer moves (KL divergence).
        by: "patching", or "gradient" for the estimate, which is of metrics with a gradient.
        positions: Where the answer is read; by default at the last token that is no padding.
        before: As in `Trace.compute`: told of every step that runs, and may end the work.
        report: Told how far the work is; what it raises ends it.
        rows: How many rows are computed at a time, at most.

    Raises:
        InputError: The sentences have different lengths, no node is called so, no path leads straight from these
            senders to these receivers, or the metric cannot be measured, or has no gradient.
    """
    if by not in get_args(By):
        raise UsageError(f"paths are measured by {' or '.join(get_args(By))}, not by {str(by)[:40]!r}")
    if trace.batch > 1 or other.batch > 1:
        raise UsageError("paths are of single sentences: `sentence` of a trace gives one of a batch")
    sending, reading = nodes(trace.program, senders, SENDERS), nodes(trace.program, receivers, RECEIVERS)
    for name in sorted(_steps(sending), key=trace.program.places.__getitem__):
        own_shape, shape = trace.program.shape(name), other.program.shape(name)
        if own_shape[-2] != shape[-2]:
            raise InputError(f"the sentences have {own_shape[-2]} and {shape[-2]} tokens: paths need as many")
        if own_shape != shape:
            words = f"{shape_text(own_shape)} here and {shape_text(shape)} there"
            raise InputError(f"{name} is {words}: paths need the same")
    there = leading(trace.program, sending, reading)
    if not there.any():
        raise InputError("nothing leads straight from these senders to these receivers: senders come first")
    for each in (trace, other):
        each.compute(before=before)
    measurable = metric_from(metric)
    if positions is None and trace.program.logits:
        positions = last_position(trace)
    own, others = (measurable.measure(each, trace, positions, watch=before) for each in (trace, other))
    if by == "gradient":
        changes = _estimated(trace, other, sending, reading, measurable, positions, report, rows)
        return Paths(sending, reading, np.where(there, own + changes, np.nan), own, others, by)
    values, done = np.full(there.shape, np.nan), 0
    report(f"0 of {there.sum()} paths")
    for group, found in _patched(trace, other, sending, reading, measurable, positions, before, rows):
        values[*zip(*group, strict=True)] = found
        done += len(found)
        report(f"{done} of {there.sum()} paths")
    return Paths(sending, reading, values, own, others, by)


def _steps(nodes: Iterable[Node]) -> frozenset[str]:
    return frozenset(chain.from_iterable(node.steps for node in nodes))


def leading(program: Program, senders: Sequence[Node], receivers: Sequence[Node]) -> Host:
    """Senders × receivers, true where something leads straight from one to the other."""
    targets = _steps(receivers)
    reached = {steps: straight(program, steps, targets).by_name for steps in {each.steps for each in senders}}
    return np.array([[not reader.steps.isdisjoint(reached[each.steps]) for reader in receivers] for each in senders])


def _frozen(trace: Trace, program: Program, copies: int, changed: Mapping[str, Host]) -> Trace:
    """So many copies of some steps of a trace, with its values given but those that are changed (with batch axis)."""
    known = [name for name in program.givens if name not in trace.givens]
    given = {name: trace.backend.to_host(array) for name, array in zip(known, trace.arrays(known), strict=True)}
    given |= {name: trace.givens[name] for name in program.givens if name in trace.givens}
    repeated = {name: np.broadcast_to(each, (copies, *each.shape[1:])) for name, each in given.items()}
    edits = [own for edit in trace.edits if (own := of_sentence(edit, 0)) is not None]
    edits = [edit for edit in edits if edit.name in program.by_name or edit.name in program.weights]
    there = tuple(with_means(edits, trace.base or trace, changed))
    givens = repeated | {name: each for name, each in changed.items() if name in repeated}
    return Trace(program, trace.weights, givens, trace.budget, there, block=trace.block, batched=True)


# By patching


class _Straight:
    """What receivers become where each of some senders, of the same steps, has the values of another sentence.

    The `trace` is a batch of these senders, of the steps that lead straight to the receivers.
    """

    def __init__(
        self, trace: Trace, other: Trace, senders: Sequence[Node], receivers: frozenset[str], before: Watch | None
    ) -> None:
        self.before = before
        self.last: tuple[str, Region, Host] = "", (), np.zeros(0)
        program, changed = straight(trace.program, senders[0].steps, receivers), dict[str, Host]()
        for name in program.givens.keys() & senders[0].steps:
            values = np.repeat(trace.backend.to_host(trace.array(name)), len(senders), axis=0)
            for own, sender in zip(values, senders, strict=True):
                for part in sender.parts:
                    if name in part.steps:
                        region = part.region(trace.program, name)
                        own[slices(region)[1:]] = other.window(name, region)
            changed[name] = values
        self.trace = _frozen(trace, program, len(senders), changed)
        self.trace.keep(name for name in receivers & program.by_name.keys() if not program.step(name).windowed)
        if self.trace.plan.names:
            self.trace.compute(self.trace.plan.names, before)

    def patches(self, receiver: Node, trace: Trace, number: int) -> list[Patch]:
        """What gives a receiver the values that it has by a sender; none where that does not reach it.

        Where it reaches some of its parts, the others keep the values that they have in the trace.
        """
        reached = self.trace.program.by_name
        if receiver.steps.isdisjoint(reached):
            return []
        return [
            Patch(name, part.region(trace.program, name), partial(self._values, number, name))
            if name in reached
            else Patch.between(trace, trace, name, heads=part.heads)
            for part in receiver.parts
            for name in part.steps
        ]

    def _values(self, number: int, name: str, region: Region) -> Host:
        if self.last[:2] != (name, region):
            values = np.empty((self.trace.batch, *map(len, region)), self.trace.backend.dtype)
            for piece, part in self.trace.blocks(name, region, None, self.before):
                values[within(piece, region)] = part
            self.last = name, region, values
        return self.last[2][number : number + 1]


def _patched(
    trace: Trace,
    other: Trace,
    senders: Sequence[Node],
    receivers: Sequence[Node],
    metric: Measurable,
    positions: Positions | None,
    before: Watch | None,
    rows: int,
) -> Iterator[tuple[Sequence[tuple[int, int]], list[float]]]:
    """Numbers of sender and receiver, and the metric with these paths patched, as many as share a pass."""
    targets, numbers = _steps(receivers), iter(range(len(senders)))
    while some := list(islice(numbers, pass_size(trace, rows))):
        ways: dict[int, tuple[_Straight, int]] = {}
        for _, alike in groupby(some, lambda i: senders[i].steps):
            same = list(alike)
            way = _Straight(trace, other, [senders[i] for i in same], targets, before)
            ways |= {i: (way, number) for number, i in enumerate(same)}
        for j, receiver in enumerate(receivers):
            patches = (((i, j), way.patches(receiver, trace, at)) for i, (way, at) in ways.items())
            experiments = (each for each in patches if each[1])
            for group, edited, items in in_passes(trace, experiments, rows=rows, keep=metric.reads_any):
                yield group, metric.measure_each(edited, trace, positions, items, watch=before)


# By gradients


def _estimated(
    trace: Trace,
    other: Trace,
    senders: Sequence[Node],
    receivers: Sequence[Node],
    metric: Measurable,
    positions: Positions | None,
    report: Report,
    rows: int,
) -> Host:
    """Senders × receivers: the change of the metric to first order."""
    if metric == DIVERGENCE:
        raise InputError("the divergence from the sentence itself has gradient 0: choose another metric")
    _, start = start_of(trace, metric, positions)
    alone = [part for receiver in receivers if len(receiver.parts) == 1 for part in receiver.parts]
    slopes = _slopes(trace, start, frozenset(name for part in alone for name in part.steps), report)
    wanted: dict[str, list[tuple[int, Region, Host]]] = {}
    for j, receiver in enumerate(receivers):
        own = slopes
        if len(receiver.parts) > 1:  # patched together, none acts by way of another
            names = [(name, part.heads) for part in receiver.parts for name in part.steps]
            held = [Patch.between(trace, trace, name, heads=heads) for name, heads in names]
            own = _slopes(trace.edited(held), start, receiver.steps, report)
        for part in receiver.parts:
            for name in part.steps:
                region = part.region(trace.program, name)
                wanted.setdefault(name, []).append((j, region, own[name][slices(region)[1:]]))
    moved = {name: in_float64(other, name) - in_float64(trace, name) for name in sorted(_steps(senders))}
    changes = np.zeros((len(senders), len(receivers)))
    for name, every in wanted.items():
        waiting = iter(every)
        while some := list(islice(waiting, pass_size(trace, rows))):
            found = _across(trace, name, [(region, slope) for _, region, slope in some], moved, report)
            for i, sender in enumerate(senders):
                terms = (found[step][:, part.number or 0] for part in sender.parts for step in part.steps)
                np.add.at(changes[i], [j for j, *_ in some], sum(terms, np.zeros(len(some))))
    return changes


def _slopes(trace: Trace, start: Start, names: frozenset[str], report: Report) -> dict[str, Host]:
    """The gradient by some steps; 0 of those on which it does not depend."""
    slopes = {name: np.zeros(trace.program.shape(name)) for name in names}

    def visit(name: str, gradient: Array) -> None:
        report(f"gradient of {name}")
        if name in slopes:
            slopes[name] = trace.backend.to_host(gradient)[0].astype(np.float64)

    backward_from(trace, start, visit)
    return slopes


def _across(
    trace: Trace, name: str, slopes: Sequence[tuple[Region, Host]], moved: Mapping[str, Host], report: Report
) -> dict[str, Host]:
    """(other − own) · gradient, slopes × heads by the steps of senders, from slopes of parts of a receiver's step."""
    program = straight(trace.program, moved, (name,))
    found = {step: np.zeros((len(slopes), 1 if each.ndim < 3 else len(each))) for step, each in moved.items()}
    if not program.steps:
        return found
    slope: Host = np.zeros((len(slopes), *trace.program.shape(name)))
    for own, (region, values) in zip(slope, slopes, strict=True):
        own[slices(region)[1:]] = values
    frozen = _frozen(trace, program, len(slopes), {})

    def visit(step: str, gradient: Array) -> None:
        report(f"from {step} to {name}")
        if step in moved:
            products = trace.backend.to_host(gradient).astype(np.float64) * moved[step]
            found[step] = products.reshape(*found[step].shape, -1).sum(axis=-1)

    backward_from(frozen, Start(name, slope, "", ""), visit, None, frozenset(moved).intersection(program.givens))
    return found
