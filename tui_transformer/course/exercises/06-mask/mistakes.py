"""No mask; the other half; the diagonal too; 0 for −∞; a number that is not small enough; +∞; 0 · ∞; shares already."""

import numpy as np
from solution import mask


def _later(scaled, start=1):
    return np.triu(np.ones(scaled.shape[-2:], bool), start)


def _with(number, start=1):
    """Another number in the place of −∞, or another diagonal from which keys are hidden."""
    return lambda scaled: np.where(_later(scaled, start), number, scaled)


itself_hidden = _with(-np.inf, 0)
as_zero = _with(0.0)
plus_infinity = _with(np.inf)


def not_masked(scaled):
    return scaled


def earlier_hidden(scaled):
    return np.where(_later(scaled).T, -np.inf, scaled)


def too_small(scaled):
    return scaled + np.where(_later(scaled), -10.0, 0.0)


def times_infinity(scaled):
    with np.errstate(invalid="ignore"):
        return scaled + _later(scaled) * -np.inf


def shares_already(scaled):
    exponentials = np.exp(mask(scaled) - mask(scaled).max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
