"""The largest score not taken away, or that of all rows; other axes; no sum; other powers; no exponentials."""

from functools import partial

import numpy as np


def _shares(masked, axis=-1, largest=None):
    exponentials = np.exp(masked - (masked.max(axis=axis, keepdims=True) if largest is None else largest))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


naive = partial(_shares, largest=0)
over_columns = partial(_shares, axis=-2)
over_columns_plainly = partial(_shares, axis=-2, largest=0)
over_heads = partial(_shares, axis=0)
over_heads_plainly = partial(_shares, axis=0, largest=0)


def naive_hidden(masked):
    return np.nan_to_num(naive(masked))


def one_largest(masked):
    return _shares(masked, largest=masked.max())


def cut_off(masked):
    return naive(np.minimum(masked, 700))


def base_two(masked):
    return _shares(masked * np.log(2))


def without_sum(masked):
    return np.exp(masked - masked.max(axis=-1, keepdims=True))


def without_sum_plainly(masked):
    return np.exp(masked)


def over_all(masked):
    return without_sum(masked) / without_sum(masked).sum(axis=(-2, -1), keepdims=True)


def over_everything(masked):
    return without_sum(masked) / without_sum(masked).sum()


def one_more(masked):
    return without_sum(masked) / (without_sum(masked).sum(axis=-1, keepdims=True) + 1)


def logarithms(masked):
    rows = masked - masked.max(axis=-1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))


def no_exponential(masked):
    return masked / masked.sum(axis=-1, keepdims=True)
