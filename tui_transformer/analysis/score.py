"""How likely a text is: every token by what the model gives it, the sum, and the perplexity of the mean.

With p = softmax(logits ÷ T) at the position that predicts token t: log-probability ln p(t), cross-entropy
−Σ q ln p with q = 1 − ε at the target and ε ÷ v everywhere besides (ε = 0: −ln p(t); Szegedy et al. 2016, §7), and
perplexity e^(−mean ln p(t)) (Jelinek et al. 1977).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tui_transformer.analysis.metrics import log_shares
from tui_transformer.analysis.tokens import WRITTEN, real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.engine.program import PROBABILITIES
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.sampling import LARGEST_TEMPERATURE, leading, softmax, tempered
from tui_transformer.model.targets import Ids, default_targets, predicts_next
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class TokenScore:
    """A token that was predicted, and the position that predicts it.

    The most likely one has rank 1, and 0 where the logits are no numbers. Both numbers are in nats; the cross-entropy
    with label smoothing is more than −ln p alone.
    """

    position: int
    token: int
    rank: int
    log_probability: float
    cross_entropy: float

    @property
    def probability(self) -> float:
        """The share of the token, p."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Score:
    """The tokens of a text that were predicted, in order."""

    tokens: tuple[TokenScore, ...]

    @property
    def log_probability(self) -> float:
        """Ln of the probability of all the tokens together, in nats."""
        return math.fsum(token.log_probability for token in self.tokens)

    @property
    def cross_entropy(self) -> float:
        """The mean over the tokens, in nats."""
        return math.fsum(token.cross_entropy for token in self.tokens) / len(self.tokens)

    @property
    def perplexity(self) -> float:
        """E to the mean of −ln p: among so many equally likely tokens the model is lost. ∞ where one is impossible."""
        mean = -self.log_probability / len(self.tokens)
        return math.inf if mean >= math.log(1e308) else math.exp(mean)


def score(
    trace: Trace, targets: Sequence[int], *, temperature: float = 1.0, smoothing: float = 0.0, item: int = 0
) -> Score:
    """The score of the tokens that are right at each position of a sentence of the batch.

    Args:
        trace: A trace with logits.
        targets: A token ID for every position; −1 leaves it out.
        temperature: T, above 0.
        smoothing: ε, from 0 and below 1.
        item: Which sentence.

    Raises:
        InputError: The model has no logits, no position is counted, or the targets are not of the trace.
        UsageError: A temperature or a smoothing that cannot be.
    """
    if not 0 < temperature <= LARGEST_TEMPERATURE:
        raise UsageError(f"temperature {temperature:g} is not a number above 0, to {LARGEST_TEMPERATURE:,.0f}")
    if not 0 <= smoothing < 1:
        raise UsageError(f"label smoothing {smoothing:g} is not a number from 0 to below 1")
    if not trace.program.logits:
        raise InputError(f"this model has no {LOGITS} of words: it gives words no probability")
    if all(target == NOT_COUNTED for target in targets):
        what = "decoder text" if trace.program.axes(LOGITS)[0].sequence == WRITTEN else "text"
        raise InputError(f"no token is predicted: give a {what} of two tokens or more")
    rows, words = trace.program.shape(LOGITS)
    if len(targets) != rows or not all(NOT_COUNTED <= target < words for target in targets):
        raise InputError(f"targets are {rows} token IDs below {words}, one a position; {NOT_COUNTED} counts none")
    scores: list[TokenScore] = []
    for (block, _), logits in trace.blocks(trace.program.logits, (range(rows), range(words)), item):
        for position, shares in zip(block, log_shares(logits.astype(np.float64) / temperature), strict=True):
            target = targets[position]
            if target != NOT_COUNTED:
                own = float(shares[target])
                rank = 0 if math.isnan(own) else 1 + int((shares > own).sum())
                entropy = -(1.0 - smoothing) * own - (smoothing * float(shares.mean()) if smoothing else 0.0)
                scores.append(TokenScore(position, target, rank, own, entropy))
    return Score(tuple(scores))


def text_targets(trace: Trace, ids: Sequence[int]) -> Ids:
    """The tokens of a text as targets, −1 where a position, or the token that it predicts, is padding."""
    program = trace.program
    real = real_tokens(trace, program.axes(LOGITS)[0]).tolist()
    predicted = [*real[1:], False] if predicts_next(program) else real
    targets = zip(default_targets(program, ids), real, predicted, strict=True)
    return tuple(target if here and there else NOT_COUNTED for target, here, there in targets)


@dataclass(frozen=True)
class Likely:
    """A token, its logit and its probability at a temperature."""

    token: int
    logit: float
    probability: float


def likely_at(trace: Trace, row: int, count: int, temperature: float = 1.0) -> tuple[Likely, ...]:
    """At most so many tokens, most likely first, at a position; equal ones in order of ID.

    At a temperature of 1 the probabilities are those of the trace itself; at 0 they are the limit: all of it is the
    largest logit's. UsageError for one below 0, or none.
    """
    if not 0 <= temperature <= LARGEST_TEMPERATURE:
        raise UsageError(f"temperature {temperature:g} is not a number from 0 to {LARGEST_TEMPERATURE:,.0f}")

    def values(name: str) -> Host:
        return np.asarray(trace.window(name, (range(row, row + 1), range(trace.program.shape(name)[1])))[0])

    logits = values(trace.program.logits)
    shares = values(PROBABILITIES) if temperature == 1 else softmax(tempered(logits, temperature))
    best = leading(np.nan_to_num(shares if temperature else logits, nan=-np.inf), count)
    return tuple(Likely(int(token), float(logits[token]), float(shares[token])) for token in best)
