"""Metrics: one number for an answer, or for how far it is from another, by which edits are measured.

With logits z, shares p = softmax(z) and, for a distance, the shares p₀ of the trace before:

- `divergence`: Σ p₀ (ln p₀ − ln p), the Kullback–Leibler divergence in nats;
- `logit`: z(a);
- `log-probability`: ln p(a), in nats;
- `difference`: z(a) − z(b), the logit difference (Wang et al. 2022, "Interpretability in the Wild", §2);
- `loss`: −ln p(a), the cross-entropy of a as the target, in nats.

Several positions add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.effects import log_shares
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError

Tokens = tuple[int, ...]


def _divergence(logits: Host, before: Host, tokens: Tokens) -> float:
    del tokens
    old, new = log_shares(before), log_shares(logits)
    terms = np.multiply(np.exp(old), old - new, where=old > -np.inf, out=np.zeros_like(old))
    return max(float(terms.sum()), 0.0)


def _logit(logits: Host, before: Host, tokens: Tokens) -> float:
    del before
    return float(logits[:, tokens[0]].sum())


def _log_probability(logits: Host, before: Host, tokens: Tokens) -> float:
    del before
    return float(log_shares(logits)[:, tokens[0]].sum())


def _difference(logits: Host, before: Host, tokens: Tokens) -> float:
    del before
    return float((logits[:, tokens[0]] - logits[:, tokens[1]]).sum())


def _loss(logits: Host, before: Host, tokens: Tokens) -> float:
    return -_log_probability(logits, before, tokens)


METRICS: Mapping[str, tuple[int, Callable[[Host, Host, Tokens], float]]] = {
    "divergence": (0, _divergence),
    "logit": (1, _logit),
    "log-probability": (1, _log_probability),
    "difference": (2, _difference),
    "loss": (1, _loss),
}
"""By name: how many tokens it is about, and the number from logits (positions × words) and those before the edit."""

BY_TOKENS = ("divergence", "log-probability", "difference")
"""What is meant where no metric is named: by how many tokens are."""


@dataclass(frozen=True)
class Metric:
    """A metric of the logits at some positions.

    Raises:
        UsageError: There is no such metric, or it is about another number of tokens.
    """

    name: str
    tokens: Tokens = ()

    def __post_init__(self) -> None:
        if self.name not in METRICS:
            raise UsageError(f"no metric is called {self.name[:40]!r}: use {', '.join(METRICS)}")
        wanted = METRICS[self.name][0]
        if len(self.tokens) != wanted:
            raise UsageError(f"the metric {self.name} is about {wanted} tokens, not {len(self.tokens)}")

    @classmethod
    def of(cls, name: str | None, tokens: Tokens) -> Metric:
        """The metric of a name, or that which fits the number of tokens."""
        if name is None and len(tokens) >= len(BY_TOKENS):
            raise UsageError("give a token, or two for the difference of their logits")
        return cls(BY_TOKENS[len(tokens)] if name is None else name, tokens)

    def measure(self, trace: Trace, before: Trace, positions: range, item: int = 0) -> float:
        """The number of a trace, beside that without its edits.

        Raises:
            InputError: The model has no logits, or no such token.
        """
        name = trace.program.logits
        if not name:
            raise InputError("the model has no logits of words: metrics are of these")
        words = trace.program.shape(name)[-1]
        if any(not 0 <= token < words for token in self.tokens):
            raise InputError(f"there is no token {max(self.tokens)}: IDs go from 0 to {words - 1}")
        region = positions, range(words)
        now, old = (np.asarray(each.window(name, region, item), np.float64) for each in (trace, before))
        return METRICS[self.name][1](now, old, self.tokens)
