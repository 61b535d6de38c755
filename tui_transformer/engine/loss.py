"""The loss of predictions: cross-entropy over the targets, with label smoothing, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Array, Backend, Host

NOT_COUNTED = -1
"""As a target: the position is left out of the loss."""


@dataclass(frozen=True)
class Loss:
    """How far predictions are from their targets.

    Attributes:
        mean: Cross-entropy over the counted positions, in nats; with label smoothing, against the smoothed targets.
        right: Counted positions whose largest logit is that of the target.
        counted: How many positions are counted.
        whole: Sequences that are right at every counted position: what greedy writing would give word for word.
    """

    mean: float
    right: int
    counted: int
    whole: int = 0

    @property
    def accuracy(self) -> float:
        """The share of counted positions that are right."""
        return self.right / self.counted


def counted(targets: Host) -> int:
    """How many positions are counted."""
    return int((targets != NOT_COUNTED).sum())


def cross_entropy(
    backend: Backend, logits: Array, targets: Host, smoothing: float = 0.0, total: int | None = None
) -> tuple[Loss, Array]:
    """−Σ q log softmax(logits), and its gradient (softmax − q) ÷ count (Szegedy et al. 2016, §7).

    q is 1 − ε at the target, and ε ÷ v everywhere besides.

    Args:
        backend: Where the logits are.
        logits: Batch × n × v.
        targets: Batch × n token IDs, −1 where a position is left out.
        smoothing: ε.
        total: What sums are divided by, where the positions are part of more; by default the counted ones.
    """
    xp, words = backend.xp, logits.shape[-1]
    flat = logits.reshape(-1, words)
    ids, rows = backend.integers(targets).reshape(-1), xp.arange(targets.size, dtype=np.int64)
    kept = ids != NOT_COUNTED
    place = (rows, xp.where(kept, ids, 0))
    share = kept / float(counted(targets) if total is None else total)  # of every position in the mean
    right = (flat.argmax(axis=-1) == ids) & kept
    whole = (right | ~kept).reshape(targets.shape).all(axis=-1) & kept.reshape(targets.shape).any(axis=-1)

    shifted = xp.subtract(flat, flat.max(axis=-1, keepdims=True), out=backend.like(flat))
    picked = shifted[place] * (1.0 - smoothing)
    if smoothing:
        picked += shifted.mean(axis=-1) * smoothing
    gradient = xp.exp(shifted, out=shifted)
    sums = gradient.sum(axis=-1, keepdims=True)
    losses = xp.where(kept, xp.log(sums[:, 0]) - picked, 0.0)

    share = backend.floats(share)[:, None]
    gradient *= share / sums
    if smoothing:
        gradient -= share * (smoothing / words)
    gradient[place] -= share[:, 0] * (1.0 - smoothing)
    mean = float((losses * share[:, 0]).sum())
    loss = Loss(mean, int(float(right.sum())), counted(targets), int(float(whole.sum())))
    return loss, gradient.reshape(logits.shape)
