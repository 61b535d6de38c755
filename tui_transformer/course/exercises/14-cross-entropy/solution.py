"""Mean of −log softmax(logits) at the next tokens."""

import numpy as np


def loss(logits, ids):
    rows, targets = logits[:-1], ids[1:]
    top = rows.max(axis=-1, keepdims=True)
    logs = rows - top - np.log(np.exp(rows - top).sum(axis=-1, keepdims=True))
    return -logs[np.arange(len(targets)), targets].mean()
