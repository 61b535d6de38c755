"""Renormalised weights: attention as it is shared among the tokens that are left when some are hidden.

A'_ij = A_ij ÷ Σ_k A_ik over the keys k that are not hidden, so that every row sums to 1 again; 0 for a hidden key. A
row that looked at hidden keys alone has nothing left: it is 0. The computation itself is not changed by it.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.backend import Host


def renormalized(weights: Host, hidden: Host) -> Host:
    """Weights (… × keys) without the hidden keys (true in `hidden`), every row summing to 1 or 0."""
    if not hidden.any():
        return weights
    left = np.where(hidden, 0.0, weights).astype(weights.dtype)
    total = left.sum(axis=-1, keepdims=True)
    shares: Host = np.divide(left, total, out=np.zeros_like(left), where=total > 0.0)
    return shares
