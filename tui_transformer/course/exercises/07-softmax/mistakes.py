"""The largest score not taken away, or that of all rows; other axes; no sum; other powers; no exponentials."""

import numpy as np


def _shares(masked, axis, largest=None):
    exponentials = np.exp(masked - (masked.max(axis=axis, keepdims=True) if largest is None else largest))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def naive(masked):
    return _shares(masked, -1, 0)


def naive_hidden(masked):
    return np.nan_to_num(naive(masked))


def one_largest(masked):
    return _shares(masked, -1, masked.max())


def cut_off(masked):
    return _shares(np.minimum(masked, 700), -1, 0)


def over_columns(masked):
    return _shares(masked, -2)


def over_columns_plainly(masked):
    return _shares(masked, -2, 0)


def over_heads(masked):
    return _shares(masked, 0)


def over_heads_plainly(masked):
    return _shares(masked, 0, 0)


def over_all(masked):
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=(-2, -1), keepdims=True)


def over_everything(masked):
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum()


def without_sum(masked):
    return np.exp(masked - masked.max(axis=-1, keepdims=True))


def without_sum_plainly(masked):
    return np.exp(masked)


def base_two(masked):
    return _shares(masked * np.log(2), -1)


def logarithms(masked):
    rows = masked - masked.max(axis=-1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))


def one_more(masked):
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / (exponentials.sum(axis=-1, keepdims=True) + 1)


def no_exponential(masked):
    return masked / masked.sum(axis=-1, keepdims=True)
