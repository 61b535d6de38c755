"""Parts left out: the sum, γ, β, ε, the root, the mean; another variance, axis, sign or order."""

import numpy as np
from solution import add_and_norm


def _with(**others):
    """The right function, given something else."""
    return lambda **given: add_and_norm(**given | others)


not_added = _with(x=0)
x_alone = _with(y=0)
no_gamma = _with(gamma=1)
no_beta = _with(beta=0)
no_epsilon = _with(epsilon=0)


def difference(x, y, gamma, beta, epsilon):
    return add_and_norm(x, -y, gamma, beta, epsilon)


def beta_before_gamma(x, y, gamma, beta, epsilon):
    return add_and_norm(x, y, 1, beta, epsilon) * gamma


def norm_first(x, y, gamma, beta, epsilon):
    return x + add_and_norm(0, y, gamma, beta, epsilon)


def one_less(x, y, gamma, beta, epsilon):
    total = x + y
    variance = total.var(axis=-1, keepdims=True, ddof=1)
    return (total - total.mean(axis=-1, keepdims=True)) / np.sqrt(variance + epsilon) * gamma + beta


def no_root(x, y, gamma, beta, epsilon):
    total = x + y
    centred = total - total.mean(axis=-1, keepdims=True)
    return centred / (total.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


def no_mean(x, y, gamma, beta, epsilon):
    total = x + y
    return total / np.sqrt(total.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


def one_for_all(x, y, gamma, beta, epsilon):
    total = x + y
    return (total - total.mean()) / np.sqrt(total.var() + epsilon) * gamma + beta
