"""Metrics: one number for an answer, or for how far it is from another, by which edits are measured.

With logits z, shares p = softmax(z) and, for a distance, the shares p₀ of the trace before:

- `divergence`: Σ p₀ (ln p₀ − ln p), the Kullback–Leibler divergence in nats; ∂/∂z = p − p₀;
- `logit`: z(a);
- `log-probability`: ln p(a), in nats; ∂/∂z = 1(a) − p;
- `difference`: z(a) − z(b), the logit difference (Wang et al. 2022, "Interpretability in the Wild", §2);
- `loss`: −ln p(a), the cross-entropy of a as the target, in nats; ∂/∂z = p − 1(a).

Several positions add up; with a target for every position the loss is the mean over those that are counted. Any
function of the logits or of a trace is a metric too (`measurable.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from tui_transformer.analysis.measurable import Measurable, OfTrace, Positions, answer_region, logits_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

Tokens = tuple[int, ...]
MetricName = Literal["divergence", "logit", "log-probability", "difference", "loss"]

Rows = Callable[[Host, Host, Host], Host]
"""From logits and those before the edit (rows × words, float64), and the tokens of every row (rows × how many)."""


@dataclass(frozen=True)
class Kind:
    """A kind of metric, about so many tokens.

    `value` is that of every row, and `slope` its gradient by the logits (rows × words), in words the `formula`. The
    `description` has places for the words of its tokens. Of a `distance` the logits before the edit are a part.
    """

    tokens: int
    value: Rows
    slope: Rows
    description: str
    formula: str
    distance: bool = False


@np.errstate(invalid="ignore")  # of logits that overflowed
def log_shares(logits: Host) -> Host:
    """Logarithm of softmax along the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


@np.errstate(invalid="ignore")
def divergences(before: Host, after: Host) -> Host:
    """Σ p (ln p − ln q) along the last axis, in nats, from ln p and ln q; a share of 0 before adds nothing."""
    terms = np.multiply(np.exp(before), before - after, where=~np.isneginf(before), out=np.zeros_like(before))
    return np.asarray(terms.sum(axis=-1))


def _at(values: Host, tokens: Host) -> Host:
    return np.take_along_axis(values, tokens[:, :1], axis=-1)[:, 0]


def _ones(logits: Host, tokens: Host) -> Host:
    """1 at the first token of every row, 0 elsewhere."""
    ones = np.zeros_like(logits)
    np.put_along_axis(ones, tokens[:, :1], 1.0, axis=-1)
    return ones


METRICS: Mapping[MetricName, Kind] = {
    "divergence": Kind(
        0,
        lambda z, before, _: np.maximum(divergences(log_shares(before), log_shares(z)), 0.0),
        lambda z, before, _: np.exp(log_shares(z)) - np.exp(log_shares(before)),
        "KL divergence",
        "p − p of before",
        distance=True,
    ),
    "logit": Kind(1, lambda z, _, a: _at(z, a), lambda z, _, a: _ones(z, a), "logit of {}", "1 at the token"),
    "log-probability": Kind(
        1,
        lambda z, _, a: _at(log_shares(z), a),
        lambda z, _, a: _ones(z, a) - np.exp(log_shares(z)),
        "ln p({})",
        "1 at the token, − p",
    ),
    "difference": Kind(
        2,
        lambda z, _, ab: _at(z, ab) - _at(z, ab[:, 1:]),
        lambda z, _, ab: _ones(z, ab) - _ones(z, ab[:, 1:]),
        "logit of {} less that of {}",
        "1 at the first token, −1 at the second",
    ),
    "loss": Kind(
        1,
        lambda z, _, a: -_at(log_shares(z), a),
        lambda z, _, a: np.exp(log_shares(z)) - _ones(z, a),
        "loss of {}",
        "p − 1 at the target",
    ),
}
"""By name."""

BY_TOKENS: tuple[MetricName, ...] = ("divergence", "log-probability", "difference")
"""The metrics that are meant where none is named, by how many tokens are."""


@dataclass(frozen=True)
class Metric(Measurable):
    """A metric of the logits at some positions: one of `METRICS`, and the tokens that it is about.

    Of the loss there may be `targets` instead of a token: the right token at every position, −1 where none counts. It
    is then the mean over these positions, wherever else the answer is read. UsageError where there is no such metric,
    or it is about another number of tokens.
    """

    name: MetricName
    tokens: Tokens = ()
    targets: Tokens = ()

    def __post_init__(self) -> None:
        for what, given in (("tokens", self.tokens), ("targets", self.targets)):
            if not isinstance(given, Sequence) or not all(isinstance(each, int | np.integer) for each in given):
                raise UsageError(f"the {what} of a metric are IDs in a tuple, as (40,) or (40, 41)")
        if self.name not in METRICS:
            raise UsageError(f"no metric is called {self.name[:40]!r}: use {', '.join(METRICS)}")
        wanted = METRICS[self.name].tokens
        if self.targets and (self.name != "loss" or self.tokens):
            raise UsageError("targets are of the metric loss, which then takes no tokens")
        if not self.targets and len(self.tokens) != wanted:
            about = f"{wanted} token{'s' * (wanted != 1)}"
            raise UsageError(f"the metric {self.name} is about {about}, not {len(self.tokens)}")
        if self.targets and set(self.targets) == {NOT_COUNTED}:
            raise UsageError("every target is −1: at least one has to be counted")

    @classmethod
    def of(cls, name: MetricName | None, tokens: Tokens, targets: Tokens = ()) -> Metric:
        """The metric of a name, or that which fits the number of tokens; targets alone are those of the loss."""
        if name is None and len(tokens) >= len(BY_TOKENS):
            raise UsageError("give a token, or two for the difference of their logits")
        usual = "loss" if targets and not tokens else BY_TOKENS[min(len(tokens), 2)]
        return cls(usual if name is None else name, tokens, targets)

    @property
    def formula(self) -> str:
        return METRICS[self.name].formula

    def said(self, word: Callable[[int], str] = str) -> str:
        if self.targets:
            counted = sum(each != NOT_COUNTED for each in self.targets)
            return f"loss on {counted} target{'s' * (counted > 1)}"
        return METRICS[self.name].description.format(*map(word, self.tokens))

    def measure_each(
        self,
        trace: Trace,
        before: Trace,
        positions: Positions | None,
        items: range,
        item: int = 0,
        watch: Watch | None = None,
    ) -> list[float]:
        totals = [0.0] * len(items)
        for _, now, old, tokens, share in self._rows(trace, before, positions, item, watch):
            for at, each in enumerate(items):
                new = now[each].astype(np.float64)
                value = METRICS[self.name].value(new, new if old is None else old, tokens)
                totals[at] += float((value[share > 0] * share[share > 0]).sum())
        return totals

    def slope(
        self, trace: Trace, before: Trace | None = None, positions: Positions | None = None, item: int | None = None
    ) -> Host:
        kind, name, item = METRICS[self.name], trace.program.logits, item_of(trace, item)
        slopes: Host | None = None
        for rows, now, old, tokens, share in self._rows(trace, before or trace, positions, item, None):
            slopes = np.zeros(trace.program.shape(name)) if slopes is None else slopes
            new = now[item].astype(np.float64)
            slopes[rows.start : rows.stop] = kind.slope(new, new if old is None else old, tokens) * share[:, None]
        return np.zeros(0) if slopes is None else slopes

    def _rows(
        self, trace: Trace, before: Trace, positions: Positions | None, item: int, watch: Watch | None
    ) -> Iterator[tuple[range, Host, Host | None, Host, Host]]:
        """Rows a block at a time: which, their logits in all sentences, those before, their tokens, what each counts.

        The logits before are those of one sentence, and None where they have no part.
        """
        name = logits_of(trace.program)
        length, words = trace.program.shape(name)
        outside = [token for token in self.tokens if not 0 <= token < words]
        outside += [token for token in self.targets if not NOT_COUNTED <= token < words]
        if outside:
            raise InputError(f"there is no token {outside[0]}: IDs go from 0 to {words - 1}")
        if self.targets and len(self.targets) != length:
            targets = f"{len(self.targets)} target{'s' * (len(self.targets) != 1)}"
            raise InputError(f"{targets} for {length} position{'s' * (length != 1)}: write one for each, -1 for none")
        region = answer_region(trace, range(len(self.targets)) if self.targets else positions, item)
        distance = METRICS[self.name].distance and before is not trace
        for part, now in trace.blocks(name, region, None, watch):
            rows, old = part[0], before.window(name, part, item).astype(np.float64) if distance else None
            if self.targets:
                counted = np.array(self.targets) != NOT_COUNTED
                tokens = np.maximum(np.array(self.targets)[rows.start : rows.stop, None], 0)
                yield rows, now, old, tokens, counted[rows.start : rows.stop] / counted.sum()
            else:
                yield rows, now, old, np.tile(np.array(self.tokens, np.int64), (len(rows), 1)), np.ones(len(rows))


AnyMetric = Measurable | Callable[[Trace], float]
"""What may be given as a metric: a `Metric`, `OfLogits`, or any function that gives a number of a trace."""


def metric_from(given: AnyMetric) -> Measurable:
    """A metric, or a function of a trace as one; UsageError where it is neither."""
    if isinstance(given, Measurable):
        return given
    if not callable(given):
        raise UsageError(f"a metric is a Metric, OfLogits or a function of a trace, not {type(given).__name__}")
    return OfTrace(given)
