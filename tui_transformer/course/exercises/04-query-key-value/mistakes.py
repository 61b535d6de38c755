"""Heads from a reshape alone, or dealt like cards; matrices, biases and weights taken otherwise; Q scaled."""

from solution import _NAMES, _split


def _product(x, weights, name, bias=1):
    return x @ weights[f"{name}.weight"] + bias * weights[f"{name}.bias"]


def without_swap(x, weights, heads):
    return tuple(_product(x, weights, name).reshape(heads, len(x), -1) for name in _NAMES)


def dealt(x, weights, heads):
    return tuple(_product(x, weights, name).reshape(len(x), -1, heads).transpose(2, 0, 1) for name in _NAMES)


def transposed(x, weights, heads):
    return tuple(_split(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], heads) for name in _NAMES)


def no_bias(x, weights, heads):
    return tuple(_split(_product(x, weights, name, 0), heads) for name in _NAMES)


def bias_twice(x, weights, heads):
    return tuple(_split(_product(x, weights, name, 2), heads) for name in _NAMES)


def key_for_query(x, weights, heads):
    return tuple(_split(_product(x, weights, name), heads) for name in ("key", "query", "value"))


def minus_bias(x, weights, heads):
    return tuple(_split(_product(x, weights, name, -1), heads) for name in _NAMES)


def divided_already(x, weights, heads):
    query, key, value = (_split(_product(x, weights, name), heads) for name in _NAMES)
    return query / query.shape[-1] ** 0.5, key, value


def widths_for_heads(x, weights, heads):
    return tuple(_product(x, weights, name).reshape(len(x), -1, heads).transpose(1, 0, 2) for name in _NAMES)
