"""Loss and share of right answers over a whole epoch, from those of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Epoch:
    """Means over the steps of an epoch, each of its examples before it was learned from.

    Attributes:
        number: Counted from 1.
        loss: In nats.
        accuracy: Share of the counted positions whose prediction was right.
    """

    number: int
    loss: float
    accuracy: float


@dataclass
class Epochs:
    """The epoch that is under way."""

    ended: int = 0
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)

    def add(self, epoch: float, loss: float, accuracy: float) -> Epoch | None:
        """The epoch that a step ends, if it does.

        Args:
            epoch: How often all examples have been seen after the step.
            loss: Of the step.
            accuracy: Of the step.
        """
        self.losses.append(loss)
        self.accuracies.append(accuracy)
        if not math.isfinite(epoch) or math.floor(epoch) <= self.ended:
            return None
        self.ended, count = math.floor(epoch), len(self.losses)
        finished = Epoch(self.ended, math.fsum(self.losses) / count, math.fsum(self.accuracies) / count)
        self.losses, self.accuracies = [], []
        return finished
