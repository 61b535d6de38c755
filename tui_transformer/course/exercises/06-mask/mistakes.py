"""No mask; the other half; the diagonal too; 0 for −∞; a number that is not small enough; +∞; 0 · ∞; shares already."""

import numpy as np


def _later(scaled, start=1):
    return np.triu(np.ones(scaled.shape[-2:], bool), start)


def not_masked(scaled):
    return scaled


def earlier_hidden(scaled):
    return np.where(_later(scaled).T, -np.inf, scaled)


def itself_hidden(scaled):
    return np.where(_later(scaled, 0), -np.inf, scaled)


def as_zero(scaled):
    return np.where(_later(scaled), 0.0, scaled)


def too_small(scaled):
    return scaled + np.where(_later(scaled), -10.0, 0.0)


def plus_infinity(scaled):
    return np.where(_later(scaled), np.inf, scaled)


def times_infinity(scaled):
    with np.errstate(invalid="ignore"):
        return scaled + _later(scaled) * -np.inf


def shares_already(scaled):
    masked = np.where(_later(scaled), -np.inf, scaled)
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
