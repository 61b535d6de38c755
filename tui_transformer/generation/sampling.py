"""From logits to the next token: temperature, top-k, top-p, and a draw that can be repeated.

Everything is done on the host in float64. Where two tokens are equally likely, the lower ID comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.model.checks import Check, checked, is_number, is_whole, whole_number
from tui_transformer.records import dataclass

LARGEST_TEMPERATURE = 1e6
FEW = 64


@dataclass(frozen=True)
class Settings:
    """How the next token is chosen; UsageError for a setting that cannot be.

    Logits are divided by the `temperature`; 0, or `greedy`, takes the most likely token. `top_k`: only so many of the
    most likely tokens, 0 for all. `top_p`: only the fewest most likely tokens that make up this share, 1 for all. The
    seed is of the draws. After the prompt there are at most `max_new_tokens`. Without `use_cache` every token computes
    everything again.
    """

    temperature: float = 1.0
    greedy: bool = False
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_new_tokens: int = 40
    use_cache: bool = True

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))

    @property
    def draws(self) -> bool:
        """True if chance has a part in it."""
        return not self.greedy and self.temperature > 0


_CHECKS: Mapping[str, Check] = {
    "temperature": checked(
        lambda value: is_number(value, above=-1.0) and 0 <= value <= LARGEST_TEMPERATURE,
        f"is not a number from 0 to {LARGEST_TEMPERATURE:,.0f}",
    ),
    "top_k": checked(is_whole, "is not a whole number from 0 (0 for all tokens)"),
    "top_p": checked(lambda value: is_number(value) and value <= 1, "is not above 0 and at most 1"),
    "seed": whole_number,
    "max_new_tokens": checked(lambda value: is_whole(value, smallest=1), "is not a whole number from 1"),
}


def softmax(logits: Host) -> Host:
    """Shares that sum to 1 along the last axis; −∞ gets none. The largest is subtracted first."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares)


def tempered(logits: Host, temperature: float) -> Host:
    """Logits ÷ T (Hinton et al. 2015, equation 1), any number of rows.

    In the limit of 0 the largest keeps its logit and all others are −∞.
    """
    logits = np.asarray(logits, dtype=np.float64)
    if temperature > 0:
        with np.errstate(over="ignore"):  # a tiny temperature: differences are taken first, so that none becomes NaN
            return np.asarray((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    first = logits.argmax(axis=-1, keepdims=True)
    cold = np.full_like(logits, -np.inf)
    np.put_along_axis(cold, first, np.take_along_axis(logits, first, axis=-1), axis=-1)
    return cold


def leading(scores: Host, count: int) -> Host:
    """The IDs of the largest scores, largest first; equal ones in order of ID."""
    count = min(count, scores.size)
    edge = np.partition(scores, scores.size - count)[scores.size - count]
    candidates = np.flatnonzero(scores >= edge)
    order = np.argsort(-scores[candidates], kind="stable")
    return np.asarray(candidates[order[:count]])


def top_k(logits: Host, count: int) -> Host:
    """Only the `count` largest logits, the others −∞ (Fan et al. 2018, §5.1); 0 for all."""
    return logits if count in (0, logits.size) else _only(logits, leading(logits, count))


def top_p(logits: Host, share: float) -> Host:
    """Only the fewest most likely tokens whose shares sum to at least `share` (Holtzman et al. 2020, §3.1)."""
    if share >= 1:
        return logits
    shares = softmax(logits)
    count = min(FEW, int(np.count_nonzero(shares)))  # a few are sorted sooner than all
    order = leading(shares, count)
    while count < shares.size and shares[order].sum() < share:
        count *= FEW
        order = leading(shares, count)
    before = np.cumsum(shares[order]) - shares[order]
    return _only(logits, order[before < share])


def _only(logits: Host, ids: Host) -> Host:
    kept = np.full_like(logits, -np.inf)
    kept[ids] = logits[ids]
    return kept


def probabilities(logits: Host, settings: Settings) -> Host:
    """With which every token is chosen: temperature, then top-k, then top-p, then softmax."""
    scores = tempered(logits, settings.temperature if settings.draws else 0.0)
    return softmax(top_p(top_k(scores, settings.top_k), settings.top_p))


@dataclass(frozen=True)
class Draw:
    """A number from [0, 1) that fell into the share of a token: low ≤ number < high.

    The shares lie side by side in order of ID and make up 1; `low` is the sum of those before the token's.
    """

    number: float
    low: float
    high: float
    token: int


def draw(shares: Host, seed: int, place: int) -> Draw:
    """The draw for a place of the sequence; the same whenever place, seed and shares are."""
    return fallen(shares, float(np.random.default_rng([seed, place]).random()))


def fallen(shares: Host, number: float) -> Draw:
    """The token into whose share a number from [0, 1) falls, by the cumulative sum of the shares."""
    ends = np.cumsum(shares)
    token = int(min(np.searchsorted(ends, number * ends[-1], side="right"), shares.size - 1))
    low = float(ends[token - 1]) if token else 0.0
    return Draw(number, low / float(ends[-1]), float(ends[token] / ends[-1]), token)


def chosen(logits: Host, settings: Settings, place: int) -> int:
    """The next token for a place of the sequence: the most likely one, or a drawn one."""
    if not settings.draws:
        return int(logits.argmax())
    return draw(probabilities(logits, settings), settings.seed, place).token
