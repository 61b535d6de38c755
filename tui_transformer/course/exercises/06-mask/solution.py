"""−∞ above the diagonal."""

import numpy as np


def mask(scaled):
    later = np.triu(np.ones(scaled.shape[-2:], bool), 1)
    return np.where(later, -np.inf, scaled)
