"""The logarithm of shares, of which most measures are made."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.backend import Host


def log_shares(logits: Host) -> Host:
    """Logarithm of softmax along the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    shares: Host = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shares
