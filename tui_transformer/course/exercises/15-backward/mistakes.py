"""A sum for a mean; no target, or another; the wrong sign; the bias by mean or rows; after a step."""

import numpy as np
from solution import backward


def _times(factor):
    """The right gradients, times a factor that is made of the number of tokens."""
    return lambda x, weight, bias, ids: tuple(factor(len(ids)) * each for each in backward(x, weight, bias, ids))


not_divided = _times(lambda tokens: tokens - 1)
upwards = _times(lambda _: -1)
last_counted = _times(lambda tokens: (tokens - 1) / tokens)


def _shares(x, weight, bias):
    logits = x @ weight + bias
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _from(gradient, x, weight):
    return x.T @ gradient, gradient.sum(axis=0), gradient @ weight.T


def no_target(x, weight, bias, ids):
    gradient = _shares(x, weight, bias) / (len(ids) - 1)
    gradient[-1] = 0
    return _from(gradient, x, weight)


def not_shifted(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[np.arange(len(ids)), ids] -= 1
    return _from(gradient / len(ids), x, weight)


def _last_kept(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[np.arange(len(ids) - 1), ids[1:]] -= 1
    return gradient / (len(ids) - 1)


def last_kept(x, weight, bias, ids):
    return _from(_last_kept(x, weight, bias, ids), x, weight)


def bias_averaged(x, weight, bias, ids):
    at_weight, at_bias, at_x = backward(x, weight, bias, ids)
    return at_weight, at_bias / len(ids), at_x


def bias_by_rows(x, weight, bias, ids):
    at_weight, _, at_x = backward(x, weight, bias, ids)
    at_bias = _last_kept(x, weight, bias, ids).sum(axis=1)
    at_bias[-1] = 0
    return at_weight, at_bias, at_x


def stepped(x, weight, bias, ids):
    at_weight, at_bias, at_x = backward(x, weight, bias, ids)
    return weight - at_weight, bias - at_bias, x - at_x
