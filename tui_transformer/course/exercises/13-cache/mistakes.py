"""The new token left out, in front, or in the place of another; other axes, factors and biases; W^O."""

import numpy as np
from solution import _linear, _softmax, _split, with_cache


def _attending(rows, width=lambda query, _: query.shape[-1]):
    """Attention to keys and values that are put together of the kept and the new ones, divided by √width."""

    def attention(x, weights, kept_keys, kept_values):
        query, key, value = (_split(_linear(x, weights, name), len(kept_keys)) for name in ("query", "key", "value"))
        keys, values = rows(kept_keys, kept_values, key, value)
        return _softmax(query @ keys.transpose(0, 2, 1) / np.sqrt(width(query, x))) @ values

    return attention


def _below(first, second):
    return np.concatenate([first, second], axis=1)


def _right(keys, values, key, value):
    return _below(keys, key), _below(values, value)


new_left_out = _attending(lambda keys, values, *_: (keys, values))
new_in_front = _attending(lambda keys, values, key, value: (_below(key, keys), _below(values, value)))
overwritten = _attending(lambda keys, values, key, value: _right(keys[:, :-1], values[:, :-1], key, value))
along_heads = _attending(
    lambda keys, values, key, value: (np.concatenate([keys, key]), np.concatenate([values, value]))
)
old_key_again = _attending(lambda keys, values, _, value: _right(keys, values, keys[:, -1:], value))
old_value_again = _attending(lambda keys, values, key, _: _right(keys, values, key, values[:, -1:]))
itself_hidden = _attending(lambda keys, values, key, value: _right(keys, values, key, 0 * value))
undivided = _attending(_right, lambda *_: 1)
by_model_width = _attending(_right, lambda _, x: x.shape[-1])


def kept_exchanged(x, weights, kept_keys, kept_values):
    return with_cache(x, weights, kept_values, kept_keys)


def no_bias(x, weights, kept_keys, kept_values):
    without = {name: array * (not name.endswith(".bias")) for name, array in weights.items()}
    return with_cache(x, without, kept_keys, kept_values)


def all_together(x, weights, kept_keys, kept_values):
    context = with_cache(x, weights, kept_keys, kept_values)
    return _linear(context.transpose(1, 0, 2).reshape(1, -1), weights, "output")


def each_head_alone(x, weights, kept_keys, kept_values):
    return with_cache(x, weights, kept_keys, kept_values) @ weights["output.weight"]
