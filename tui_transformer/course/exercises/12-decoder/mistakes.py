"""No mask; the past hidden; hidden after the softmax; divided by √d_model; x normalised again."""

import numpy as np
from solution import _linear, _softmax, _split, causal_attention


def _later(x):
    return np.triu(np.ones((len(x), len(x)), bool), 1)


def _attention(x, weights, heads, to_shares, width=None):
    query, key, value = (_split(_linear(x, weights, name), heads) for name in ("query", "key", "value"))
    shares = to_shares(query @ key.transpose(0, 2, 1) / np.sqrt(width or query.shape[-1]))
    return _linear((shares @ value).transpose(1, 0, 2).reshape(len(x), -1), weights, "output")


def not_masked(x, weights, heads):
    return _attention(x, weights, heads, _softmax)


def past_hidden(x, weights, heads):
    return _attention(x, weights, heads, lambda scores: _softmax(np.where(_later(x).T, -np.inf, scores)))


def after_softmax(x, weights, heads):
    return _attention(x, weights, heads, lambda scores: np.where(_later(x), 0.0, _softmax(scores)))


def by_model_width(x, weights, heads):
    return _attention(x, weights, heads, lambda s: _softmax(np.where(_later(x), -np.inf, s)), x.shape[1])


def normed_again(x, weights, heads):
    centred = x - x.mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weights["norm.weight"] + weights["norm.bias"]
    return causal_attention(normed, weights, heads)
