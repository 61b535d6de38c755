"""e^s ÷ Σ e^s of each row."""

import numpy as np


def softmax(masked):
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
