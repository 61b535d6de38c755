"""No mask; the past hidden; hidden after the softmax; divided by √d_model; x normalised again."""

import numpy as np
from solution import _linear, _softmax, _split, causal_attention


def _with(to_shares):
    """Attention whose shares are made otherwise of the scores and of which keys are later."""

    def attention(x, weights, heads):
        query, key, value = (_split(_linear(x, weights, name), heads) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        shares = to_shares(scores, np.triu(np.ones(scores.shape[-2:], bool), 1))
        return _linear((shares @ value).transpose(1, 0, 2).reshape(len(x), -1), weights, "output")

    return attention


not_masked = _with(lambda scores, _: _softmax(scores))
past_hidden = _with(lambda scores, later: _softmax(np.where(later.T, -np.inf, scores)))
after_softmax = _with(lambda scores, later: np.where(later, 0.0, _softmax(scores)))
by_model_width = _with(lambda scores, later: _softmax(np.where(later, -np.inf, scores / np.sqrt(len(scores)))))


def normed_again(x, weights, heads):
    centred = x - x.mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weights["norm.weight"] + weights["norm.bias"]
    return causal_attention(normed, weights, heads)
