"""Without the sum; without γ; without β; the variance with n − 1."""

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
