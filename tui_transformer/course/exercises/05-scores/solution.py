"""Dot products of all queries and keys, divided by √d_k."""

import numpy as np


def scores(query, key):
    return query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
