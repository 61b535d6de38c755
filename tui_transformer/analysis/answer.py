"""The answer at a place: its most likely tokens, by softmax(logits ÷ T) (Hinton et al. 2015, equation 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.generation.sampling import LARGEST_TEMPERATURE, leading, softmax, tempered

LOGITS, PROBABILITIES = "output.logits", "output.probabilities"


@dataclass(frozen=True)
class Likely:
    """A token, its logit and its probability at a temperature."""

    token: int
    logit: float
    probability: float


def likely_at(trace: Trace, row: int, count: int, temperature: float = 1.0) -> tuple[Likely, ...]:
    """The most likely tokens at a position, most likely first; equal ones in order of ID.

    Args:
        trace: A trace with logits.
        row: The position.
        count: How many tokens at most.
        temperature: T, from 0. At 1 the probabilities are those of the trace itself. At 0 they are the limit: all of
            it is the largest logit's.

    Raises:
        UsageError: A temperature below 0, or none.
    """
    if not 0 <= temperature <= LARGEST_TEMPERATURE:
        raise UsageError(f"temperature {temperature:g} is not a number from 0 to {LARGEST_TEMPERATURE:,.0f}")
    logits = _row(trace, trace.program.logits, row)
    shares = _row(trace, PROBABILITIES, row) if temperature == 1 else softmax(tempered(logits, temperature))
    best = leading(np.nan_to_num(shares if temperature else logits, nan=-np.inf), count)
    return tuple(Likely(int(token), float(logits[token]), float(shares[token])) for token in best)


def _row(trace: Trace, name: str, row: int) -> Host:
    values: Host = trace.window(name, (range(row, row + 1), range(trace.program.shape(name)[1])))[0]
    return values
