"""Other factors; K reshaped; cell by cell; every head with every other; cosines; shares; the sign."""

import numpy as np
from solution import scores


def _divided_by(number):
    """The products, divided by a number that is made of Q instead."""
    return lambda query, key: query @ key.transpose(0, 2, 1) / number(query)


undivided = _divided_by(lambda _: 1)
by_model_width = _divided_by(lambda query: np.sqrt(query.shape[0] * query.shape[-1]))
by_width = _divided_by(lambda query: query.shape[-1])
multiplied = _divided_by(lambda query: 1 / np.sqrt(query.shape[-1]))
negative = _divided_by(lambda query: -np.sqrt(query.shape[-1]))


def reshaped(query, key):
    return query @ key.reshape(len(key), key.shape[2], key.shape[1]) / np.sqrt(query.shape[-1])


def cell_by_cell(query, key):
    return query * key / np.sqrt(query.shape[-1])


def all_heads(query, key):
    return np.dot(query, key.transpose(0, 2, 1)) / np.sqrt(query.shape[-1])


def cosines(query, key):
    lengths = np.linalg.norm(query, axis=-1)[:, :, None] * np.linalg.norm(key, axis=-1)[:, None, :]
    return undivided(query, key) / lengths


def shares_already(query, key):
    exponentials = np.exp(scores(query, key))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
