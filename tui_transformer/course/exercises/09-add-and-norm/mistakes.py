"""Parts left out: the sum, γ, β, ε, the root, the mean; another variance, axis, sign or order."""

import numpy as np


def _norm(total, epsilon, ddof=0):
    mean = total.mean(axis=-1, keepdims=True)
    return (total - mean) / np.sqrt(total.var(axis=-1, keepdims=True, ddof=ddof) + epsilon)


def not_added(x, y, gamma, beta, epsilon):
    return _norm(y, epsilon) * gamma + beta


def no_gamma(x, y, gamma, beta, epsilon):
    return _norm(x + y, epsilon) + beta


def no_beta(x, y, gamma, beta, epsilon):
    return _norm(x + y, epsilon) * gamma


def one_less(x, y, gamma, beta, epsilon):
    return _norm(x + y, epsilon, ddof=1) * gamma + beta


def _centred(x, y):
    total = x + y
    return total, total - total.mean(axis=-1, keepdims=True)


def no_epsilon(x, y, gamma, beta, epsilon):
    return _norm(x + y, 0) * gamma + beta


def no_root(x, y, gamma, beta, epsilon):
    total, centred = _centred(x, y)
    return centred / (total.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


def no_mean(x, y, gamma, beta, epsilon):
    total = x + y
    return total / np.sqrt(total.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


def one_for_all(x, y, gamma, beta, epsilon):
    total = x + y
    return (total - total.mean()) / np.sqrt(total.var() + epsilon) * gamma + beta


def difference(x, y, gamma, beta, epsilon):
    return _norm(x - y, epsilon) * gamma + beta


def beta_before_gamma(x, y, gamma, beta, epsilon):
    return (_norm(x + y, epsilon) + beta) * gamma


def norm_first(x, y, gamma, beta, epsilon):
    return x + _norm(y, epsilon) * gamma + beta


def x_alone(x, y, gamma, beta, epsilon):
    return _norm(x, epsilon) * gamma + beta
