"""Other factors; K reshaped; cell by cell; every head with every other; cosines; shares; the sign."""

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


def reshaped(query, key):
    return query @ key.reshape(len(key), key.shape[2], key.shape[1]) / np.sqrt(query.shape[-1])


def cell_by_cell(query, key):
    return query * key / np.sqrt(query.shape[-1])


def all_heads(query, key):
    return np.dot(query, key.transpose(0, 2, 1)) / np.sqrt(query.shape[-1])


def cosines(query, key):
    lengths = np.linalg.norm(query, axis=-1)[:, :, None] * np.linalg.norm(key, axis=-1)[:, None, :]
    return _products(query, key) / lengths


def shares_already(query, key):
    exponentials = np.exp(_products(query, key) / np.sqrt(query.shape[-1]))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def negative(query, key):
    return -_products(query, key) / np.sqrt(query.shape[-1])
