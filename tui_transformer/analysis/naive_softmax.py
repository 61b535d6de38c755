"""The softmax as it is written, e^s ÷ Σ e^s, beside the one that is computed, e^(s − max) ÷ Σ e^(s − max).

Both are the same number as long as no exponential overflows: in float32 e^s is infinite above 88.72, and ∞ ÷ ∞ is no
number; where every e^s is 0, below −103.97, nor is 0 ÷ 0 (Goodfellow et al. 2016, §4.1).
"""

from __future__ import annotations

import math

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass

TRIES = 100
"""Numbers that are tried from the limit of the largest score on: rounding moves it by a few."""


@dataclass(frozen=True, eq=False)
class Softmaxes:
    """A row of scores and both ways to its shares, all in the precision of the scores.

    Naive: `powers` e^s, and `naive` e^s ÷ Σ e^s. Safe: `shifted` s − max, `safe_powers` e^(s − max), and `safe`, these
    ÷ their sum.
    """

    scores: Host
    powers: Host
    naive: Host
    shifted: Host
    safe_powers: Host
    safe: Host

    @property
    def breaks(self) -> bool:
        """True if the naive shares are no numbers where the safe ones are."""
        return bool((np.isnan(self.naive) & ~np.isnan(self.safe)).any())

    @property
    def apart(self) -> float:
        """The largest difference of the two."""
        return float(np.abs(self.naive - self.safe).max())


@np.errstate(all="ignore")
def softmaxes(scores: Host, raised: float = 0.0) -> Softmaxes:
    """Both softmaxes of a row, all of whose scores are raised by a number."""
    scores = scores + scores.dtype.type(raised)
    powers = np.exp(scores)
    shifted = scores - scores.max()
    safe = np.exp(shifted)
    return Softmaxes(scores, powers, powers / powers.sum(), shifted, safe, safe / safe.sum())


def breaking_point(scores: Host) -> float | None:
    """The smallest whole number by which scores have to be raised for the naive softmax to break.

    Where one more is less than a score can hold, it is that number's precision; nothing where no row breaks: without a
    finite score, and beside an infinite one, the safe shares are no numbers either.
    """
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return None
    limit = math.log(float(np.finfo(scores.dtype).max))
    first = float(math.ceil(limit - float(finite.max())))
    step = max(1.0, float(np.abs(finite).max()) * float(np.finfo(scores.dtype).eps))
    tried = (first + each * step for each in range(TRIES))
    return next((raised for raised in tried if softmaxes(scores, raised).breaks), None)
