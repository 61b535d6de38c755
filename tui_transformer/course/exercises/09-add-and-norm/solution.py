"""The sum, each row with mean 0 and variance 1, times γ plus β."""

import numpy as np


def add_and_norm(x, y, gamma, beta, epsilon):
    total = x + y
    mean = total.mean(axis=-1, keepdims=True)
    variance = total.var(axis=-1, keepdims=True)
    return (total - mean) / np.sqrt(variance + epsilon) * gamma + beta
