"""The new token left out, in front, or in the place of another; other axes, factors and biases; W^O."""

import numpy as np
from solution import _linear, _softmax, _split


def _new(x, weights, heads):
    return (_split(_linear(x, weights, name), heads) for name in ("query", "key", "value"))


def _attention(query, keys, values, width=None):
    return _softmax(query @ keys.transpose(0, 2, 1) / np.sqrt(width or query.shape[-1])) @ values


def _below(first, second):
    return np.concatenate([first, second], axis=1)


def new_left_out(x, weights, kept_keys, kept_values):
    query, _, _ = _new(x, weights, len(kept_keys))
    return _attention(query, kept_keys, kept_values)


def new_in_front(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(key, kept_keys), _below(kept_values, value))


def overwritten(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys[:, :-1], key), _below(kept_values[:, :-1], value))


def undivided(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, value), 1.0)


def along_heads(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, np.concatenate([kept_keys, key]), np.concatenate([kept_values, value]))


def kept_exchanged(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_values, key), _below(kept_keys, value))


def old_key_again(x, weights, kept_keys, kept_values):
    query, _, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, kept_keys[:, -1:]), _below(kept_values, value))


def old_value_again(x, weights, kept_keys, kept_values):
    query, key, _ = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, kept_values[:, -1:]))


def by_model_width(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, value), x.shape[-1])


def itself_hidden(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, 0 * value))


def no_bias(x, weights, kept_keys, kept_values):
    without = {name: array * (not name.endswith(".bias")) for name, array in weights.items()}
    query, key, value = _new(x, without, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, value))


def all_together(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    context = _attention(query, _below(kept_keys, key), _below(kept_values, value))
    return _linear(context.transpose(1, 0, 2).reshape(1, -1), weights, "output")


def each_head_alone(x, weights, kept_keys, kept_values):
    query, key, value = _new(x, weights, len(kept_keys))
    return _attention(query, _below(kept_keys, key), _below(kept_values, value)) @ weights["output.weight"]
