"""Scores not divided; norms elsewhere or exchanged; sums left out or of something else; heads mixed."""

from functools import partial

import numpy as np
from solution import _feed_forward, _linear, _norm, _softmax, layer


def _attention(x, weights, heads, divided=True, mixed=False):
    def split(y):
        return y.reshape(heads, len(y), -1) if mixed else y.reshape(len(y), heads, -1).transpose(1, 0, 2)

    query, key, value = (split(_linear(x, weights, f"self_attention.{name}")) for name in ("query", "key", "value"))
    shares = _softmax(query @ key.transpose(0, 2, 1) / (np.sqrt(query.shape[-1]) if divided else 1))
    context = shares @ value
    concat = context.reshape(len(x), -1) if mixed else context.transpose(1, 0, 2).reshape(len(x), -1)
    return _linear(concat, weights, "self_attention.output")


def _pre(x, weights, heads, **wrong):
    residual = x + _attention(_norm(x, weights, "self_attention.norm"), weights, heads, **wrong)
    return residual + _feed_forward(_norm(residual, weights, "feed_forward.norm"), weights)


undivided = partial(_pre, divided=False)
heads_mixed = partial(_pre, mixed=True)


def norm_after(x, weights, heads):
    residual = _norm(x + _attention(x, weights, heads), weights, "self_attention.norm")
    return _norm(residual + _feed_forward(residual, weights), weights, "feed_forward.norm")


def not_added(x, weights, heads):
    attended = _attention(_norm(x, weights, "self_attention.norm"), weights, heads)
    return _feed_forward(_norm(attended, weights, "feed_forward.norm"), weights)


def normed_added(x, weights, heads):
    first = _norm(x, weights, "self_attention.norm")
    second = _norm(first + _attention(first, weights, heads), weights, "feed_forward.norm")
    return second + _feed_forward(second, weights)


def norms_exchanged(x, weights, heads):
    residual = x + _attention(_norm(x, weights, "feed_forward.norm"), weights, heads)
    return residual + _feed_forward(_norm(residual, weights, "self_attention.norm"), weights)


def norm_at_the_end(x, weights, heads):
    return _norm(layer(x, weights, heads), weights, "feed_forward.norm")
