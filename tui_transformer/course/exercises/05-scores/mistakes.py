"""Not divided; divided by √d_model, or by d_k; multiplied by √d_k."""

import numpy as np


def _products(query, key):
    return query @ key.transpose(0, 2, 1)


def undivided(query, key):
    return _products(query, key)


def by_model_width(query, key):
    return _products(query, key) / np.sqrt(query.shape[0] * query.shape[-1])


def by_width(query, key):
    return _products(query, key) / query.shape[-1]


def multiplied(query, key):
    return _products(query, key) * np.sqrt(query.shape[-1])
