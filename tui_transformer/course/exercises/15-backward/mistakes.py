"""A sum for a mean; no target, or another; the wrong sign; the bias by mean or rows; after a step."""

import numpy as np


def _shares(x, weight, bias):
    logits = x @ weight + bias
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _from(gradient, x, weight):
    return x.T @ gradient, gradient.sum(axis=0), gradient @ weight.T


def _right(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[np.arange(len(ids) - 1), ids[1:]] -= 1
    gradient[-1] = 0
    return gradient


def not_divided(x, weight, bias, ids):
    return _from(_right(x, weight, bias, ids), x, weight)


def no_target(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[-1] = 0
    return _from(gradient / (len(ids) - 1), x, weight)


def upwards(x, weight, bias, ids):
    return _from(-_right(x, weight, bias, ids) / (len(ids) - 1), x, weight)


def not_shifted(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[np.arange(len(ids)), ids] -= 1
    return _from(gradient / len(ids), x, weight)


def last_counted(x, weight, bias, ids):
    return _from(_right(x, weight, bias, ids) / len(ids), x, weight)


def last_kept(x, weight, bias, ids):
    gradient = _shares(x, weight, bias)
    gradient[np.arange(len(ids) - 1), ids[1:]] -= 1
    return _from(gradient / (len(ids) - 1), x, weight)


def _divided(x, weight, bias, ids):
    return _right(x, weight, bias, ids) / (len(ids) - 1)


def bias_averaged(x, weight, bias, ids):
    at_weight, _, at_x = _from(_divided(x, weight, bias, ids), x, weight)
    return at_weight, _divided(x, weight, bias, ids).mean(axis=0), at_x


def bias_by_rows(x, weight, bias, ids):
    at_weight, _, at_x = _from(_divided(x, weight, bias, ids), x, weight)
    return at_weight, _divided(x, weight, bias, ids).sum(axis=1), at_x


def stepped(x, weight, bias, ids):
    at_weight, at_bias, at_x = _from(_divided(x, weight, bias, ids), x, weight)
    return weight - at_weight, bias - at_bias, x - at_x
