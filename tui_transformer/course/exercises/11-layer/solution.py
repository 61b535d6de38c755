"""Attention and feed-forward, each with a norm before it and a sum after it."""

import numpy as np


def layer(x, weights, heads):
    residual = x + _attention(_norm(x, weights, "self_attention.norm"), weights, heads)
    return residual + _feed_forward(_norm(residual, weights, "feed_forward.norm"), weights)


def _attention(x, weights, heads):
    query, key, value = (
        _split(_linear(x, weights, f"self_attention.{name}"), heads) for name in ("query", "key", "value")
    )
    shares = _softmax(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]))
    concat = (shares @ value).transpose(1, 0, 2).reshape(len(x), -1)
    return _linear(concat, weights, "self_attention.output")


def _split(y, heads):
    return y.reshape(len(y), heads, -1).transpose(1, 0, 2)


def _feed_forward(x, weights):
    hidden = np.maximum(_linear(x, weights, "feed_forward.hidden"), 0)
    return _linear(hidden, weights, "feed_forward.output")


def _norm(x, weights, name):
    mean = x.mean(axis=-1, keepdims=True)
    scaled = (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(x, weights, name):
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
